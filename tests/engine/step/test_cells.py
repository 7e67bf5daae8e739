"""Rules that are visited in cells put out what each of them puts out by itself."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from random import Random

import pytest

import ensue
from ensue.engine.run import Run
from ensue.engine.step import StepStream
from ensue.engine.step.many import grouping
from ensue.engine.step.many.group import CellGroup
from ensue.events.event import Event
from tests.engine.coming_and_going import batches_on_the_way

from .test_rules_of_one_key import TYPES, events, rule

FILTERS = [
    "a ; b ; c",
    "l1:(a ; b) | l2:c",
    "a + b + c",
    "l1:(a ; a ; b) || l2:(b ; c)",
    "l1:a | l2:(b + c) ; a",
    "l1:(a ; b) || l2:c",
    "l1:a ; l2:(b | c)",
    "l1:(a + l2:b) ; c",
    "a{3} ; (b | c)",
]
CLAUSES = ["by k", "within 2 ms by k", "within 1 ms by k", "within 3 ms by k", "by k"]
CHANGES = ["toggle(l1);", "abort(l1);", "revive(l1);", "abort(l1, l2);", "toggle(l2);", ""]
EXPRESSIONS = [
    "repeat { notify { do { sequential { a, b } } unless { c } } }",
    "repeat { push(Told) { accumulate { a, b } } }",
    "notify { sequential { a, select { b, c } } }",
    "repeat(2) { notify { fail { do { a } unless { b } } } }",
    "modes { in (a) do { repeat { notify { b } } } in (c) do { repeat { push(Told) { true } } } }",
    "parallel { repeat { notify { a } }, repeat { notify { sequential { b, c } } } }",
]


@pytest.fixture(autouse=True)
def few_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """One rule is enough."""
    monkeypatch.setattr(grouping, "FEWEST_IN_CELLS", 1)


def body(draw: Random) -> str:
    """What a rule says after its ports; an expression is in braces only."""
    if draw.random() < 0.3:
        return f"by k {{ {draw.choice(EXPRESSIONS)} }}"
    said, clause = draw.choice(FILTERS), draw.choice(CLAUSES)
    made = "case true: push new Out { k = a.k, v = c.v, b = true }; push new Out { v = b.v + 1 };"
    if "l1" in said:
        changes = ["", ""] if "within" in clause else [draw.choice(CHANGES) for _ in range(2)]
        made = (
            f"case l1: push new Out {{ k = a.k, v = 7 }}; {changes[0]}"
            f" case l2 & !l1: push new Out {{ v = c.v }}; {changes[1]}"
            " case true: push new Out { v = a.v };"
        )
    return f"{said} {clause} {{ {made} }}"


def text(name: str, said: str, draw: Random) -> str:
    written = rule(name, said, draw)
    is_ecl = said.startswith("by k {")
    return written.replace("Out correlation", "Told ecl", 1) if is_ecl else written


def texts(draw: Random, count: int) -> list[str]:
    """Rules of a few shapes, interleaved."""
    bodies = [body(draw) for _ in range(3)]
    return [text(f"R{number}", draw.choice(bodies), draw) for number in range(count)]


def in_cells(run: Run) -> int:
    """How many rules are visited in cells."""
    engine = run._engine
    assert isinstance(engine, StepStream)
    return sum(rule.group is not None for rule in engine.rules)


def group_of(run: Run) -> CellGroup:
    engine = run._engine
    assert isinstance(engine, StepStream)
    (group,) = engine.groups.values()
    return group


def test_rules_in_cells_put_out_what_they_put_out_by_the_definitions() -> None:
    held = made = 0
    for seed in range(40):
        draw = Random(seed)
        library = ensue.parse(TYPES + "".join(texts(draw, 6)))
        plain, visited = library.start("reference"), library.start("step")
        held += in_cells(visited)
        for event in events(draw, 50):
            expected = plain.push(event)
            made += len(expected)

            assert visited.push(event) == expected, seed
        assert visited.counts == plain.counts
    assert held > 150
    assert made > 2000


def test_rules_in_cells_come_and_go_and_move_between_engines() -> None:
    """Added, replaced and removed, saved and brought back, and for a while in batches."""
    moved = 0
    for seed in range(100, 112):
        draw = Random(seed)
        library = ensue.parse(TYPES + "".join(texts(Random(seed), 5)))
        spare = [body(draw) for _ in range(2)]
        moved += batches_on_the_way(
            library, events(draw, 50), draw, partial(other_text, spare, draw)
        )
    assert moved > 5


def other_text(spare: list[str], draw: Random, name: str) -> str:
    return text(name, draw.choice(spare), draw)


def chains(count: int, clause: str) -> ensue.Library:
    ports = "T a where v = 1, T b where v = 2"
    return ensue.parse(
        TYPES
        + "".join(
            f"Out correlation R{number} ({ports}) a ; b {clause}"
            " { case true: push new Out { k = b.k }; }\n"
            for number in range(count)
        )
    )


def reading(number: int, time: int, value: int, key: str = "k1") -> Event:
    return Event(f"e{number}", "s", "T", time, {"k": key, "v": value, "w": ""})


def test_an_event_at_the_edge_of_the_window_counts_and_one_before_it_does_not() -> None:
    run = chains(3, "within 10 ms by k").start("step")
    assert in_cells(run) == 3
    run.push(reading(1, 0, 1))

    assert len(run.push(reading(2, 10_000, 2))) == 3
    run.push(reading(3, 20_000, 1))
    assert run.push(reading(4, 30_001, 2)) == []


def test_keys_that_have_aged_are_let_go() -> None:
    run = chains(3, "within 10 ms by k").start("step")
    for number in range(4000):
        run.push(reading(number, number * 1000, 1, key=f"k{number}"))
    group = group_of(run)

    assert len(group.keys) < 2500


def test_cells_of_which_all_has_aged_are_used_again() -> None:
    """Of a hundred rules two are under way at any time: the cells of a key stay few."""
    rules = "".join(
        f"Out correlation R{number} (T a where v = {number}, T b where v = -1) a ; b"
        " within 2 ms by k { case true: push new Out { k = b.k }; }\n"
        for number in range(100)
    )
    run = ensue.parse(TYPES + rules).start("step")
    for number in range(500):
        run.push(reading(number, number * 1500, number % 100))

    assert group_of(run)._cells.room <= 64
    assert [each.extensions["correlation"] for each in run.push(reading(500, 749_000, -1))] == [
        "R98",
        "R99",
    ]


def test_a_rule_whose_table_keeps_growing_leaves_its_cells_and_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from ensue.engine.step.many import tables

    monkeypatch.setattr(tables, "FREE_MOVES", 10)
    for seed in range(3):
        draw = Random(seed)
        wide = "a + b + c within 3 ms by k { case true: push new Out { v = a.v }; }"
        small = "a ; b within 3 ms by k { case true: push new Out { v = b.v }; }"
        said = [wide, small, wide, small]
        library = ensue.parse(
            TYPES + "".join(rule(f"R{number}", each, draw) for number, each in enumerate(said))
        )
        plain, visited = library.start("reference"), library.start("step")
        assert in_cells(visited) == 4
        for event in events(draw, 120):
            assert visited.push(event) == plain.push(event), seed
        assert in_cells(visited) < 4


def test_few_rules_load_no_compiled_loops() -> None:
    program = (
        "import sys, ensue\n"
        "types = 'eventtype T { attribute long v; }; eventtype Out { attribute long v; };'\n"
        "run = ensue.parse(types + ''.join("
        "f'Out correlation R{n} (T a where v = {n}, T b) a ; b within 1 s"
        " {{ case true: push new Out {{ v = b.v }}; }} ' for n in range(9))).start('step')\n"
        "run.push(ensue.Event.of('T', id='1', source='s', time=0, data={'v': 1}))\n"
        "assert not {'numba', 'numpy', 'pyarrow'} & sys.modules.keys()\n"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert done.returncode == 0, done.stderr


REFUSED_BEFORE = [
    "Out correlation {name} (T a where v = 1, T b where v = 2, T c) (a ; b) + c bind first by k"
    " {{ case true: push new Out {{ k = a.w, v = b.v + c.v }}; }}",
    "Out correlation {name} (T a, T b where v > 1, T c where v = 3) l1:(a ; a ; b) || l2:c"
    " within 3 ms by k {{ case l1: push new Out {{ v = a.v }}; abort(l1); case l2: toggle(l1); }}",
    "Out correlation {name} (T a where v = 1, T b) l1:(a ; b) || l2:b by k"
    " {{ push new Out {{ v = 0 }}; abort(l1); case l1: push new Out {{ v = a.v }};"
    " case l2: revive(l1); }}",
    "Told ecl {name} (T a, T b where v = 2) by k"
    " {{ repeat {{ notify {{ sequential {{ < v > 1 >, b, < w = 'x' > }} }} }} }}",
    "Out correlation {name} (T a, every 1 ms t, T b where v = 1) a ; t ; b bind first by k"
    " {{ case true: push new Out {{ k = a.w, v = b.v }}; }}",
]


def test_first_bindings_changed_labels_statements_at_the_start_and_predicates_run_in_cells() -> (
    None
):
    made = 0
    for seed in range(12):
        draw = Random(seed)
        rules = [
            draw.choice(REFUSED_BEFORE).format(name=f"R{number}").replace("v = 1", f"v = {number}")
            for number in range(5)
        ]
        library = ensue.parse(TYPES + "\n".join(rules))
        plain, visited = library.start("reference"), library.start("step")
        assert in_cells(visited) == 5
        for number, event in enumerate(events(draw, 60)):
            if number % 20 == 10:
                visited = library.resume(visited.snapshot())
            expected = plain.push(event)
            made += len(expected)

            assert visited.push(event) == expected, (seed, number)
        assert visited.counts == plain.counts
    assert made > 200
