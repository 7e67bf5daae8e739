"""Rules that are stepped together put out what each of them puts out by itself."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

import ensue
from ensue.engine.run import Run
from ensue.engine.step import StepStream
from ensue.engine.step.many import grouping
from ensue.events.event import Event
from tests.engine.variations import table_states

TYPES = """
eventtype T { attribute string k; attribute long v; attribute string w; };
eventtype S : T {};
eventtype Out { attribute string k; attribute long v; attribute boolean b; };
eventtype More { attribute string k; };
eventtype Told {};
"""
FILTERS = [
    "a ; b ; c",
    "l1:(a ; b) | l2:c",
    "(a + b) ; c",
    "a + b + c",
    "l1:(a ; a ; b) || l2:(b ; c)",
    "l1:a | l2:(b + c) ; a",
    "a{3} ; (b | c)",
]
CLAUSES = ["", "by k", "by k, w", "by v", "within 2 ms by k", "within 1 ms", "within 3 ms by v"]


@pytest.fixture(autouse=True)
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rules of one key are enough."""
    monkeypatch.setattr(grouping, "FEWEST_IN_CELLS", 2)


def rule(name: str, body: str, draw: Random) -> str:
    predicates = ["v > 1", "v > 2", "v = 3", "w = 'x'", "w != 'x'", "v < 2 OR w = 'y'"]
    ports = [
        f"{draw.choice('TTS')} {port}"
        + (" from 's1'" if draw.random() < 0.15 else "")
        + (f" where {draw.choice(predicates)}" if draw.random() < 0.9 else "")
        for port in "abc"
    ]
    return f"Out correlation {name} ({', '.join(ports)}) {body}\n"


def bodies(draw: Random) -> str:
    expression, clause = draw.choice(FILTERS), draw.choice(CLAUSES)
    made = draw.choice(
        [
            "case true: push new Out { k = a.k, v = c.v, b = true };",
            "case true: push new Out { v = 1 }; push new Out { k = 'x', v = b.v };",
            "case true: push new Out { v = b.v };",
            "case true: push new Out { k = CONCAT(a.k, b.w), v = a.v + c.v * 2, b = a.v = b.v };",
            "case true: push new Out { k = c.id, v = b.v / (a.v - 1) }; push new Out { v = -c.v };",
        ]
    )
    if "l1" in expression:
        made = draw.choice(
            [
                "case l1: push new Out { k = a.k, v = 7 }; case l2: push new Out { v = c.v };",
                "case l1 & !l2: push new Out { k = b.k };",
                "case l1: push new Out { v = a.v - b.v }; case l2: push new Out { v = INT(c.v) };",
            ]
        )
    return f"{expression} {clause} {{ {made} }}"


def events(draw: Random, count: int) -> list[Event]:
    made = []
    time = 0
    for number in range(count):
        time += draw.choice([0, 0, 1, 1000])
        data = {
            "k": draw.choice(["k1", "k2", None]),
            "v": draw.randrange(4),
            "w": draw.choice(["x", "y", "z"]),
        }
        extra = {"k": "other", "v": 2} if draw.random() < 0.1 else {}
        # An id that comes twice at one time is counted on, not repeated.
        name = f"e{number - draw.randrange(2)}"
        source = draw.choice(["s1", "s2"])
        made.append(Event(name, source, draw.choice(["T", "S"]), time, data, extra))
    return made


def texts(draw: Random) -> list[str]:
    """Rules of two shapes, interleaved."""
    first, second = bodies(draw), bodies(draw)
    return [
        rule(f"R{number}", draw.choice([first, first, second]), draw)
        for number in range(draw.randrange(2, 12))
    ]


def pushed(run: Run, given: list[Event]) -> Iterator[list[Event]]:
    for event in given:
        yield run.push(event)


def test_a_group_puts_out_what_its_rules_put_out_by_the_definitions() -> None:
    for seed in range(40):
        draw = Random(seed)
        library = ensue.parse(TYPES + "".join(texts(draw)))
        given = events(draw, 60)
        plain, together = library.start("reference"), library.start("step")
        expected = list(pushed(plain, given))

        assert list(pushed(together, given)) == expected, seed
        assert together.counts == plain.counts
        with table_states(2):
            assert list(pushed(library.start("step"), given)) == expected, seed


def test_values_that_differ_in_a_constant_or_a_port_are_computed_for_each_rule() -> None:
    computed = ["a.v + 1", "INT(a.v + 1.0)", "b.v + 1", "a.v + 2", "a.v + 1"]
    rules = [
        f"Out correlation R{number} (T a where v = 0, T b where v > 0) a ; b"
        f" {{ case true: push new Out {{ v = {value} }}; }}"
        for number, value in enumerate(computed)
    ]
    renamed = rules[0].replace("R0", "R9").replace("T a", "T one").replace(" a ;", " one ;")
    library = ensue.parse(TYPES + "\n".join([*rules, renamed.replace("a.v", "one.v")]))
    given = [Event(f"e{n}", "s", "T", n, {"k": "k", "v": n, "w": "x"}) for n in range(4)]

    made = list(library.run(given, engine="step"))

    assert made == list(library.run(given, engine="reference"))
    assert [each.data["v"] for each in made[:6]] == [1, 1, 2, 2, 1, 1]


def test_rules_come_to_a_group_and_leave_it_and_the_others_keep_their_state() -> None:
    """Added, replaced and removed at random places, and saved and brought back."""
    for seed in range(10, 22):
        draw = Random(seed)
        first_rules = texts(draw)
        runs = [ensue.parse(TYPES + "".join(first_rules)).start(e) for e in ("reference", "step")]
        spare = bodies(draw)
        reader = "More correlation Reader (Out o) o { case true: push new More { k = o.k }; }"
        for number, event in enumerate(events(draw, 60)):
            if draw.random() < 0.2:
                names = [each.name for each in ensue.parse(runs[0].text).correlations]
                match draw.randrange(5):
                    case 0:
                        changed = rule(f"A{number}", draw.choice([spare, bodies(draw)]), draw)
                    case 1 if names:
                        changed = rule(draw.choice(names), spare, draw)
                    case 2 if "Reader" not in names:
                        changed = reader
                    case _:
                        changed = ""
                for run in runs:
                    if changed:
                        run.replace(changed)
                    elif names:
                        run.remove(names[len(names) // 2])
                if draw.random() < 0.5:
                    runs[1] = ensue.parse(runs[1].text).resume(runs[1].snapshot())
            plain, together = (run.push(event) for run in runs)

            assert together == plain, (seed, number)
        assert runs[0].counts == runs[1].counts


def test_shapes_that_share_a_key_are_stepped_together_while_they_come_and_go() -> None:
    """All in one group, with windows and without."""
    together = 0
    for seed in range(30, 34):
        draw = Random(seed)
        drawn = [f"{draw.choice(FILTERS)} {draw.choice(['', 'within 2 ms'])}" for _ in range(5)]
        shapes = [f"{each} by k {{ case true: push new Out {{ v = b.v }}; }}" for each in drawn]
        shapes = [each.replace("l1:", "").replace("l2:", "") for each in shapes]
        first = [rule(f"R{n}", draw.choice(shapes[:3]), draw) for n in range(9)]
        runs = [ensue.parse(TYPES + "".join(first)).start(e) for e in ("reference", "step")]
        together += has_several_shapes(runs[1])
        names = [f"R{n}" for n in range(9)]
        for number, event in enumerate(events(draw, 70)):
            what = draw.randrange(20)
            if what < 3:
                names.append(draw.choice([*names, f"A{number}"]))
                changed = rule(names[-1], draw.choice(shapes), draw)
                names = list(dict.fromkeys(names))
                for run in runs:
                    run.replace(changed)
            elif what == 3 and len(names) > 1:
                gone = draw.sample(names, draw.randrange(1, len(names)))
                names = [each for each in names if each not in gone]
                for run in runs:
                    run.remove(*gone)
            elif what == 4:
                runs[1] = ensue.parse(runs[1].text).resume(runs[1].snapshot())
            plain, quick = (run.push(event) for run in runs)

            assert quick == plain, (seed, number)
        assert runs[0].counts == runs[1].counts
    assert together > 1


def has_several_shapes(run: Run) -> bool:
    engine = run._engine
    assert isinstance(engine, StepStream)
    return any(len(set(group._shape_of)) > 1 for group in engine.groups.values())


def test_keys_of_a_group_that_are_done_are_let_go() -> None:
    text = TYPES + "".join(
        f"Out correlation R{n} (T a where v = 1, T b where v = 2) a ; b by k"
        " { case true: push new Out { k = b.k }; }\n"
        for n in range(3)
    )
    run = ensue.parse(text).start("step")
    for number in range(5000):
        for value in (1, 2):
            data = {"k": f"k{number}", "v": value, "w": ""}
            run.push(Event(f"e{number}.{value}", "s", "T", 10 * number + value, data))
    engine = run._engine
    assert isinstance(engine, StepStream)
    (group,) = engine.groups.values()

    assert run.counts.outputs == 15_000
    assert len(group.keys) < 3000
