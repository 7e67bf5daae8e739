"""Texts that compiled loops write, held against Python's."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest

from ensue.engine.batch import text_kernels
from ensue.engine.batch.texts import NO_TEXTS, Texts, written

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


@pytest.mark.parametrize("keyed", [True, False])
def test_an_id_names_the_rule_the_trigger_the_time_the_key_and_the_number(keyed: bool) -> None:
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

    found = written(
        text_kernels.write_ids, len(rows),
        *Texts.of(pa.array(names)), rule, *Texts.of(pa.array(triggers)), trigger, time,
        keyed, *Texts.of(pa.array(keys)), key, number,
    )  # fmt: skip

    found.validate(full=True)
    assert found.to_pylist() == [
        f"{names[r]}:{triggers[t]}@{times[t]}{':' + keys[k] if keyed else ''}:{n}"
        for r, t, k, _, n in rows
    ]


@pytest.mark.parametrize("width", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("old", [0, 4])
def test_causes_are_joined_in_their_order_and_each_once(width: int, old: int) -> None:
    """Old texts come before new ones; a text that is there at two places counts once."""
    random = Random(width)
    texts = ["e1", "e2", "f1", "e1", "x" * 30, "e2", "y" * 9, "e10"]
    places = [[random.randrange(-1, len(texts)) for _ in range(width)] for _ in range(300)]
    first = Texts.of(pa.array(texts[:old])) if old else NO_TEXTS

    found = written(
        text_kernels.join_texts, 300, *first, *Texts.of(pa.array(texts[old:])), np.array(places)
    )

    found.validate(full=True)
    assert found.to_pylist() == [
        ",".join(dict.fromkeys(texts[place] for place in sorted(row) if place >= 0))
        for row in places
    ]


def test_offsets_that_are_too_narrow_are_answered_with_wider_ones() -> None:
    """Past two gigabytes; nobody writes them here."""
    ends = np.empty(3, np.int32)
    offsets = np.array([0, 2**31 - 1], np.int64)

    found = text_kernels.take_texts(np.empty(0, np.uint8), offsets, np.array([0, 0]), ends)

    assert found.size == 0
