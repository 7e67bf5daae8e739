"""Filters over parts of texts: in an index, and what covers what."""

from __future__ import annotations

import ensue
from ensue.subscriptions import Filter, Index, covers


def log(number: int, text: str) -> ensue.Event:
    return ensue.Event(str(number), "s", "Log", number, {"text": text})


def test_an_index_finds_filters_over_groups_numbers_and_times() -> None:
    index = Index()
    index.add("root", r"EXTRACT(text, 'user=(\w+)') = 'root'")
    index.add("large", r"DOUBLE(EXTRACT(text, 'load=([0-9.]+)')) > 2.5")
    index.add("none", r"EXTRACT(text, 'user=(\w+)') IS NULL")
    index.add("late", "TIMESTAMP(LEFT(text, 8), '%Y%m%d') >= 2024-05-06T00:00:00Z")

    assert list(index.match(log(1, "user=root load=3"))) == ["root", "large"]
    assert list(index.match(log(2, "user=ann load=2.5"))) == []
    assert list(index.match(log(3, "20240507 nobody"))) == ["none", "late"]


def test_what_a_filter_over_a_group_covers_is_known_where_it_follows() -> None:
    one = Filter.parse(r"EXTRACT(text, 'user=(\w+)') = 'root'")
    less = Filter.parse(r"EXTRACT(text, 'user=(\w+)') = 'root' AND level > 3")

    assert covers(one, less) is True
    assert covers(less, one) is not True
    assert Filter.parse(str(one)).matches(log(1, "user=root"))
