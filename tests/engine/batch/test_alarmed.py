"""Correlations with timers run side by side, and put out what they would on their own."""

from __future__ import annotations

from random import Random

import pytest

import ensue
from ensue.engine.batch import BatchEngine, alarms, combinations, visits
from ensue.engine.batch.alarmed import AlarmedGroup, shape_of_alarmed
from ensue.engine.batch.correlations import ColumnCorrelation
from ensue.engine.batch.groups import Member
from ensue.engine.core.timer_table import Timers
from ensue.events.arrow import events_of, table_of
from ensue.events.event import Event
from ensue.machine.plan import plan
from tests.engine.batch.test_abreast import PORTS, TYPES, expression, filter_rule
from tests.engine.batch.test_agreement import cut, moved
from tests.oracle.agreement import as_text

SEEDS = 10
FOUND = "eventtype When { attribute timestamp at; attribute long n; };\n"


def length(random: Random) -> str:
    return f"{random.choice([1, 1, 2, 3, 5])} ms"


def expression_rule(name: str, random: Random, key: str) -> str:
    """An expression with timeouts, some of them due together, some beside timers."""
    times = [length(random) for _ in range(3)]
    body = random.choice(
        [
            "repeat { notify { sequential { a, do { timeout(%s) } unless { b } } } }",
            "repeat { notify { do { sequential { a, d } } unless { timeout(%s) } } }",
            "parallel { repeat { notify { sequential { a, timeout(%s) } } },"
            " repeat { push(Found) { sequential { c, e, timeout(%s) } } },"
            " repeat { notify { do { timeout(%s) } unless { b } } } }",
            "notify { sequential { a, timeout(%s), e } }",
            "repeat { notify { sequential { true, timeout(%s), true } } }",
            "modes { in (a) do { repeat { notify { timeout(%s) } } }"
            " in (b) do { repeat { push(Found) { sequential { timeout(%s), e } } } } }",
        ]
    )
    body = body % tuple(times[: body.count("%s")])
    ports = list(PORTS)
    if random.random() < 0.3:
        ports.append(f"{random.choice(['every', 'deadline'])} {length(random)} t")
    return f"Found ecl {name} ({', '.join(ports)}) {key} {{ {body} }}"


def timer_rule(name: str, random: Random, key: str) -> str:
    """A filter with a timer port or two, and now and then a window."""
    ports = [*PORTS, f"{random.choice(['every', 'deadline'])} {length(random)} t"]
    story = random.choice(["{} ; t", "{} + t", "t ; {}", "({}) ; t ; t", "{} || t"])
    if random.random() < 0.3:
        ports.append(f"{random.choice(['every', 'deadline'])} {length(random)} u")
        story = random.choice(["({}) ; t ; u", "{} + t + u", "t + u || {}", "{} ; (t | u)"])
    random.shuffle(ports)
    within = f"within {random.choice([1, 2, 3, 9])} ms " if random.random() < 0.4 else ""
    start = "push new When { n = 0 };" if random.random() < 0.2 else ""
    case = random.choice(
        [
            "case true: push new When { at = t.time, n = a.n };",
            "case l: push new When { n = b.n }; push new When { };",
            "case true: push new When { at = t.time };",
        ]
    )
    story = story.format(f"l:({expression(random, 1)})")
    return (
        f"When correlation {name} ({', '.join(ports)}) {story} {within}{key} {{ {start} {case} }}"
    )


def library_of(seed: int, rules: int = 9) -> ensue.Library:
    random = Random(seed)
    key = random.choice(["by k", "by k", "by k, n", ""])
    texts = []
    for number in range(rules):
        kind = random.choice([expression_rule, timer_rule, timer_rule, filter_rule])
        texts.append(kind(f"R{number}", random, key))
    return ensue.parse(TYPES + FOUND + "\n".join(texts))


def events(seed: int, count: int = 150) -> list[Event]:
    """Some at one time, some far from those before, and some called as alarms are."""
    random = Random(seed)
    given, time = [], random.choice([0, -4000])
    for n in range(count):
        time += random.choice([0, 0, 500, 500, 1000, 1000, 1000, 4000])
        data = {"k": random.choice(["x", "y", "z", None]), "n": random.randrange(8)}
        name = random.choice([f"e{n}", f"e{n}", f"e{n}", "timer"])
        given.append(Event(name, "s", random.choice(["T", "U", "V"]), time, data))
    return given


def expected_of(library: ensue.Library, given: list[Event], until: int) -> list[str]:
    run = library.start("reference")
    made = [output for event in given for output in run.push(event)] + run.finish(until)
    return [as_text(output) for output in made]


def groups_of(engine: BatchEngine) -> list[AlarmedGroup]:
    members = [each for each in engine.correlations.values() if isinstance(each, Member)]
    return [each.group for each in members if isinstance(each.group, AlarmedGroup)]


def agrees(seed: int) -> int:
    """In odd batches with snapshots between them; how many rules were side by side at last."""
    library, given, random = library_of(seed), events(seed), Random(seed)
    until = given[-1].time + random.choice([0, 1000, 20_000])
    engine = BatchEngine(library.checked)
    found: list[str] = []
    for piece in cut(given, random):
        found += [as_text(each) for each in engine.read_all(piece)]
        if random.random() < 0.3:
            engine = moved(engine, library)
        if random.random() < 0.1:
            found += [as_text(each) for each in engine.advance(piece[-1].time)]
    found += [as_text(each) for each in engine.advance(until)]
    assert found == expected_of(library, given, until), seed
    return len(groups_of(engine))


def test_rules_with_timers_of_any_shape_agree_with_the_reference() -> None:
    assert sum(agrees(seed) for seed in range(SEEDS)) > 40


def test_lengths_of_timers_do_not_change_the_machine() -> None:
    """Those of one shape are built state by state alike, so they can share a table."""
    shapes: dict[object, list[ensue.Library]] = {}
    for seed in range(200):
        random = Random(seed)
        kind = random.choice([expression_rule, timer_rule])
        library = ensue.parse(TYPES + FOUND + kind("R", Random(seed % 20), "by k").replace(
            "1 ms", f"{random.choice([1, 4])} ms").replace("5 ms", "7 ms"))  # fmt: skip
        (correlation,) = library.checked.correlations
        shapes.setdefault(shape_of_alarmed(correlation), []).append(library)
    shared = 0
    for libraries in shapes.values():
        built = set()
        for library in libraries:
            (correlation,) = library.checked.correlations
            machine = plan(correlation).needed_machine
            timers = Timers(correlation, machine)
            built.add(
                (
                    tuple(each.state for each in timers.timeouts),
                    machine.initial,
                    machine.atoms,
                    tuple((each.enabling, each.clear, each.target) for each in machine.transitions),
                )
            )
        shared += len(libraries) - 1
        assert len(built) == 1
    assert shared > 100


def test_combinations_of_ports_are_forgotten_and_found_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(visits, "MOST_COMBINATIONS", 2)
    monkeypatch.setattr(combinations, "FEWEST_COMBINATIONS", 2)

    for seed in range(SEEDS, SEEDS + 3):
        agrees(seed)


def test_rows_go_through_in_parts_and_firings_outgrow_their_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(visits, "FIRST_ROWS", 4)
    monkeypatch.setattr(visits, "FEWEST_ROWS", 1)
    monkeypatch.setattr(visits, "FIRINGS_AT_ONCE", 1)
    monkeypatch.setattr(alarms, "FIRINGS_AT_ONCE", 1)

    for seed in range(SEEDS, SEEDS + 3):
        agrees(seed)


def test_rules_whose_table_keeps_growing_leave_in_the_middle_of_a_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They read the rest of the batch on their own, and the others go on without them."""
    monkeypatch.setattr(visits, "FREE_ENTRIES", 6)
    monkeypatch.setattr(visits, "FIRST_ROWS", 16)
    alone = 0

    for seed in range(8):
        library, given = library_of(seed), events(seed)
        until = given[-1].time + 9000
        engine = BatchEngine(library.checked)
        found = [as_text(each) for piece in (given[:100], given[100:]) for each in
                 engine.read_all(piece)]  # fmt: skip
        found += [as_text(each) for each in engine.advance(until)]
        alone += sum(isinstance(each, ColumnCorrelation) for each in engine.correlations.values())
        assert found == expected_of(library, given, until), seed

    assert alone > 8


@pytest.mark.parametrize("at", [0, 3])
def test_rules_with_too_many_keys_go_on_alone(at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before they read the batch with those keys, or as soon as they are restored."""
    for seed in (2, 4, 6):
        library, given = library_of(seed), events(seed)
        until = given[-1].time + 9000
        engine = BatchEngine(library.checked)
        found = [as_text(each) for each in engine.read_all(given[:at])]
        for group in groups_of(engine):
            group.states.most_numbers = 0
        found += [as_text(each) for each in engine.read_all(given[at:90])]
        assert not groups_of(engine)

        monkeypatch.setattr(visits, "MOST_NUMBERS", 60)
        engine = moved(engine, library)
        found += [as_text(each) for each in engine.read_all(given[90:])]
        found += [as_text(each) for each in engine.advance(until)]
        monkeypatch.undo()
        assert found == expected_of(library, given, until), seed


def test_rules_with_timers_move_to_the_step_engine_and_back() -> None:
    """At any place, one event at a time."""
    moves = 0
    for seed in range(40, 46):
        library, given, random = library_of(seed), events(seed, 80), Random(seed)
        run, engine = library.start("batch"), "batch"
        found: list[str] = []
        for event in given:
            if random.random() < 0.15:
                engine = "step" if engine == "batch" else "batch"
                run = library.resume(run.snapshot(), engine=engine)
                moves += 1
            found += [as_text(output) for output in run.push(event)]
        until = given[-1].time + 9000
        found += [as_text(output) for output in run.finish(until)]
        assert found == expected_of(library, given, until), seed
    assert moves > 20


def test_the_others_keep_their_state_while_rules_come_and_go() -> None:
    """What is added or replaced begins there, as it does by the definition."""
    random = Random(5)
    names = [f"R{n}" for n in range(6)]
    library = ensue.parse(
        TYPES + FOUND + "\n".join(expression_rule(name, random, "by k") for name in names)
    )
    runs = [library.start("batch"), library.start("reference")]
    made: list[list[str]] = [[], []]

    for number, event in enumerate(events(7, 200)):
        name = f"R{random.randrange(9)}"
        kind = random.choice([expression_rule, timer_rule])
        for run, out in zip(runs, made, strict=True):
            if number % 20 == 5 and name in names:
                run.remove(name)
            elif number % 20 == 15 and name in names:
                run.replace(kind(name, Random(number), "by k"))
            elif number % 20 in (5, 15):
                run.add(kind(name, Random(number), "by k"))
            out += [as_text(each) for each in run.push(event)]
        if number % 20 == 5 and name in names:
            names.remove(name)
        elif number % 20 in (5, 15) and name not in names:
            names.append(name)

    assert made[0] == made[1]
    assert len(made[0]) > 20


def test_a_rule_with_a_bound_timer_is_joined_by_one_that_asks_for_its_time() -> None:
    """What was alone until then has not kept the time of the firing, and is not asked for it."""
    asking = [
        f"When correlation R{n} (T a, every 2 ms t) t ; a by k"
        f" {{ case true: push new When {{ {asked} }}; }}"
        for n, asked in enumerate(["n = a.n", "at = t.time", "at = t.time, n = a.n"])
    ]
    made: list[list[Event]] = []
    for engine in ("batch", "reference"):
        run = ensue.parse(TYPES + FOUND + asking[0]).start(engine)
        found: list[Event] = []
        for n in range(9):
            # Now and then a timer has fired just before a rule is added.
            found += run.advance(n * 1500 - 100) if n else []
            if n == 2:
                run.add(asking[1])
            if n == 6:
                run.add(asking[2])
            found += run.push(Event(f"e{n}", "s", "T", n * 1500, {"k": "x", "n": n}))
        made.append(found)

    assert made[0] == made[1]
    assert {each.extensions["correlation"] for each in made[0]} == {"R0", "R1", "R2"}


def test_a_table_of_events_is_read_by_all_rules_at_once() -> None:
    """Alarms stand before the events of their time, in the order of the library, then of keys."""
    library, given = library_of(3, rules=40), sorted(events(4, 200), key=lambda each: each.time)
    types = library.checked.types
    table = table_of(given, types)
    engine = BatchEngine(library.checked)
    until = given[-1].time + 9000
    parts = [engine.push_batch(part) for part in (table.slice(0, 120), table.slice(120))]
    parts.append(engine.finish(until))
    found = [(e.id, e.extensions["causes"]) for p in parts for e in events_of(p, types)]
    run = library.start("reference")
    made = [o for event in given for o in run.push(event)] + run.finish(until)

    assert len(groups_of(engine)) > 20
    assert found == [(o.id, o.extensions["causes"]) for o in made]


def test_timers_of_different_lengths_share_a_table() -> None:
    text = "\n".join(
        f"Found ecl R{n} (T a where n > {n}, U b) by k"
        f" {{ notify {{ do {{ sequential {{ a, timeout({n + 1} s) }} }} unless {{ b }} }} }}"
        for n in range(5)
    )
    engine = BatchEngine(ensue.parse(TYPES + text).checked)
    (group, *_) = groups_of(engine)

    assert len(group.members) == 5
    assert len(group.states.tables.filled) == 1


def test_the_next_due_time_is_that_of_the_first_alarm_of_any_rule() -> None:
    text = "\n".join(
        f"Found ecl R{n} (T a where n = {n}, U b) by k"
        f" {{ notify {{ sequential {{ a, timeout({9 - n} s) }} }} }}"
        for n in range(5)
    )
    engine = BatchEngine(ensue.parse(TYPES + text).checked)
    assert engine.next_due() is None
    engine.read_all([Event("0", "s", "U", -5, {"k": "y", "n": 7})])
    assert engine.next_due() is None
    engine.read_all([Event("1", "s", "T", 0, {"k": "x", "n": 1})])
    assert engine.next_due() == 8_000_000
    engine.read_all([Event("2", "s", "T", 1_000_000, {"k": "x", "n": 4})])
    assert engine.next_due() == 6_000_000
    assert len(engine.advance(7_000_000)) == 1
    assert engine.next_due() == 8_000_000


def test_a_timer_that_is_stopped_is_not_the_next_one_due() -> None:
    """After any event, one at a time."""
    for seed in (60, 61):
        library, given = library_of(seed), events(seed, 60)
        run, judge = library.start("batch"), library.start("reference")
        for event in given:
            assert run.push(event) == judge.push(event)
            assert run.next_due() == judge.next_due()


def test_rules_without_a_key_for_an_event_count_it() -> None:
    text = "\n".join(
        f"Found ecl R{n} ({'TUV'[n]} a) by k"
        " { repeat { notify { sequential { a, timeout(1 s) } } } }"
        for n in range(3)
    )
    engine = BatchEngine(ensue.parse(TYPES + text).checked)
    engine.read_all([Event(f"e{n}", "s", "TUV"[n % 3], n, {"n": n, "k": None}) for n in range(9)])

    assert len(groups_of(engine)) == 3
    assert engine.counts.without_key == {"R0": 9, "R1": 3, "R2": 3}


@pytest.mark.parametrize("seed", range(4))
def test_one_rule_with_timers_is_read_by_the_loop_of_a_group(seed: int) -> None:
    random = Random(seed)
    text = (timer_rule, expression_rule)[seed % 2]("R", random, "by k")
    library = ensue.parse(TYPES + FOUND + text)
    given = events(seed)
    engine = BatchEngine(library.checked)

    assert groups_of(engine)
    found = [as_text(each) for piece in cut(given, random) for each in engine.read_all(piece)]
    assert found == [as_text(each) for each in library.run(given, engine="reference")]
