"""Random pairs of rules: what is said of them agrees with running them.

The rules come from the oracle's generator, so that ports overlap by type, source and predicate, and
windows, timers, timeouts, labels and keys all occur. A relation is a claim about all sequences: it
is held against random streams. A witness is a claim about one: it is run.
"""

from __future__ import annotations

import json
from contextlib import suppress

import pytest

import ensue
from ensue.events.cloudevents import decode
from ensue.events.conformance import conform
from ensue.lang.syntax import Correlation
from ensue.library import Library
from ensue.machine.analyses.comparison import compare
from tests.oracle.generator import Drawing

from . import rules

PAIRS = 150
STREAMS = 6
WORK = 400_000


def draw_pair(seed: int) -> tuple[Drawing, Library]:
    """Two rules over the same ports and keys; drawn again if they would feed each other."""
    for attempt in range(100):
        drawing = Drawing(seed + attempt * 1_000_000)
        drawing.draw_types()
        drawing.depth = drawing.random.choice([1, 2, 3])
        rule = drawing.draw_rule()
        by = drawing.by_clause(rule)
        drawing.by_clause = lambda _, by=by: by  # type: ignore[method-assign, misc]
        texts = [drawing.type_text(each) for each in drawing.types]
        for name in ("One", "Two"):
            rule.name, rule.labels = name, []
            is_ecl = drawing.chance(0.45)
            texts.append(drawing.ecl_text(rule) if is_ecl else drawing.filter_text(rule))
        with suppress(ensue.LibraryError):
            return drawing, ensue.parse("\n".join(texts))
    raise AssertionError("no pair was drawn")


def observe(library: Library, correlation: Correlation, stream: list[ensue.Event]) -> set[object]:
    """The moments at which a correlation puts out: number or time, and key."""
    run = rules.alone(library, correlation)
    seen: set[object] = set()
    for number, event in enumerate(stream):
        by_clock, by_event = run.advance(event.time), run.push(event)
        seen |= {("clock", each.time, *rules.keys_of([each])) for each in by_clock}
        seen |= {("event", number, *rules.keys_of([each])) for each in by_event}
    return seen


def draw_stream(drawing: Drawing, library: Library) -> list[ensue.Event]:
    types = library.checked.types
    events = [conform(decode(json.dumps(each)), types) for each in drawing.draw_events()]
    return sorted(events, key=lambda event: event.time)


@pytest.mark.parametrize("seed", range(PAIRS))
def test_a_relation_agrees_with_what_streams_show(seed: int) -> None:
    drawing, library = draw_pair(seed)
    one, two = library.correlations
    found = compare(one, two, library.checked.types, WORK)

    rules.verify(library, found)
    for _ in range(STREAMS):
        stream = draw_stream(drawing, library)
        first, second = (observe(library, each, stream) for each in (one, two))
        if found.relation in ("equivalent", "contained"):
            assert first <= second
        if found.relation in ("equivalent", "contains"):
            assert second <= first
