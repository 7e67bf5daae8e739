"""Ports that take their key from attributes of their own, and predicates that ask about those.

One event may have different values in both attributes although no predicate tells them apart: then
it is read under two keys, on one port each.
"""

from __future__ import annotations

import pytest

from ensue.events.types import ValueType
from ensue.machine.analyses.events.mentions import Mentions
from ensue.machine.analyses.events.values import texts_for, values_of
from tests.machine.analyses import rules

NUMBERS = "A a where V < 5 AND K < 5, A b where V < 5 AND K < 5"
ONE_ASKED = "A a where V < 5, A b where V < 5"
EQUAL_ONLY = "A a where V = 5 AND K = 5, A b where V = 5 AND K = 5"


@pytest.mark.parametrize(
    ("ports", "first", "second", "relation"),
    [
        (NUMBERS, "a => by a.V = b.K", "a + b => by a.V = b.K", "different"),
        (ONE_ASKED, "b => by a.V = b.K", "a + b => by a.V = b.K", "different"),
        (EQUAL_ONLY, "a => by a.V = b.K", "a + b => by a.V = b.K", "equivalent"),
        (NUMBERS, "a => by a.V = b.V", "a + b => by a.V = b.V", "equivalent"),
        (NUMBERS, "a ; b => by a.V = b.K", "a ; b => by a.V = b.K", "equivalent"),
    ],
)
def test_the_relation_is_found_and_its_witnesses_hold(
    ports: str, first: str, second: str, relation: str
) -> None:
    library = rules.library(first, second, ports)
    found = rules.compare_in(library)

    assert (found.relation, found.reason) == (relation, None)
    rules.verify(library, found)


@pytest.mark.parametrize("type_", ["octet", "long long", "double", "timestamp", "string"])
def test_there_are_several_values_of_each_kind_where_that_is_asked(type_: str) -> None:
    constant = "2024-01-01T00:00:00Z" if type_ == "timestamp" else 7
    values, _ = values_of(ValueType(type_), Mentions([constant]), alike=3)

    assert len(values) == len({repr(each) for each in values})
    assert len(values) >= (4 if type_ == "string" else 7)


def test_texts_that_are_alike_match_the_same_patterns() -> None:
    texts, all_found = texts_for(["u%", "_"], alike=2)

    assert all_found
    assert len(texts) == len({*texts})
    by_kind = {(t.startswith("u"), len(t) == 1): 0 for t in texts}
    for text in texts:
        by_kind[text.startswith("u"), len(text) == 1] += 1
    # Only `u` itself matches both.
    assert by_kind == {(True, True): 1, (True, False): 2, (False, True): 2, (False, False): 2}
