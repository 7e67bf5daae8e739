"""What analyses say of attributes that are worked out; every witness is run."""

from __future__ import annotations

from random import Random

import pytest

import ensue
from ensue.explaining.findings import with_analyses
from ensue.lang.source import Source
from ensue.machine.analyses.comparison import compare
from tests.engine.derived_attributes import derived, with_texts

from . import rules
from .test_random_relations import WORK, draw_pair, draw_stream, observe

TYPES = r"""
eventtype Out {};
eventtype Log {
    attribute string text;
    attribute string user = EXTRACT(text, 'user=(\w+)');
    attribute long n = INT(EXTRACT(text, 'n=([0-9]+)'));
    attribute boolean big = n > 10;
    attribute string upper = UPPER(user);
};
"""


def pair(first: str, second: str) -> ensue.Library:
    heads = [
        f"Out correlation {name} {text} {{ case true: push new Out {{}}; }}"
        for name, text in (("One", first), ("Two", second))
    ]
    return ensue.parse(TYPES + "\n".join(heads))


@pytest.mark.parametrize(
    ("first", "second", "relation"),
    [
        ("(Log a where n > 3) a", "(Log a where NOT (n <= 3)) a", "equivalent"),
        ("(Log a where n > 3, Log b where n > 5) a | b", "(Log a where n > 3) a", "equivalent"),
        ("(Log a where n > 3) a", "(Log a where n > 4) a", "contains"),
        ("(Log a where user = 'ann') a", "(Log a where user = 'ann' AND n > 3) a", "contains"),
        ("(Log a where big) a", "(Log a where n > 10) a", "undecided"),
        ("(Log a where user = 'ann') a", "(Log a where user = 'bob') a", "different"),
        ("(Log a) a{2} by user", "(Log a) a ; a by user", "equivalent"),
        ("(Log a) a{2} by user", "(Log a) a{2}", "different"),
        ("(Log a where upper = 'ANN') a", "(Log a where upper = 'BOB') a", "different"),
        ("(Log a where upper = 'ann') a", "(Log a where upper = 'bob') a", "undecided"),
    ],
)
def test_rules_over_derived_attributes_are_compared(first: str, second: str, relation: str) -> None:
    """Undecided where no event is known that is worked out so: none, or none that was found."""
    library = pair(first, second)
    one, two = library.correlations
    found = compare(one, two, library.checked.types)

    assert found.relation == relation
    if one.clauses.by == two.clauses.by:
        rules.verify(library, found)


def test_conditions_on_derived_attributes_that_contradict_each_other_are_found() -> None:
    library = pair("(Log a where n > 3 AND n < 3) a", "(Log a where user = 'a' AND user = 'b') a")

    found = with_analyses(library, Source.of(str(library)), 30.0)

    assert [each.code for each in found].count("can-never-fire") == 2


@pytest.mark.parametrize("seed", range(10, 50))
def test_a_relation_of_derived_attributes_agrees_with_what_streams_show(seed: int) -> None:
    """As where they are data: a relation holds of random streams, and a witness runs."""
    drawing, plain = draw_pair(seed)
    library, changed = derived(plain, Random(seed))
    one, two = library.correlations
    found = compare(one, two, library.checked.types, WORK)

    rules.verify(library, found)
    for _ in range(3):
        stream = [with_texts(each, changed) for each in draw_stream(drawing, plain)]
        first, second = (observe(library, each, stream) for each in (one, two))
        if found.relation in ("equivalent", "contained"):
            assert first <= second
        if found.relation in ("equivalent", "contains"):
            assert second <= first
