"""`having` as Python says what the evaluation says."""

from __future__ import annotations

from typing import Any

import pytest

import ensue
from ensue.engine.core.instances.firing import scopes_of
from ensue.engine.core.relating.having import having_of
from ensue.events.event import Event
from ensue.lang.expressions.evaluation import holds
from ensue.lang.syntax import FilterCorrelation

RULE = """
eventtype A { attribute long long n; attribute double v; };
A correlation R (A a, A b) a ; b having CONDITION keep all bind latest { case true: push b; }
"""


def held(**values: Any) -> list[tuple[int, Event]]:
    data = {"n": 1, "v": 1.0}
    return [(place, Event(f"e{place}", "s", "A", place, {**data, **values})) for place in (1, 2)]


@pytest.mark.parametrize("condition", ["b.v < -1.5", "-a.n = b.n", "-(a.v + b.v) >= -2 * b.v"])
@pytest.mark.parametrize(
    "values", [{}, {"v": -2.0}, {"n": 0}, {"n": -(2**63)}, {"v": 0.0}, {"v": 1e308}, {"n": None}]
)
def test_a_negation_is_that_of_the_evaluation(condition: str, values: dict[str, Any]) -> None:
    library = ensue.parse(RULE.replace("CONDITION", condition)).checked
    (rule,) = library.correlations
    assert isinstance(rule, FilterCorrelation)
    having, names = rule.clauses.having, library.types.attributes("A")
    assert having is not None
    found = having_of(having, ["a", "b"], {"a": names, "b": names})
    expected = holds(having, scopes_of(["a", "b"], [], first=False)(held(**values)))

    assert found(held(**values)) is expected
