"""The index against asking every filter, while filters come and go."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ensue.errors import LibraryError, UsageError
from ensue.events.event import Event
from ensue.lang.expressions.evaluation import holds
from ensue.lang.matching.index import PredicateIndex
from ensue.subscriptions import Filter, Index

from .strategies import conjunctive, events, filters

some_filters = st.lists(filters | conjunctive, min_size=1, max_size=12)


def brute(live: dict[int, Any], event: Event) -> list[int]:
    return [number for number, predicate in live.items() if holds(predicate, event)]


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(some_filters, st.lists(events, min_size=1, max_size=8))
def test_an_index_finds_what_a_loop_finds(
    given_filters: list[Any], given_events: list[Event]
) -> None:
    index = PredicateIndex()
    live = dict(enumerate(given_filters))
    for number, predicate in live.items():
        index.add(number, predicate)

    for event in given_events:
        assert sorted(index.match(event)) == brute(live, event)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(some_filters, st.lists(events, min_size=1, max_size=6), st.data())
def test_filters_come_and_go(
    given_filters: list[Any], given_events: list[Event], data: st.DataObject
) -> None:
    index = PredicateIndex()
    live: dict[int, Any] = {}
    for event in given_events:
        for number, predicate in enumerate(given_filters):
            if data.draw(st.booleans()):
                if number in live:
                    index.remove(number)
                    del live[number]
                else:
                    index.add(number, predicate)
                    live[number] = predicate

        assert sorted(index.match(event)) == sorted(brute(live, event))
    for number in live:
        index.remove(number)
    assert not index.evaluated
    assert not index.awaited_buckets
    index._sweep()
    assert not index.attributes


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(some_filters, st.lists(events, min_size=1, max_size=20))
def test_events_in_columns_find_what_a_loop_finds(
    given_filters: list[Any], given_events: list[Event]
) -> None:
    index = Index()
    for number, predicate in enumerate(given_filters):
        try:
            index.add(number, Filter(predicate))
        except (LibraryError, UsageError):
            continue
    live = {number: each for number, each in enumerate(given_filters) if number in index}

    found = index.match_columns(given_events)

    assert found == [brute(live, event) for event in given_events]
    assert found == [index.match(event) for event in given_events]
