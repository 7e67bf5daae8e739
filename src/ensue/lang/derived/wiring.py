"""Wiring: which events a port reads, by where they come from.

Every event of a run either comes from outside, or is the output of a correlation of the library,
its *author*. The author of an event is known to the engine that runs the library, and stands in no
attribute: an event from outside stays one, whatever source or extension attributes it has. In comes
a port, or the correlations of a library; out go the authors and sources that a port takes, and the
readers of each correlation. Type and `where` of a port are decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ensue.lang.expressions.tree import Comparison, Expression, In, Literal, Name
from ensue.lang.syntax import (
    Correlation,
    EventPort,
    OutsideSource,
    RuleSource,
    TextSource,
)


def rules_named(port: EventPort) -> tuple[str, ...]:
    """The correlations whose outputs a port reads, each once."""
    named = (each.name for each in port.sources if isinstance(each, RuleSource))
    return tuple(dict.fromkeys(named))


def sources_asked(port: EventPort) -> frozenset[str] | None:
    """The sources of the events from outside that a port reads; None where it reads any source.

    An empty set is that of a port that reads nothing from outside.
    """
    if not port.sources or any(isinstance(each, OutsideSource) for each in port.sources):
        return None
    return frozenset(each.text for each in port.sources if isinstance(each, TextSource))


def source_test(port: EventPort) -> Expression | None:
    """The test of the source of an event from outside; None where a port reads any source."""
    asked = sources_asked(port)
    if asked is None:
        return None
    texts = [Literal(text) for text in sorted(asked)]
    if len(texts) == 1:
        return Comparison(_SOURCE, (("=", texts[0]),))
    return In(_SOURCE, tuple(texts)) if texts else Literal(False)


_SOURCE = Name(("source",))


def reads_outside(port: EventPort) -> bool:
    """Whether a port reads any events from outside."""
    return sources_asked(port) != frozenset()


def takes(port: EventPort, author: str | None, source: str) -> bool:
    """Whether a port takes an event of an author, or one from outside (None) with a source."""
    if author is not None:
        return author in rules_named(port)
    asked = sources_asked(port)
    return asked is None or source in asked


def takes_author(port: EventPort, author: str | None) -> bool:
    """Whether a port takes events of an author, or some events from outside (None)."""
    return reads_outside(port) if author is None else author in rules_named(port)


def event_ports(correlation: Correlation) -> list[EventPort]:
    return [port for port in correlation.ports if isinstance(port, EventPort)]


def rules_read(correlation: Correlation) -> tuple[str, ...]:
    """The correlations that a correlation reads, each once, in the order of its ports."""
    named = (name for port in event_ports(correlation) for name in rules_named(port))
    return tuple(dict.fromkeys(named))


def readers_of(correlations: Sequence[Correlation]) -> Mapping[str, tuple[str, ...]]:
    """For each correlation the correlations that read its outputs, in library order."""
    readers: dict[str, list[str]] = {each.name: [] for each in correlations}
    for each in correlations:
        for name in rules_read(each):
            readers.setdefault(name, []).append(each.name)
    return {name: tuple(found) for name, found in readers.items()}


def needed_for(names: Iterable[str], correlations: Sequence[Correlation]) -> frozenset[str]:
    """Some correlations, and all whose outputs reach them, over others or not."""
    read = {each.name: rules_read(each) for each in correlations}
    needed: set[str] = set()
    pending = list(names)
    while pending:
        name = pending.pop()
        if name not in needed:
            needed.add(name)
            pending += read.get(name, ())
    return frozenset(needed)
