"""Rules that differ in their ports alone run together, and put out what they would alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random

import pytest

import ensue
from ensue.engine.batch import BatchEngine
from ensue.engine.batch.many.group import GroupMember
from ensue.engine.batch.single.correlation import ColumnCorrelation
from ensue.errors import LibraryError
from ensue.events.event import Event
from ensue.lang.derived.renaming import with_ports
from ensue.lang.expressions.tree import Not
from ensue.lang.printer import print_library
from ensue.lang.syntax import (
    CommonKey,
    Correlation,
    EclCorrelation,
    EventPort,
    FilterCorrelation,
    Port,
)
from tests.engine.batch.test_agreement import moved
from tests.engine.beside_reference import cut
from tests.oracle.agreement import Observed, as_text, events_in_order
from tests.oracle.generator import Scenario, scenario

SEEDS = 200
SEEDS_A_TEST = 50

TYPES = """
eventtype T { attribute string k; attribute string kind; attribute long n; };
eventtype U : T {};
eventtype Found { attribute long first; attribute long last; };
"""


def variants(correlation: Correlation) -> Iterator[Correlation]:
    """The correlation and others like it: the same again, asking for less, asking the opposite."""

    def asking(name: str, port: Port) -> Port:
        if not isinstance(port, EventPort) or port.where is None or name == "same":
            return port
        return replace(port, where=None if name == "less" else Not(port.where))

    yield correlation
    for name in ("same", "less", "opposite"):
        ports = tuple(asking(name, port) for port in correlation.ports)
        yield replace(correlation, name=f"{correlation.name}_{name}", ports=ports)
    if all(isinstance(key, CommonKey) for key in correlation.clauses.by):
        yield renamed(correlation)


def renamed(correlation: Correlation) -> Correlation:
    """The same with other names for its ports, which sort the other way round."""
    names = {
        port.name: f"p{99 - number}_{port.name}" for number, port in enumerate(correlation.ports)
    }
    ports = tuple(replace(port, name=names[port.name]) for port in correlation.ports)
    said: Correlation = with_ports(correlation, names)
    return replace(said, name=f"{correlation.name}_renamed", ports=ports)


def several_of_each(drawn: Scenario) -> ensue.Library | None:
    """None where copies of a correlation would read each other's outputs in a circle."""
    tree = ensue.parse(drawn.library).checked.tree
    definitions = [
        variant
        for definition in tree.definitions
        for variant in (
            variants(definition)
            if isinstance(definition, FilterCorrelation | EclCorrelation)
            else [definition]
        )
    ]
    try:
        return ensue.parse(print_library(replace(tree, definitions=tuple(definitions))))
    except LibraryError as error:
        if "circular-feeding" not in str(error):
            raise
        return None


def scenarios(first: int) -> Iterator[tuple[int, Scenario, ensue.Library, list[Event]]]:
    for seed in range(first, first + SEEDS_A_TEST):
        drawn = scenario(seed)
        library = several_of_each(drawn) if drawn.lateness is None else None
        if library is not None:
            yield seed, drawn, library, events_in_order(drawn, library)


def expected_of(library: ensue.Library, events: list[Event], until: int | None) -> Observed:
    run = library.start("reference")
    made = [output for event in events for output in run.push(event)]
    return Observed.of(made + run.finish(until), [])


def check(
    seed: int,
    drawn: Scenario,
    library: ensue.Library,
    events: list[Event],
    prepare: Callable[[BatchEngine], None],
) -> None:
    """In odd batches, with snapshots between them, outputs are those of the reference.

    `prepare` is called with the engine before each batch.
    """
    random = Random(seed)
    engine = BatchEngine(library.checked)
    made: list[Event] = []
    for piece in cut(events, random):
        prepare(engine)
        made += engine.read_all(piece)
        if random.random() < 0.3:
            engine = moved(engine, library)
    if drawn.until is not None:
        made += engine.advance(drawn.until)

    expected = expected_of(library, events, drawn.until)
    assert Observed.of(made, []).outputs == expected.outputs, (
        f"\n{print_library(library.checked.tree)}\n{seed}"
    )


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_A_TEST))
def test_rules_that_are_alike_agree_with_the_reference(first: int) -> None:
    """Also where there are more keys than a group may have numbers for."""
    grouped = 0
    for seed, drawn, library, events in scenarios(first):
        most_numbers = Random(seed).choice([5, 10_000])

        def bound(engine: BatchEngine, most_numbers: int = most_numbers) -> None:
            nonlocal grouped
            for running in engine.correlations.values():
                if isinstance(running, GroupMember):
                    running.group.visited.most_numbers = most_numbers
                    grouped += 1

        check(seed, drawn, library, events, bound)
    assert grouped > 0


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_A_TEST))
def test_tables_past_their_budget_are_left(first: int) -> None:
    """Each rule leaves its table by itself, and goes on from a snapshot of that."""

    def bound(engine: BatchEngine) -> None:
        for running in engine.correlations.values():
            if isinstance(running, GroupMember):
                running.group.visited.table_states = 2
            elif isinstance(running, ColumnCorrelation):
                running.table_states = 2

    for seed, drawn, library, events in scenarios(first):
        check(seed, drawn, library, events, bound)


def events(count: int) -> list[Event]:
    random = Random(5)
    return [
        Event(
            f"e{n}",
            "s",
            random.choice(["T", "U"]),
            n // 3,
            {
                "k": random.choice(["x", "y", "z", ""]),
                "kind": f"k{random.randrange(8)}",
                "n": random.randrange(8),
            },
        )
        for n in range(count)
    ]


def test_predicates_of_several_parts_hold_if_all_parts_do() -> None:
    """Also where a part asks for what is missing, or is no comparison at all."""
    texts = [f"kind = 'k{n % 5}' AND n > {n % 3}" for n in range(6)]
    texts += ["n > 1 AND kind = 'k1' AND k != 'x'", "kind = 'k1' AND n", "NOT (n > 2) AND k = 'y'"]
    texts += [
        "gone = 'k1' AND n > 1",
        "kind = 'k2' AND n / (n - 3) > 0",
        "kind IN ('k1') AND n < 9",
    ]
    library = ensue.parse(
        TYPES
        + "\n".join(
            f"Found correlation R{n} (T a where {text}, U b) a ; b by k"
            " { case true: push new Found { first = a.n }; }"
            for n, text in enumerate(texts)
        )
    )
    given = events(300)
    run = library.start("reference")
    expected = [as_text(output) for event in given for output in run.push(event)]

    found = [as_text(output) for output in BatchEngine(library.checked).read_all(given)]
    assert found == expected
    assert len({each.split('"correlation": ')[1].split(",")[0] for each in found}) > 6
