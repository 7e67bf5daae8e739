"""What to look at when nothing can come of a run: a file of another kind, or types of other names.

In come what was read and what was refused; out go sentences for the person, or None where there is
nothing to say. None of this is a mistake, and no exit code depends on it: an event of a type that
no library declares only moves the clock, and a file may hold nothing but refused records.
"""

from __future__ import annotations

from collections.abc import Collection

from ensue.cli.terminal import listed
from ensue.lang.diagnostics import close_match, did_you_mean


def about_types(seen: Collection[str], declared: Collection[str]) -> str | None:
    """For a run that has found nothing, since all events have passed by, or those of a slip."""
    unknown = sorted(set(seen).difference(declared))
    if not unknown or not declared:
        return None
    nearest = next((each for each in unknown if close_match(each, declared)), None)
    if len(unknown) == len(seen):
        return (
            "no event is of a type that the library declares: they are of type"
            f" {listed(unknown)}; {did_you_mean(nearest or unknown[0], declared)}"
        )
    if nearest is None:
        return None
    return (
        f"events of type `{nearest}` have passed by, since the library does not declare it;"
        f" {did_you_mean(nearest, declared)}"
    )


def about_lines(read: int, refused: int, objects: int) -> str | None:
    """For JSON lines of which not one was an object of JSON, whatever stood in it."""
    if read or not refused or objects:
        return None
    return (
        "not one line is a JSON object: events are read as JSON lines, one whole object a line;"
        " `--format` names another format"
    )


def looks_like_an_object(raw: bytes | str) -> bool:
    text = raw.encode("utf-8", "surrogateescape") if isinstance(raw, str) else raw
    text = text.strip()
    return text.startswith(b"{") and text.endswith(b"}")
