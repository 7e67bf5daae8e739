"""The steps of a condition are what CESQL says, at the ends of the integers too."""

from __future__ import annotations

import itertools

import pytest

import ensue
from ensue.engine.batch import BatchEngine
from ensue.engine.batch.related import conditions
from ensue.engine.core.relating.condition import Step
from ensue.events.event import Event
from ensue.lang.expressions import Arithmetic, Literal
from ensue.lang.expressions.evaluation import EventScope, evaluate

ENDS = (-(2**63), -(2**63) + 1, -7, -2, -1, 0, 1, 2, 3, 10**12, 2**62, 2**63 - 1)
SIGNS = {
    "+": Step.ADD,
    "-": Step.SUBTRACT,
    "*": Step.MULTIPLY,
    "/": Step.DIVIDE,
    "%": Step.REMAINDER,
}
SCOPE = EventScope(Event("", "", "", 0))


@pytest.mark.parametrize("sign", SIGNS)
def test_arithmetic_on_integers_overflows_where_cesql_does(sign: str) -> None:
    for x, y in itertools.product(ENDS, ENDS):
        said = evaluate(Arithmetic(Literal(x), ((sign, Literal(y)),)), SCOPE)

        found, is_there = conditions.integer_step(int(SIGNS[sign]), x, y)

        assert is_there == (not said.errors), (x, sign, y)
        assert not is_there or found == said.value, (x, sign, y)


TYPES = """
eventtype T { attribute string k; attribute double x; attribute unsigned long long u; };
eventtype Out { attribute long n; };
"""


def test_values_that_loops_cannot_count_make_a_rule_run_event_by_event() -> None:
    """From the batch on in which one comes, and with what it has remembered."""
    text = "Out correlation R (T a) a having count(a) > 1 AND max(a.u) > 3 keep all by k"
    library = ensue.parse(f"{TYPES} {text} {{ case true: push new Out {{ n = count(a) }}; }}")
    engine = BatchEngine(library.checked)
    given = [Event(f"e{n}", "s", "T", n, {"k": "x", "u": u}) for n, u in enumerate([1, 9, 2**63])]

    assert engine.paths["R"].name == "related"
    made = [*engine.read_all(given[:2]), *engine.read_all(given[2:])]

    assert [each.data["n"] for each in made] == [2, 3]
    assert engine.paths["R"].name == "events"
    assert "`u`" in engine.paths["R"].reason


def test_an_extension_of_the_name_of_an_attribute_is_what_is_asked() -> None:
    """It is of no declared kind, so that the rule runs event by event from there on."""
    text = "Out correlation R (T a) a having count(a) < a.x AND count(a) > 0 keep all by k"
    library = ensue.parse(f"{TYPES} {text} {{ case true: push new Out {{ n = count(a) }}; }}")
    given = [
        Event("e0", "s", "T", 0, {"k": "x", "x": 9.5, "u": 0}),
        Event("e1", "s", "T", 1, {"k": "x", "x": 0.5, "u": 0}, {"x": "7"}),
        Event("e2", "s", "T", 2, {"k": "x", "x": 0.5, "u": 0}),
    ]
    engine, reference = BatchEngine(library.checked), library.start("reference")

    made = [each for event in given for each in engine.read(event)]

    assert made == [each for event in given for each in reference.push(event)]
    assert len(made) == 2
    assert engine.paths["R"].name == "events"


def test_ports_may_have_attributes_of_one_name_and_several_kinds() -> None:
    types = "eventtype A { attribute long v; }; eventtype B { attribute string v; };"
    rule = "Out correlation R (A a, B b) a ; b having sum(a.v) > 3 AND distinct(b.v) > 1 keep all"
    library = ensue.parse(
        f"{types} eventtype Out {{ attribute long n; }};"
        f" {rule} {{ case true: push new Out {{ n = sum(a.v) }}; }}"
    )
    given = [Event(f"e{n}", "s", "AB"[n % 2], n, {"v": str(n) if n % 2 else n}) for n in range(9)]
    engine, reference = BatchEngine(library.checked), library.start("reference")

    assert engine.read_all(given) == [each for event in given for each in reference.push(event)]
    assert engine.paths["R"].name == "related"
