"""The table of what each kind of service can do, as the documentation shows it."""

from __future__ import annotations

from ensue.federation.adapters import KINDS, adapter_class

HEADINGS = (
    *("kind", "events in", "events out", "waits while the gateway is away"),
    *("none twice after a crash", "applies of a filter", "applies of attributes", "encodings"),
)


def table() -> str:
    """Markdown, one row a kind."""
    lines = [f"| {' | '.join(HEADINGS)} |", "|---" * len(HEADINGS) + "|"]
    for kind in KINDS:
        able = adapter_class(kind).capabilities
        guarantees = (able.incoming, able.outgoing, "yes" if able.survives_restart else "no")
        cells = (
            f"`{kind}`",
            *(("as its carrier",) * 3 if able.is_carried else guarantees),
            "yes" if able.recalls else "no",
            able.pushes_down,
            ", ".join(f"`{each}`" for each in able.applies) or "none",
            ", ".join(able.encodings),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
