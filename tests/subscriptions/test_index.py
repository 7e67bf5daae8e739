"""The index as its users see it: names in order, refusals, history and ontology, columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ensue.errors import LibraryError, UsageError
from ensue.events.arrow import events_of
from ensue.events.event import Event
from ensue.events.types import TypeSystem
from ensue.lang.expressions.evaluation import evaluate
from ensue.lang.expressions.tree import TemporalTerm
from ensue.subscriptions import Filter, Index

from .strategies import conjunctive, filters


def event(**data: Any) -> Event:
    return Event("1", "s", "T", 0, data)


def test_names_come_in_the_order_in_which_they_were_added() -> None:
    index = Index()
    for name in ("c", "a", "b"):
        index.add(name, "x > 1")
    index.remove("c")
    index.add("d", "EXISTS x")
    index.add("c", "x = 2")

    assert index.match(event(x=2)) == ["a", "b", "d", "c"]
    assert list(index) == ["a", "b", "d", "c"]
    assert len(index) == 4


def test_a_name_is_taken_once_and_removed_once() -> None:
    index = Index()
    index.add("a", "x > 1")

    with pytest.raises(UsageError, match="already"):
        index.add("a", "x > 2")
    index.remove("a")
    with pytest.raises(UsageError, match="not in the index"):
        index.remove("a")


def test_a_filter_without_any_condition_matches_everything() -> None:
    index = Index()
    index.add("all", "TRUE")
    index.add("none", "FALSE")
    index.add("never", "x = 1 AND 1 > 2")

    assert index.match(event()) == ["all"]


def test_very_many_names_are_found_by_the_names_of_the_event() -> None:
    index = Index()
    for number in range(1000):
        index.add(number, f"n{number} = {number} AND NOT EXISTS m{number}")

    assert index.match(event(n7=7, n8=9, n9=9, m9=0)) == [7]


class Recorded:
    """A history that answers by a list, and notes what it is asked."""

    def __init__(self, holding: Sequence[str]) -> None:
        self.holding = holding
        self.asked: list[str] = []

    def holds(self, term: TemporalTerm, publication: Event) -> bool:  # noqa: ARG002
        text = str(Filter(term))
        self.asked.append(text)
        return text in self.holding


AFTER = "start AFTER(10 s) (level = 'error')"


def test_temporal_filters_are_among_the_others_and_asked_once_and_only_where_needed() -> None:
    history = Recorded([AFTER])
    index = Index(history=history)
    index.add("with", f"symbol = 'IBM' AND {AFTER}")
    index.add("other", f"symbol = 'SUN' AND {AFTER}")
    index.add("not", f"symbol = 'IBM' AND NOT {AFTER}")
    index.add("only", AFTER)
    index.add("again", AFTER)
    index.add("plain", "symbol = 'IBM'")

    assert index.match(event(symbol="IBM")) == ["with", "only", "again", "plain"]
    assert history.asked == [AFTER]
    assert index.match_columns([event(symbol="SUN"), event()]) == [
        ["other", "only", "again"],
        ["only", "again"],
    ]

    index.remove("only")
    index.remove("again")
    history.asked.clear()
    assert index.match(event(symbol="SUN")) == ["other"]
    assert index.match(event(symbol="X")) == []
    assert history.asked == [AFTER]


def test_terms_that_nothing_can_answer_are_refused() -> None:
    index = Index()

    with pytest.raises(UsageError, match=r"Index\(history=...\)"):
        index.add("a", AFTER)
    with pytest.raises(UsageError, match=r"Index\(ontology=...\)"):
        index.add("a", "w IS_A Red")
    assert len(index) == 0


class Wines:
    """Red and White are wines; `changed` makes Rose a Red."""

    generation = 1

    def __init__(self) -> None:
        self._parents = {"Wine": [], "Red": ["Wine"], "White": ["Wine"], "Rose": ["Wine"]}
        self._codes = {name: number for number, name in enumerate(self._parents)}

    def change(self) -> None:
        self._parents["Rose"] = ["Red"]
        self._codes = {name: 10 - number for number, name in enumerate(self._parents)}
        self.generation += 1

    def code(self, text: str) -> int | None:
        return self._codes.get(text)

    def above(self, code: int) -> Sequence[int]:
        names = {number: name for name, number in self._codes.items()}
        found, waiting = [], [names[code]]
        while waiting:
            current = waiting.pop()
            found.append(self._codes[current])
            waiting += self._parents[current]
        return found

    def test(self, word: str, left: int, right: int) -> bool:
        if word == "SUBSUMES":
            left, right = right, left
        return left == right if word == "SAME_AS" else right in self.above(left)

    def related(self, prop: str, code: int) -> Sequence[int]:
        return [self._codes["Red"]] if prop == "goesWith" and code == self._codes["Rose"] else []

    def constants(self, prop: str, code: int) -> Sequence[Any]:
        return [12.5] if prop == "strength" and code == self._codes["Red"] else []

    def knows_property(self, prop: str) -> bool:
        return prop in ("goesWith", "strength")

    def advice(self, text: str) -> str:
        return f"did you mean something else than `{text}`?"


def test_concepts_are_found_and_a_changed_ontology_is_noticed() -> None:
    wines = Wines()
    index = Index(ontology=wines)
    index.add("wine", "w IS_A Wine")
    index.add("red", "w IS_A Red AND price > 3")
    index.add("either", "w IS_A (Red, White)")
    index.add("all", "w IS_A ALL (Red, White)")
    index.add("only", "w IS_A ONLY (Red, White)")
    index.add("not red", "EXISTS w AND NOT w IS_A Red")
    index.add("general", "w SUBSUMES Red")
    index.add("same", "w SAME_AS Rose")
    index.add("with", "ONTPROP<goesWith>(w) IS_A Wine")
    index.add("strong", "ONTPROP<strength>(w) > 12")

    def found(value: Any) -> list[str]:
        events = [event(w=value, price=5)]
        assert index.match_columns(events) == [index.match(events[0])]
        return index.match(events[0])

    assert found("Red") == ["wine", "red", "either", "only", "general", "strong"]
    assert found("Rose") == ["wine", "not red", "same", "with"]
    assert found(["White", "Red"]) == ["wine", "red", "either", "all", "only", "general", "strong"]
    assert found("Beer") == ["not red"]
    assert index.match(event(price=5)) == []

    wines.change()
    assert found("Rose") == ["wine", "red", "either", "only", "same", "with"]


def test_unknown_concepts_are_said_when_a_filter_is_added() -> None:
    index = Index(ontology=Wines())

    with pytest.raises(UsageError, match="no concept `Redd`; did you mean"):
        index.add("a", "w IS_A Redd")
    with pytest.raises(UsageError, match="no property `goes`"):
        index.add("a", "ONTPROP<goes>(w) = Red")


columns = st.fixed_dictionaries(
    {
        "x": st.lists(st.sampled_from([None, 1, 2, 5, -1, 2**53 + 1]), min_size=6, max_size=6),
        "y": st.lists(st.sampled_from([None, "a", "ab", "1", "true"]), min_size=6, max_size=6),
        "z": st.lists(st.sampled_from([None, 1.0, 1.5, 0.0, 1e300]), min_size=6, max_size=6),
        "subject": st.lists(st.sampled_from([None, "a", "abc"]), min_size=6, max_size=6),
    }
)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(filters | conjunctive, min_size=1, max_size=8), columns, st.booleans())
def test_a_table_finds_what_its_events_find(
    given_filters: list[Any], given_columns: dict[str, list[Any]], encoded: bool
) -> None:
    kinds = {"x": pa.int64(), "y": pa.string(), "z": pa.float64(), "subject": pa.string()}
    table = pa.table(
        {
            "type": ["a", "ab", "T", "a", "1", "b"],
            "time": pa.array([0, 1, 2, 3, 4, 1_704_110_400_000_000], pa.timestamp("us", "UTC")),
            **{name: pa.array(values, kinds[name]) for name, values in given_columns.items()},
        }
    )
    if encoded:
        place = table.column_names.index("y")
        table = table.set_column(place, "y", table.column("y").dictionary_encode())
    index = Index()
    for number, predicate in enumerate(given_filters):
        try:
            index.add(number, Filter(predicate))
        except (LibraryError, UsageError):
            continue

    expected = [index.match(each) for each in events_of(table, TypeSystem())]

    assert index.match_columns(table) == expected


ASKED_BY_INDEX = {
    "equality": "x = 'a{n}'",
    "range": "v > {n} AND v < {n} + 0",
    "bound": "v >= {m}",
    "prefix": "x LIKE 'p{n}-%'",
    "suffix": "x LIKE '%-s{n}'",
    "substring": "x LIKE '%-m{n}-%'",
    "presence": "EXISTS z{n}",
    "absence": "NOT EXISTS x AND v = {m}",
    "unequal": "y{n} != 3",
    "negated pattern": "NOT (w{n} LIKE 'a%')",
    "list": "x IN ('b{n}', 'c{n}')",
    "bag": "tags HAS ANY ('t{n}')",
    "disjunction": "x = 'a{n}' OR v = {m}",
    "negated disjunction": "NOT (x != 'a{n}' OR v < 0)",
    "function": "LENGTH(x) = {m}",
    "function in a pattern": "UPPER(x) LIKE 'P{n}-%'",
    "arithmetic": "v * 2 + 1 > {m}",
    "constant first": "{m} < v - 1",
    "non-strict function": "COALESCE(nothing, v) = {m}",
}


@pytest.mark.parametrize("kind", ASKED_BY_INDEX)
def test_a_predicate_of_any_kind_waits_for_its_witness(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = Index()
    for n in range(200):
        index.add(n, Filter.parse(ASKED_BY_INDEX[kind].format(n=n, m=n + 1000)))
    evaluated = 0

    def counting(expression: Any, scope: Any) -> Any:
        nonlocal evaluated
        evaluated += 1
        return evaluate(expression, scope)

    monkeypatch.setattr("ensue.lang.matching.index.evaluate", counting)
    monkeypatch.setattr("ensue.lang.matching.computed.evaluate", counting)

    assert index.match(event(x="hello", v=5.5, tags=["a"])) == []
    # A value that many filters compute is computed once.
    assert evaluated <= 1
