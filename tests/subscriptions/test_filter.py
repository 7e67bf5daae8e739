"""A filter as a value: its text, its equality, and what it matches."""

from __future__ import annotations

import json
import pickle

import pytest

from ensue.errors import LibraryError, UsageError
from ensue.events.event import Event
from ensue.lang import builder as b
from ensue.subscriptions import Filter

TEXT = "symbol = 'IBM' AND start AFTER(10 s) (level = 'error')"


def test_the_text_of_a_filter_is_read_back_as_the_same_filter() -> None:
    made = Filter.parse(TEXT)

    assert str(made) == TEXT
    assert Filter.parse(str(made)) == made
    assert hash(Filter.parse(str(made))) == hash(made)
    assert Filter.parse("symbol = 'SUN'") != made


def test_the_builder_makes_the_same_filter() -> None:
    built = Filter((b.attr("symbol") == "IBM") & b.start.after("10 s", b.attr("level") == "error"))

    assert built == Filter.parse(TEXT)


def test_a_filter_survives_pickling() -> None:
    made = Filter.parse(TEXT)

    assert pickle.loads(pickle.dumps(made)) == made


AS_MAPPING = {
    "id": "1",
    "source": "s",
    "type": "Tick",
    "time": "2024-01-01T00:00:00Z",
    "data": {"price": 11},
}


@pytest.mark.parametrize(
    "event", [Event("1", "s", "Tick", 0, {"price": 11}), AS_MAPPING, json.dumps(AS_MAPPING)]
)
def test_an_event_is_given_as_a_run_takes_it(event: object) -> None:
    assert Filter.parse("price > 10").matches(event)  # type: ignore[arg-type]
    assert not Filter.parse("price > 11").matches(event)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("price >", "syntax"),
        ("price + 1", "predicate-not-boolean"),
        ("LENGHT(symbol) > 3", "unknown-function"),
        ("start AFTER(1 s) (LENGHT(symbol) > 3)", "unknown-function"),
        ("symbol = 'IBM\u202e'", "text-direction"),
        ("price > 3 AND\u2028price < 2", "hidden-character"),
        (
            "(" * 120 + "x" + ")" * 120 + " = NOT NOT x" + " = (NOT x" * 110 + ")" * 110,
            "limit-nesting",
        ),
    ],
)
def test_what_is_no_filter_is_refused_where_it_is_wrong(text: str, code: str) -> None:
    with pytest.raises(LibraryError) as caught:
        Filter.parse(text)

    assert [each.code for each in caught.value.diagnostics] == [code]


def test_a_filter_may_name_a_hidden_character_that_events_have() -> None:
    assert Filter.parse("symbol = 'a\u200bb'").matches(
        {**AS_MAPPING, "data": {"symbol": "a\u200bb"}}
    )

    with pytest.raises(LibraryError, match=r"U\+202E"):
        Filter(b.attr("symbol") == "a\u202eb")


def test_text_is_parsed_and_not_taken_for_a_value() -> None:
    with pytest.raises(UsageError, match=r"Filter\.parse"):
        Filter("price > 3")  # type: ignore[arg-type]
