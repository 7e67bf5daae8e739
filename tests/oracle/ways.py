"""Ways to run a scenario that must not change what it puts out, for campaigns.

In comes a scenario; out goes, by the name of the way, what differs from what was expected. The
oracle judges every engine, and runs that are cut into batches, saved, and moved from engine to
engine on the way. Where rules come and go, and where the input is a table, the reference engine is
the judge: the oracle knows neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

import pyarrow as pa

import ensue
from ensue.engine.batch import BatchEngine
from ensue.engine.batch.output.schema import events_table, output_schema
from ensue.errors import LibraryError, SnapshotError
from ensue.events.arrow import events_of, table_of
from ensue.events.event import Event
from ensue.lang.checked import CheckedLibrary

from .agreement import Observed, as_text, events_in_order, observe_engine, observe_oracle, started
from .generator import Drawing, Scenario

ENGINES = ("reference", "step", "batch")
CANNOT_MOVE = ("cannot move to another engine", "goes by the events themselves")


@dataclass(frozen=True)
class Disagreement:
    """A way in which a scenario came out otherwise than expected."""

    way: str
    scenario: Scenario
    expected: Observed
    given: Observed

    def __str__(self) -> str:
        return f"{self.scenario}\nexpected:\n{self.expected}\n{self.way}:\n{self.given}"


def disagreements(drawn: Scenario, changed: list[str] | None = None) -> Iterator[Disagreement]:
    """All that differs; `changed` are texts that replace the library while it runs, if given."""
    library = ensue.parse(drawn.library)
    expected = observe_oracle(drawn, library)
    ways: dict[str, Callable[[], Observed]] = {
        engine: lambda engine=engine: observe_engine(drawn, library, engine)  # type: ignore[misc]
        for engine in ENGINES
    }
    ways |= {
        "wandering": lambda: wandering(drawn, library),
        "in pieces": lambda: in_pieces(drawn, library),
        "from tables": lambda: observe_engine(
            drawn, ensue.Library.from_tables(library.tables()), "step"
        ),
    }
    for name, way in ways.items():
        given = _safely(way)
        if given != expected:
            yield Disagreement(name, drawn, expected, given)
    if drawn.lateness is None:
        wanted, found = as_tables(drawn, library)
        if wanted != found:
            yield Disagreement("as tables", drawn, wanted, found)
    if changed:
        wanted = _safely(lambda: with_changes(drawn, changed, "reference"))
        for engine in ENGINES[1:]:
            found = _safely(lambda engine=engine: with_changes(drawn, changed, engine))  # type: ignore[misc]
            if wanted != found:
                yield Disagreement(f"{engine}, rules changed", drawn, wanted, found)


def _safely(way: Callable[[], Observed]) -> Observed:
    try:
        return way()
    except Exception as error:  # a crash is a difference like any other
        return Observed([], [], f"{type(error).__name__}: {error}")


def outputs_table(events: Sequence[Event], library: CheckedLibrary) -> pa.Table:
    """Outputs as a table, by the columns of their library."""
    return events_table(events, library.types, output_schema(library.types, library.correlations))


def wandering(drawn: Scenario, library: ensue.Library) -> Observed:
    """The run is saved at random places and goes on with any engine that takes it."""
    draw = Random(drawn.seed)
    run = started(drawn, library, draw.choice(ENGINES))
    made: list[Event] = []
    for event in events_in_order(drawn, library):
        if draw.random() < 0.3:
            try:
                run = library.resume(run.snapshot(), engine=draw.choice(ENGINES))
            except SnapshotError as error:
                if not any(each in str(error) for each in CANNOT_MOVE):
                    raise
        made += run.push(event)
    return Observed.of([*made, *run.finish(drawn.until)], run.late)


def in_pieces(drawn: Scenario, library: ensue.Library) -> Observed:
    """Batches of odd sizes, single events and empty batches, with snapshots between them."""
    draw = Random(drawn.seed)
    run = started(drawn, library, "batch")
    made: list[Event] = []
    events = events_in_order(drawn, library)
    while events:
        size = draw.choice([0, 1, 1, 2, 3, 5, 13])
        piece, events = events[:size], events[size:]
        made += run.push_all(piece) if size != 1 else run.push(piece[0])
        if draw.random() < 0.3:
            run = library.resume(run.snapshot())
    return Observed.of([*made, *run.finish(drawn.until)], run.late)


def as_tables(drawn: Scenario, library: ensue.Library) -> tuple[Observed, Observed]:
    """Arrow tables in and out, cut in two at an odd place; what is expected, and what came."""
    types = library.checked.types
    table = table_of(events_in_order(drawn, library), types)
    reference = library.start("reference")
    outputs = [made for event in events_of(table, types) for made in reference.push(event)]
    outputs += reference.finish(drawn.until)
    wanted = [as_text(each) for each in events_of(outputs_table(outputs, library.checked), types)]

    def found() -> Observed:
        engine = BatchEngine(library.checked)
        at = drawn.seed % (table.num_rows + 1)
        parts = [engine.push_batch(table.slice(0, at)), engine.push_batch(table.slice(at))]
        parts.append(engine.finish(drawn.until))
        return Observed([as_text(each) for out in parts for each in events_of(out, types)], [])

    return Observed(wanted, []), _safely(found)


def with_changes(drawn: Scenario, changed: list[str], engine: str) -> Observed:
    """Rules are replaced, removed and added back at random places, the same for every engine."""
    draw = Random(drawn.seed)
    library = ensue.parse(drawn.library)
    run = started(drawn, library, engine)
    made: list[Event] = []
    refused: list[str] = []
    for event in events_in_order(drawn, library):
        if draw.random() < 0.15:
            text = draw.choice([*changed, drawn.library])
            name = draw.choice(library.correlations.names)
            try:
                if draw.random() < 0.3:
                    run.remove(name)
                else:
                    run.replace(text)
            except (LibraryError, ensue.UsageError) as error:
                refused.append(f"{type(error).__name__}: {error}".splitlines()[0])
        made += run.push(event)
    seen = Observed.of([*made, *run.finish(drawn.until)], run.late)
    return Observed(seen.outputs, [*seen.late, *refused])


def variants(drawing: Drawing) -> list[str]:
    """Other bodies for the rules of a drawing, under the same names, each as one text."""
    texts = []
    for rule in drawing.rules:
        rule.labels = []
        is_ecl = drawing.chance(0.45)
        texts.append(drawing.ecl_text(rule) if is_ecl else drawing.filter_text(rule))
    return texts
