"""A machine as a Mermaid flowchart, for Markdown pages that draw it."""

from __future__ import annotations

from ensue.machine.drawing.graph import graph_of
from ensue.machine.model import Machine


def to_mermaid(machine: Machine) -> str:
    graph = graph_of(machine)
    lines = ["flowchart LR"]
    for circle in graph.circles:
        text = _quoted(circle.text, *circle.notes)
        shape = f"((({text})))" if circle.is_initial else f"(({text}))"
        lines.append(f"    {circle.id}{shape}")
    lines += [
        f"    {box.id}[{_quoted(*box.lines)}]{':::all' if box.is_shaded else ''}"
        for box in graph.boxes
    ]
    lines += [f"    {arrow.source} --> {arrow.target}" for arrow in graph.arrows]
    lines.append("    classDef all fill:#cfd8e3,stroke:#33475b")
    return "\n".join(lines) + "\n"


def _quoted(*lines: str) -> str:
    """Lines as quoted text, with the characters of Mermaid's markup as entities."""
    text = "\n".join(lines) or " "
    for sign, entity in (
        ("#", "#35;"),
        ('"', "#quot;"),
        ("<", "#lt;"),
        (">", "#gt;"),
        ("\n", "<br>"),
    ):
        text = text.replace(sign, entity)
    return f'"{text}"'
