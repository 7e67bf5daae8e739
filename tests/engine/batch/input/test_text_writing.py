"""Texts that compiled loops write, held against Python's."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest

from ensue.engine.batch.input import text_writing
from ensue.engine.batch.input.column import (
    NO_TEXTS,
    Texts,
    repeated_text,
    write_texts,
)
from ensue.engine.batch.input.text_writing import IdParts

WORDS = ["", "a", "bc", "sevenXX", "eightXXX", "nineXXXXX", "ü", "日本語の長いテキスト", "x" * 100]


@pytest.mark.parametrize("offset", [0, 3])
def test_texts_are_taken_to_the_last_byte_of_their_buffer(offset: int) -> None:
    """Also from an array that is part of another."""
    array = pa.array(["before", *WORDS, "last"])[offset:]
    index = np.array([Random(n).randrange(len(array)) for n in range(200)] + [len(array) - 1])

    found = Texts.of(array).take(index)

    found.validate(full=True)
    assert found.to_pylist() == [array[each].as_py() for each in index.tolist()]


def test_no_texts_are_taken_from_none() -> None:
    found = Texts.of(pa.array([], pa.string())).take(np.empty(0, np.int64))

    assert found.type == pa.string()
    assert found.to_pylist() == []


@pytest.mark.parametrize("room", [0, 100])
@pytest.mark.parametrize("keyed", [True, False])
def test_an_id_names_the_rule_the_trigger_the_time_the_key_and_the_number(
    keyed: bool, room: int
) -> None:
    """Times before 1970 too; what outputs of one trigger share is the same in all of them."""
    random = Random(4)
    names, triggers, keys = ["R", "Rule with a long name", "ö"], WORDS[1:], ["", "k", "key" * 9]
    rows = [
        (rule, trigger, trigger % 3, random.choice([-1, 0, 9, 10, -1_000_000, 17 * 10**14]), number)
        for trigger in sorted(random.choices(range(len(triggers)), k=60))
        for rule in range(3)
        for number in (1, 12)
    ]
    times = {trigger: time for _, trigger, _, time, _ in rows}
    rule, trigger, key, _, number = (np.array(each) for each in zip(*rows, strict=True))
    time = np.array([times[each] for each in trigger.tolist()])

    found = write_texts(
        text_writing.write_ids, len(rows), room,
        Texts.of(pa.array(names)), Texts.of(pa.array(triggers)), Texts.of(pa.array(keys)),
        IdParts(rule, trigger, time, key if keyed else key[:0], number),
    )  # fmt: skip

    found.validate(full=True)
    assert found.to_pylist() == [
        f"{names[r]}:{triggers[t]}@{times[t]}{':' + keys[k] if keyed else ''}:{n}"
        for r, t, k, _, n in rows
    ]


@pytest.mark.parametrize("width", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("old", [0, 4])
@pytest.mark.parametrize("room", [0, 100])
def test_causes_are_joined_in_their_order_and_each_once(width: int, old: int, room: int) -> None:
    """Old texts come before new ones; a text that is there at two places counts once."""
    random = Random(width)
    texts = ["e1", "e2", "f1", "e1", "x" * 30, "e2", "y" * 9, "e10"]
    places = [[random.randrange(-1, len(texts)) for _ in range(width)] for _ in range(300)]
    first = Texts.of(pa.array(texts[:old])) if old else NO_TEXTS

    found = write_texts(
        text_writing.join_texts, 300, room,
        first, Texts.of(pa.array(texts[old:])), np.array(places),
    )  # fmt: skip

    found.validate(full=True)
    assert found.to_pylist() == [
        ",".join(dict.fromkeys(texts[place] for place in sorted(row) if place >= 0))
        for row in places
    ]


@pytest.mark.parametrize("count", [0, 1, 1024, 1025, 300_000])
def test_a_constant_column_has_one_text_as_often_as_it_is_asked_for(count: int) -> None:
    assert repeated_text("same", count).equals(pa.repeat(pa.scalar("same"), count))


def test_a_loop_stops_before_a_text_that_there_is_no_room_for() -> None:
    """And says where; what comes before it is written."""
    texts = Texts.of(pa.array(["short", "x" * 300, "short"]))
    out, ends = np.zeros(128, np.uint8), np.zeros(4, np.int32)

    stopped = text_writing.take_texts(texts, np.array([0, 1, 2]), 0, out, ends)

    assert stopped == 1
    assert bytes(out[: ends[1]]) == b"short"


def test_offsets_are_wide_only_if_they_have_to_be() -> None:
    """As past two gigabytes, and not where there was only room for so much."""
    texts = Texts.of(pa.array(["x" * 100]))

    assert texts.take(np.zeros(9, np.int64), 1000).type == pa.string()
    assert texts.take(np.zeros(11, np.int64), 1000).type == pa.large_string()
    assert texts.take(np.zeros(11, np.int64), 1000).to_pylist() == ["x" * 100] * 11
