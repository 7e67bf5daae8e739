"""Correlations that are alike run together, and put out what they would put out on their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest

import ensue
from ensue.engine.batch import BatchEngine, arranging, groups
from ensue.engine.batch.correlations import ColumnCorrelation
from ensue.engine.batch.groups import Member
from ensue.engine.batch.together import RuleGroup
from ensue.engine.renaming import with_ports
from ensue.errors import LibraryError
from ensue.events.arrow import events_of, table_of
from ensue.events.event import Event
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
from tests.engine.batch.test_agreement import cut, moved, sorted_events
from tests.oracle.agreement import Observed, as_text
from tests.oracle.generator import Scenario, scenario

SEEDS = 200
SEEDS_A_TEST = 50

TYPES = """
eventtype T { attribute string k; attribute string kind; attribute long n; };
eventtype U : T {};
eventtype Found { attribute long first; attribute long last; };
"""


@pytest.fixture(autouse=True)
def _two_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two that are alike run together, whatever else there is."""
    monkeypatch.setattr(arranging, "FEWEST_ALIKE", 2)


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
            yield seed, drawn, library, sorted_events(drawn, library)


def expected_of(library: ensue.Library, events: list[Event], until: int | None) -> Observed:
    run = library.start("reference")
    made = [output for event in events for output in run.push(event)]
    return Observed.of(made + run.finish(until), [])


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_A_TEST))
def test_rules_that_are_alike_agree_with_the_reference(first: int) -> None:
    """In odd batches, with snapshots between them, some of which are larger than a group may be."""
    grouped = 0
    for seed, drawn, library, events in scenarios(first):
        random = Random(seed)
        engine = BatchEngine(library.checked)
        most_states = random.choice([5, 1000])
        made: list[Event] = []
        for piece in cut(events, random):
            for running in engine.correlations.values():
                if isinstance(running, Member):
                    running.group.most_states = most_states
                    grouped += 1
            made += engine.read_all(piece)
            if random.random() < 0.3:
                engine = moved(engine, library)
        if drawn.until is not None:
            made += engine.advance(drawn.until)

        expected = expected_of(library, events, drawn.until)
        assert Observed.of(made, []).outputs == expected.outputs, (
            f"\n{print_library(library.checked.tree)}\n{seed}"
        )
    assert grouped > 0


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_A_TEST))
def test_tables_past_their_budget_are_left_by_whole_groups(first: int) -> None:
    """Each member then leaves its table on its own, and goes on from a snapshot of that."""
    for seed, drawn, library, events in scenarios(first):
        random = Random(seed)
        engine = BatchEngine(library.checked)
        made: list[Event] = []
        for piece in cut(events, random):
            for running in engine.correlations.values():
                if isinstance(running, Member) and isinstance(running.group, RuleGroup):
                    running.group.table_states = 2
                elif isinstance(running, ColumnCorrelation):
                    running.table_states = 2
            made += engine.read_all(piece)
            if random.random() < 0.3:
                engine = moved(engine, library)
        if drawn.until is not None:
            made += engine.advance(drawn.until)

        expected = expected_of(library, events, drawn.until)
        assert Observed.of(made, []).outputs == expected.outputs, (
            f"\n{print_library(library.checked.tree)}\n{seed}"
        )


def rules(count: int) -> str:
    return TYPES + "\n".join(
        f"Found correlation R{n} (T a where kind = 'k{n % 7}', U b where n > {n % 5},"
        f" T c where kind = 'k{n % 3}') a ; b ; c by k"
        " { case true: push new Found { first = a.n, last = c.n }; }"
        for n in range(count)
    )


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


def test_a_table_of_events_is_read_by_many_rules_at_once() -> None:
    """The outputs of all stand in the order of what they came from, then of the library."""
    library = ensue.parse(rules(40))
    types = library.checked.types
    engine = BatchEngine(library.checked)
    table = table_of(events(300), types)
    run = library.start("reference")
    expected = [output for event in events(300) for output in run.push(event)]

    found = [
        as_text(output)
        for part in (table[:100], table[100:101], table[101:])
        for output in events_of(engine.push_batch(part), types)
    ]

    assert len(expected) > 500
    assert found == [as_text(each) for each in expected]


def test_a_rule_that_comes_keeps_the_state_of_those_like_it() -> None:
    """And one that goes takes only its own."""
    given = events(120)
    runs = [ensue.parse(rules(10)).start(engine) for engine in ("reference", "batch")]

    made = []
    for run in runs:
        outputs = run.push_all(given[:60])
        run.remove("R3")
        run.add(rules(11).splitlines()[-1])
        made.append([as_text(each) for each in outputs + run.push_all(given[60:])])

    assert made[0] == made[1]
    assert made[0]


def test_rules_that_differ_in_more_than_their_ports_do_not_run_together() -> None:
    """Other statements, other keys, another filter."""
    texts = [
        "T correlation A (T a, T b) a ; b by k { case true: push b; }",
        "T correlation B (T a, T b) a ; b by k { case true: push a; }",
        "T correlation C (T a, T b) a ; b by n { case true: push b; }",
        "T correlation D (T a, T b) a + b by k { case true: push b; }",
        "T correlation E (T a, T b where n > 1) a ; b by k { case true: push b; }",
        "T correlation F (T b, T a where n > 1) b ; a by k { case true: push a; }",
    ]
    unlinked = [text.replace("T correlation", "Found correlation") for text in texts]
    pushed = "push new Found { first = a.n }"
    library = TYPES + "\n".join(
        text.replace("push b", pushed).replace("push a;", "push new Found { last = a.n };")
        if "F (" not in text
        else text.replace("push a", "push new Found { first = b.n }")
        for text in unlinked
    )
    running = BatchEngine(ensue.parse(library).checked).correlations
    members = [each for each in running.values() if isinstance(each, Member)]

    assert [each.name for each in members if isinstance(each.group, RuleGroup)] == ["A", "E", "F"]


def test_events_that_no_key_holds_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether they came in tables or one by one; what is held is put out as ever."""
    monkeypatch.setattr(groups, "SMALLEST_CLEARING", 20)
    library = ensue.parse(rules(40))
    given = events(300)
    run = library.start("reference")
    expected = [as_text(output) for event in given for output in run.push(event)]
    engine = BatchEngine(library.checked)
    found = [as_text(output) for event in given for output in engine.read(event)]
    running = engine.correlations["R0"]
    assert isinstance(running, Member)

    assert found == expected
    assert running.remembered.recent_rows < 100
    assert len(running.remembered.parts) < 102


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
