"""What to look at after a run: records that all are refused, types and keys that no rule can use.

In comes what was read (`SeenEvents`) and what was refused; out go sentences for the person, each
with a count and an example, or None where there is nothing to say. Only a run that could read
nothing at all is a finding, by its exit code; the rest may be meant: an event of a type that no
rule reads only moves the clock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ensue.cli.terminal import counted, listed
from ensue.events.event import Event
from ensue.events.nesting import value_at
from ensue.lang.checked import CheckedLibrary
from ensue.lang.diagnostics import close_match, did_you_mean
from ensue.lang.matching.wanted import types_read, unusable_keys


@dataclass
class SeenEvents:
    """How many events of each type were read, and the first of each type."""

    types: Counter[str] = field(default_factory=Counter)
    examples: dict[str, Event] = field(default_factory=dict)

    def take(self, event: Event) -> None:
        self.types[event.type] += 1
        if event.type not in self.examples:
            self.examples[event.type] = event

    def take_all(self, events: Iterable[Event]) -> None:
        for event in events:
            self.take(event)


def about_types(
    seen: Mapping[str, int], library: CheckedLibrary, found_something: bool
) -> str | None:
    """For events that no rule reads: all of them, those of a slip, or just some."""
    declared = [each.name for each in library.types]
    read = types_read(library)
    unread = sorted(name for name in seen if name not in read)
    if not unread or not declared:
        return None
    unknown = [name for name in unread if name not in library.types]
    nearest = next((each for each in unknown if close_match(each, declared)), None)
    if len(unknown) == len(seen) and not found_something:
        return (
            "no event is of a type that the library declares: they are of type"
            f" {listed(unknown)}; {did_you_mean(nearest or unknown[0], declared)}"
        )
    count = sum(seen[name] for name in unread)
    shown = nearest or max(unread, key=lambda name: seen[name])
    kinds = f"of {len(unread)} types, as `{shown}`," if len(unread) > 1 else f"of type `{shown}`"
    slip = f"; {did_you_mean(nearest, declared)}" if nearest else ""
    is_read = "is" if count == 1 else "are"
    return f"{counted(count, 'event')} {kinds} {is_read} read by no rule{slip}"


def about_unread(count: int, example: str | None) -> str:
    """As `about_types`, where only a count and one of the types are known."""
    is_read = "is" if count == 1 else "are"
    return f"{counted(count, 'event')}, as of type `{example}`, {is_read} read by no rule"


def about_keys(
    without_key: Mapping[str, int], examples: Mapping[str, Event], library: CheckedLibrary
) -> list[str]:
    """For rules that read no event, since what they are `by` holds no single value."""

    def inside(name: str) -> Sequence[str] | None:
        for event in examples.values():
            value = value_at(event.attributes, name)[1]
            if isinstance(value, Mapping):
                return list(value)
            if isinstance(value, list | tuple):
                return ()
        return None

    return [
        f"{counted(without_key[rule], 'event')} without a key: {sentence}"
        for rule, sentence in unusable_keys(library, inside)
        if without_key.get(rule)
    ]


def about_refusals(read: int, refused: int, first: str | None) -> str | None:
    """For an input of which not one record could be read."""
    if read or not refused or first is None:
        return None
    if refused == 1:
        return f"the only record, {first}, could not be read"
    return f"not one of {refused:,} records could be read; the first is {first}"


def about_offsets(count: int, example: str | None) -> str | None:
    """For times of which nobody can say which instant they are."""
    if not count or example is None:
        return None
    have, were = ("time has", "it was") if count == 1 else ("times have", "they were")
    return (
        f"{count:,} {have} no offset, as in {example}: `--timezone UTC`, or another zone, says"
        f" where {were} taken"
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
