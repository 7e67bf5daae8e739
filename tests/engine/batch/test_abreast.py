"""Correlations of different shapes run abreast, and put out what they would on their own."""

from __future__ import annotations

from random import Random

import pytest

import ensue
from ensue.engine.batch import BatchEngine, arranging, combinations, walks
from ensue.engine.batch.abreast import AbreastGroup
from ensue.engine.batch.correlations import ColumnCorrelation
from ensue.engine.batch.groups import Member
from ensue.events.arrow import events_of, table_of
from ensue.events.event import Event
from tests.engine.batch.test_agreement import cut, moved
from tests.oracle.agreement import as_text

TYPES = """
eventtype T { attribute string k; attribute long n; };
eventtype U : T {};
eventtype V : T {};
eventtype Found { attribute long first; attribute long last; };
"""
PORTS = ("T a where n > 2", "U b", "V c where n = 1 OR n = 5", "T d where n < 2", "T e")
SEEDS = 25


def expression(random: Random, depth: int) -> str:
    if depth == 0 or random.random() < 0.2:
        times = random.choice(["", "", "", "{2}", "{5}"])
        return random.choice("abcde") + times
    sign = random.choice([" ; ", " ; ", " + ", " | "])
    parts = [expression(random, depth - 1) for _ in range(random.choice([2, 2, 3]))]
    return f"({sign.join(parts)})"


def filter_rule(name: str, random: Random, key: str) -> str:
    """A filter of some shape, with labels and cases of several kinds."""
    ports = list(PORTS)
    random.shuffle(ports)
    first, second = random.sample("abcde", 2)
    more = f" || m:({expression(random, 1)})" if random.random() < 0.3 else ""
    start = "push new Found { first = 0 };" if random.random() < 0.2 else ""
    case = random.choice(
        [
            f"case l: push new Found {{ first = {first}.n, last = {second}.n }};",
            f"case l: push new Found {{ first = {first}.n }}; push new Found {{ }};",
            f"case true: push new Found {{ last = {first}.n + {second}.n }};",
        ]
    )
    if more:
        case += " case m & !l: push new Found { };"
    return (
        f"Found correlation {name} ({', '.join(ports)})"
        f" l:({expression(random, 2)}){more} {key} {{ {start} {case} }}"
    )


def ecl_rule(name: str, random: Random, key: str) -> str:
    inner = random.choice(
        [
            "sequential { a, b }",
            "accumulate { a, b, c }",
            "do { sequential { a, c } } unless { d }",
            "select { sequential { a, b }, sequential { c, e, e } }",
        ]
    )
    return f"Found ecl {name} ({', '.join(PORTS)}) {key} {{ repeat {{ notify {{ {inner} }} }} }}"


def library_of(seed: int, rules: int = 9) -> ensue.Library:
    random = Random(seed)
    key = random.choice(["by k", "by k", "by k, n", ""])
    texts = [
        (ecl_rule if random.random() < 0.2 else filter_rule)(f"R{number}", random, key)
        for number in range(rules)
    ]
    return ensue.parse(TYPES + "\n".join(texts))


def events(seed: int, count: int = 150) -> list[Event]:
    random = Random(seed)
    return [
        Event(
            f"e{n}",
            "s",
            random.choice(["T", "U", "V"]),
            n // 3,
            {"k": random.choice(["x", "y", "z", None]), "n": random.randrange(8)},
        )
        for n in range(count)
    ]


def expected_of(library: ensue.Library, given: list[Event]) -> list[str]:
    run = library.start("reference")
    return [as_text(output) for event in given for output in run.push(event)]


def groups_of(engine: BatchEngine) -> list[AbreastGroup]:
    members = [each for each in engine.correlations.values() if isinstance(each, Member)]
    return [each.group for each in members if isinstance(each.group, AbreastGroup)]


def agrees(seed: int, most_cells: int | None = None) -> int:
    """In odd batches with snapshots between them; how many rules were abreast before a batch."""
    library, given, random = library_of(seed), events(seed), Random(seed)
    engine = BatchEngine(library.checked)
    found: list[str] = []
    abreast = 0
    for piece in cut(given, random):
        for group in groups_of(engine):
            abreast += 1
            group.states.most_cells = most_cells or group.states.most_cells
        found += [as_text(each) for each in engine.read_all(piece)]
        if random.random() < 0.3:
            engine = moved(engine, library)
    assert found == expected_of(library, given), seed
    return abreast


def test_rules_of_any_shape_agree_with_the_reference() -> None:
    assert sum(agrees(seed) for seed in range(SEEDS)) > 400


def test_joint_states_that_nobody_is_in_are_forgotten() -> None:
    """However often that is, the answers stay the same."""
    for seed in range(SEEDS, SEEDS + 6):
        agrees(seed, most_cells=1)


def test_combinations_of_ports_are_forgotten_and_found_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(combinations, "MOST_COMBINATIONS", 2)
    monkeypatch.setattr(combinations, "FEWEST_COMBINATIONS", 2)

    for seed in range(SEEDS, SEEDS + 6):
        agrees(seed)


def test_a_rule_whose_table_keeps_growing_leaves_in_the_middle_of_a_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It reads the rest of the batch on its own, and the others go on without it."""
    monkeypatch.setattr(walks.Patience.__init__, "__defaults__", (8, 1000))
    alone = 0

    for seed in range(8):
        library, given = library_of(seed), events(seed)
        engine = BatchEngine(library.checked)
        found = [as_text(each) for piece in (given[:100], given[100:]) for each in
                 engine.read_all(piece)]  # fmt: skip
        alone += sum(isinstance(each, ColumnCorrelation) for each in engine.correlations.values())
        assert found == expected_of(library, given), seed

    assert alone > 8


def test_a_table_of_events_is_read_by_rules_of_many_shapes_at_once() -> None:
    """The outputs of all stand in the order of what they came from, then of the library."""
    library, given = library_of(3, rules=40), events(4, 200)
    types = library.checked.types
    table = table_of(given, types)
    engine = BatchEngine(library.checked)
    parts = [engine.push_batch(part) for part in (table.slice(0, 120), table.slice(120))]
    found = [(e.id, e.extensions["causes"]) for p in parts for e in events_of(p, types)]
    run = library.start("reference")
    expected = [(o.id, o.extensions["causes"]) for event in given for o in run.push(event)]

    assert len(groups_of(engine)) == 40
    assert found == expected


def test_few_rules_that_are_alike_run_abreast_with_others() -> None:
    """And many of them together: a pass for all of one shape costs less then."""

    def rules(name: str, count: int, story: str) -> str:
        return "\n".join(
            f"Found correlation {name}{n} (T a where n > {n}, U b) {story} by k"
            " { case true: push new Found { first = a.n }; }"
            for n in range(count)
        )

    text = rules("A", 3, "a ; b") + rules("B", arranging.FEWEST_ALIKE, "a + b")
    text += rules("C", 1, "a ; b ; a")
    engine = BatchEngine(ensue.parse(TYPES + text).checked)

    abreast = {name for group in groups_of(engine) for name in group.members}
    assert abreast == {"A0", "A1", "A2", "C0"}
    assert all(isinstance(each, Member) for each in engine.correlations.values())


def test_rules_without_a_key_for_an_event_count_it() -> None:
    library = ensue.parse(
        TYPES
        + "Found correlation A (T a, T b) a ; b by k { case true: push new Found { }; }"
        + "Found correlation B (U a, U b) a + b by k { case true: push new Found { }; }"
    )
    engine = BatchEngine(library.checked)
    engine.read_all([Event(f"e{n}", "s", "TUV"[n % 3], n, {"n": n, "k": None}) for n in range(9)])

    assert groups_of(engine)
    assert engine.counts.without_key == {"A": 9, "B": 3}
