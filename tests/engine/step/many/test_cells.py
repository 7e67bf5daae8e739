"""Cells of the step engine: which rules have them, what is shared, and what is let go.

That rules in cells put out what they put out by themselves is tested by the hunt `engines`.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import pytest

import ensue
from ensue.events.event import Event
from tests.agreement.comparing import compare
from tests.agreement.trials import ReferenceTrial
from tests.engine import random_rules
from tests.engine.random_rules import PORTS, events

pytestmark = pytest.mark.usefixtures("everything_small")

TYPES = """
eventtype T { attribute string k; attribute long v; attribute string w; };
eventtype Out { attribute string k; attribute long v; };
"""


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
    run.push(reading(1, 0, 1))

    assert len(run.push(reading(2, 10_000, 2))) == 3
    run.push(reading(3, 20_000, 1))
    assert run.push(reading(4, 30_001, 2)) == []


def test_keys_that_have_aged_are_let_go() -> None:
    run = chains(3, "within 10 ms by k").start("step")
    for number in range(4000):
        run.push(reading(number, number * 1000, 1, key=f"k{number}"))

    assert run.keys_held < 2500


def test_rules_that_have_aged_under_a_key_begin_anew() -> None:
    """Of a hundred rules two are under way at any time."""
    rules = "".join(
        f"Out correlation R{number} (T a where v = {number}, T b where v = -1) a ; b"
        " within 2 ms by k { case true: push new Out { k = b.k }; }\n"
        for number in range(100)
    )
    run = ensue.parse(TYPES + rules).start("step")
    for number in range(500):
        run.push(reading(number, number * 1500, number % 100))

    assert [each.extensions["correlation"] for each in run.push(reading(500, 749_000, -1))] == [
        "R98",
        "R99",
    ]


def test_rules_whose_tables_keep_growing_go_on_beside_the_others() -> None:
    for seed in range(3):
        wide = "a + b + c + d + e within 3 ms by k { case true: push new Found { first = a.n }; }"
        small = "a ; b within 3 ms by k { case true: push new Found { first = b.n }; }"
        rules = [
            f"Found correlation R{number} ({', '.join(PORTS)}) {said}"
            for number, said in enumerate([wide, small, wide, small])
        ]
        library = ensue.parse(random_rules.TYPES + "\n".join(rules))
        plain, visited = library.start("reference"), library.start("step")
        for event in events(seed, 120):
            assert visited.push(event) == plain.push(event), seed


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

    assert run.counts.outputs == 15_000
    assert run.keys_held < 3000


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


FORMS = {
    "first event bound": "Found correlation R (T a where n = 1, T b where n = 2, T c) (a ; b) + c"
    " bind first by k { case true: push new Found { word = a.w, last = b.n + c.n }; }",
    "labels changed in a window": "Found correlation R (T a, T b where n > 1, T c where n = 3)"
    " l:(a ; a ; b) || m:c within 3 ms by k"
    " { case l: push new Found { last = a.n }; abort(l); case m: toggle(l); }",
    "statements at the start": "Found correlation R (T a where n = 1, T b) l:(a ; b) || m:b by k"
    " { push new Found { last = 0 }; abort(l); case l: push new Found { last = a.n };"
    " case m: revive(l); }",
    "predicates": "Noted ecl R (T a, T b where n = 2) by k"
    " { repeat { notify { sequential { < n > 1 >, b, < w = 'x' > } } } }",
    "first event bound beside a timer": "Found correlation R (T a, every 1 ms t, T b where n = 1)"
    " a ; t ; b bind first by k { case true: push new Found { word = a.w, last = b.n }; }",
}


@pytest.mark.parametrize("form", FORMS)
def test_a_form_in_cells_agrees_with_the_reference(form: str) -> None:
    tried: Counter[str] = Counter()
    for seed in range(6):
        drawn = ReferenceTrial(seed, random_rules.TYPES + FORMS[form], events(seed, 120), None)
        tried.update(compare(drawn, ["step", "step, saved"]))
    assert tried["outputs"] > 40
