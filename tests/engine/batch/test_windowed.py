"""Correlations with windows run side by side, and put out what they would on their own."""

from __future__ import annotations

from random import Random

import pytest

import ensue
from ensue.engine.batch import BatchEngine, arranging, combinations, visits, walks
from ensue.engine.batch.correlations import ColumnCorrelation
from ensue.engine.batch.groups import Member
from ensue.engine.batch.windowed import WindowedGroup
from ensue.errors import SnapshotError
from ensue.events.arrow import events_of, table_of
from ensue.events.event import Event
from tests.engine.batch.test_abreast import PORTS, TYPES, expected_of, filter_rule
from tests.engine.batch.test_agreement import cut, moved
from tests.oracle.agreement import as_text

SEEDS = 16


def rule(name: str, random: Random, key: str) -> str:
    """A filter with a window of some length; now and then one without."""
    within = f"within {random.choice([1, 2, 2, 3, 5, 9, 40])} ms " if random.random() < 0.8 else ""
    return filter_rule(name, random, within + key)


def alike(name: str, random: Random, key: str) -> str:
    """One of a few shapes, so that several share a table."""
    ports = random.sample(PORTS, 3)
    names = [each.split()[1] for each in ports]
    story = random.choice(["{} ; {} ; {}", "{} + {} + {}", "{} ; ({} + {})"]).format(*names)
    within = f"within {random.choice([1, 2, 3, 5, 9, 40])} ms {key}"
    return (
        f"Found correlation {name} ({', '.join(ports)}) {story} {within}"
        f" {{ case true: push new Found {{ first = {names[0]}.n, last = {names[2]}.n }}; }}"
    )


def library_of(seed: int, rules: int = 9) -> ensue.Library:
    random = Random(seed)
    key = random.choice(["by k", "by k", "by k, n", ""])
    texts = [
        (alike if random.random() < 0.6 else rule)(f"R{number}", random, key)
        for number in range(rules)
    ]
    return ensue.parse(TYPES + "\n".join(texts))


def events(seed: int, count: int = 150) -> list[Event]:
    """Some at one time, and some far from those before."""
    random = Random(seed)
    given, time = [], 0
    for n in range(count):
        time += random.choice([0, 0, 200, 300, 500, 1000, 1000, 1500, 4000])
        data = {"k": random.choice(["x", "y", "z", None]), "n": random.randrange(8)}
        given.append(Event(f"e{n}", "s", random.choice(["T", "U", "V"]), time, data))
    return given


def groups_of(engine: BatchEngine) -> list[WindowedGroup]:
    members = [each for each in engine.correlations.values() if isinstance(each, Member)]
    return [each.group for each in members if isinstance(each.group, WindowedGroup)]


def agrees(seed: int) -> int:
    """In odd batches with snapshots between them; how many rules were side by side at last."""
    library, given, random = library_of(seed), events(seed), Random(seed)
    engine = BatchEngine(library.checked)
    found: list[str] = []
    for piece in cut(given, random):
        found += [as_text(each) for each in engine.read_all(piece)]
        if random.random() < 0.3:
            engine = moved(engine, library)
    assert found == expected_of(library, given), seed
    return len(groups_of(engine))


def test_rules_with_windows_of_any_length_agree_with_the_reference() -> None:
    assert sum(agrees(seed) for seed in range(SEEDS)) > 100


def test_combinations_of_ports_are_forgotten_and_found_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(visits, "MOST_COMBINATIONS", 2)
    monkeypatch.setattr(combinations, "FEWEST_COMBINATIONS", 2)

    for seed in range(SEEDS, SEEDS + 6):
        agrees(seed)


def test_rows_go_through_in_parts_and_firings_outgrow_their_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(visits, "FIRST_ROWS", 4)
    monkeypatch.setattr(visits, "FEWEST_ROWS", 1)
    monkeypatch.setattr(visits, "FIRINGS_AT_ONCE", 1)

    for seed in range(SEEDS, SEEDS + 6):
        agrees(seed)


def test_rules_whose_table_keeps_growing_leave_in_the_middle_of_a_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They read the rest of the batch on their own, and the others go on without them."""
    monkeypatch.setattr(walks.Patience.__init__, "__defaults__", (8, 1000))
    monkeypatch.setattr(visits, "FREE_ENTRIES", 8)
    monkeypatch.setattr(visits, "FIRST_ROWS", 16)
    alone = 0

    for seed in range(8):
        library, given = library_of(seed), events(seed)
        engine = BatchEngine(library.checked)
        found = [as_text(each) for piece in (given[:100], given[100:]) for each in
                 engine.read_all(piece)]  # fmt: skip
        alone += sum(isinstance(each, ColumnCorrelation) for each in engine.correlations.values())
        assert found == expected_of(library, given), seed

    assert alone > 8


@pytest.mark.parametrize("at", [0, 3])
def test_rules_with_too_many_keys_go_on_alone(at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before they read the batch with those keys, or as soon as they are restored."""
    for seed in (2, 4, 6):
        library, given = library_of(seed), events(seed)
        engine = BatchEngine(library.checked)
        found = [as_text(each) for each in engine.read_all(given[:at])]
        for group in groups_of(engine):
            group.states.most_numbers = 0
        found += [as_text(each) for each in engine.read_all(given[at:90])]
        assert not groups_of(engine)

        monkeypatch.setattr(visits, "MOST_NUMBERS", 30)
        engine = moved(engine, library)
        found += [as_text(each) for each in engine.read_all(given[90:])]
        monkeypatch.undo()
        assert found == expected_of(library, given), seed


def test_a_state_with_too_many_orders_goes_on_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each rule for itself: the others are side by side again."""
    library, given = library_of(1), events(1)
    engine = BatchEngine(library.checked)
    found = [as_text(each) for each in engine.read_all(given[:80])]
    monkeypatch.setattr("ensue.engine.batch.snapshots.TABLE_STATES", 1)
    engine = moved(engine, library)
    alone = [isinstance(each, ColumnCorrelation) for each in engine.correlations.values()]
    found += [as_text(each) for each in engine.read_all(given[80:])]

    assert any(alone)
    assert groups_of(engine)
    assert found == expected_of(library, given)


def test_rules_with_windows_move_to_the_step_engine_and_back() -> None:
    """At any place, one event at a time."""
    moves = 0
    for seed in range(40, 46):
        library, given, random = library_of(seed), events(seed, 80), Random(seed)
        run, engine = library.start("batch"), "batch"
        found: list[str] = []
        for event in given:
            if random.random() < 0.15:
                other = "step" if engine == "batch" else "batch"
                try:
                    run = library.resume(run.snapshot(), engine=other)
                    engine, moves = other, moves + 1
                except SnapshotError as error:
                    if "cannot move to another engine" not in str(error):
                        raise
            found += [as_text(output) for output in run.push(event)]
        assert found == expected_of(library, given), seed
    assert moves > 20


def test_the_others_keep_their_state_while_rules_come_and_go() -> None:
    """What is added or replaced begins there, as it does by the definition."""
    random = Random(5)
    texts = {f"R{n}": alike(f"R{n}", random, "by k") for n in range(6)}
    library = ensue.parse(TYPES + "\n".join(texts.values()))
    runs = [library.start("batch"), library.start("reference")]
    made: list[list[str]] = [[], []]

    for number, event in enumerate(events(7, 200)):
        name = f"R{random.randrange(9)}"
        for run, out in zip(runs, made, strict=True):
            if number % 20 == 5 and name in texts:
                run.remove(name)
            elif number % 20 == 5 or (number % 20 == 15 and name not in texts):
                run.add(alike(name, Random(number), "by k"))
            elif number % 20 == 15:
                run.replace(alike(name, Random(number), "by k"))
            out += [as_text(each) for each in run.push(event)]
        if number % 20 == 5 and name in texts:
            del texts[name]
        elif number % 20 in (5, 15):
            texts[name] = ""

    assert made[0] == made[1]
    assert len(made[0]) > 20


def test_a_table_of_events_is_read_by_all_rules_at_once() -> None:
    """The outputs of all stand in the order of what they came from, then of the library."""
    library, given = library_of(3, rules=40), events(4, 200)
    types = library.checked.types
    table = table_of(given, types)
    engine = BatchEngine(library.checked)
    parts = [engine.push_batch(part) for part in (table.slice(0, 120), table.slice(120))]
    found = [(e.id, e.extensions["causes"]) for p in parts for e in events_of(p, types)]
    run = library.start("reference")
    expected = [(o.id, o.extensions["causes"]) for event in given for o in run.push(event)]

    assert len(groups_of(engine)) > 20
    assert found == expected


def test_windows_of_different_lengths_share_a_table() -> None:
    text = "\n".join(
        f"Found correlation R{n} (T a where n > {n}, U b) a ; b within {n + 1} s by k"
        " { case true: push new Found { first = a.n }; }"
        for n in range(5)
    )
    engine = BatchEngine(ensue.parse(TYPES + text).checked)
    (group, *_) = groups_of(engine)

    assert len(group.members) == 5
    assert len(group.states.tables.filled) == 1


def test_rules_without_windows_are_read_beside_those_with() -> None:
    """If enough of them are alike; they keep what they are bound to for ever."""
    random = Random(9)
    plain = [
        f"Found correlation P{n} (T a where n > {n % 7}, U b where n < {n}) a ; b ; a by k"
        " { case true: push new Found { first = a.n, last = b.n }; }"
        for n in range(arranging.FEWEST_ALIKE)
    ]
    texts = plain + [alike(f"R{n}", random, "by k") for n in range(5)]
    random.shuffle(texts)
    library, given = ensue.parse(TYPES + "\n".join(texts)), events(9, 200)
    engine = BatchEngine(library.checked)
    found: list[str] = []
    for piece in cut(given, random):
        found += [as_text(each) for each in engine.read_all(piece)]
        for group in groups_of(engine):
            group.remembered.forget_all_but(group.states.held())
        if random.random() < 0.2:
            engine = moved(engine, library)

    assert {len(group.members) for group in groups_of(engine)} == {len(texts)}
    assert {path.name for path in engine.paths.values()} == {"table", "window"}
    assert found == expected_of(library, given)


def test_events_that_have_left_every_window_are_let_go() -> None:
    """However many keys there have been."""
    library = ensue.parse(
        TYPES
        + "Found correlation A (T a, U b) a ; b within 5 ms by k { case true: push new Found { }; }"
        + "Found correlation B (U a, T b) a + b within 3 ms by k { case true: push new Found { }; }"
        + "Found correlation C (V a, T b) a ; b within 2 ms by k { case true: push new Found { }; }"
    )
    engine = BatchEngine(library.checked)
    for n in range(60):
        given = [
            Event(f"e{n}.{m}", "s", "U", n * 1000, {"k": f"k{n}.{m}", "n": 1}) for m in range(10)
        ]
        engine.read_all(given)
    (group, *_) = groups_of(engine)

    assert len(group.states.held()) <= 80


def test_rules_without_a_key_for_an_event_count_it() -> None:
    library = ensue.parse(
        TYPES
        + "Found correlation A (T a, T b) a ; b within 1 s by k { case true: push new Found { }; }"
        + "Found correlation B (U a, U b) a + b within 2 s by k { case true: push new Found { }; }"
        + "Found correlation C (V a, V b) a + b within 3 s by k { case true: push new Found { }; }"
    )
    engine = BatchEngine(library.checked)
    engine.read_all([Event(f"e{n}", "s", "TUV"[n % 3], n, {"n": n, "k": None}) for n in range(9)])

    assert groups_of(engine)
    assert engine.counts.without_key == {"A": 9, "B": 3, "C": 3}
