"""Keys to numbers: one number a key, the same in every batch."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from ensue.engine.batch.column import column_of
from ensue.engine.batch.keys import Keys, TextNumbers
from ensue.engine.core.numbering import IntegerNumbers
from ensue.lang.expressions.evaluation import MISSING


@given(st.lists(st.text(max_size=40) | st.text("ab", min_size=15, max_size=20)))
def test_texts_have_the_same_number_exactly_if_they_are_the_same(texts: list[str]) -> None:
    """Also those of more than 16 bytes that differ only in the middle."""
    numbers = TextNumbers()
    first = numbers.number(pa.array(texts, pa.string())).tolist()

    expected: dict[str, int] = {}
    assert first == [expected.setdefault(text, len(expected)) for text in texts]
    assert numbers.number(pa.array(texts, pa.string())).tolist() == first
    assert numbers.texts().to_pylist() == list(expected)


def test_a_slice_of_an_array_is_numbered_by_its_own_texts() -> None:
    texts = pa.array(["x", "a", "b", "a"])

    assert TextNumbers().number(texts[1:]).tolist() == [0, 1, 0]


def test_a_table_grows_with_its_texts() -> None:
    """A hundred thousand keys, of all lengths, keep their numbers."""
    texts = [f"{number:0{3 + number % 30}d}" for number in range(100_000)]
    numbers = TextNumbers()

    assert numbers.number(pa.array(texts)).tolist() == list(range(100_000))
    assert numbers.number(pa.array(texts[::-1])).tolist() == list(range(100_000))[::-1]


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_integers_have_the_same_number_exactly_if_they_are_the_same(values: list[int]) -> None:
    numbers = IntegerNumbers()
    found = numbers.number(np.array(values, np.int64)).tolist()

    expected: dict[int, int] = {}
    assert found == [expected.setdefault(value, len(expected)) for value in values]


def test_a_missing_key_has_no_number() -> None:
    keys = Keys(keyed=True)

    assert keys.number([column_of(["a", MISSING, "a"])], np.arange(3)).tolist() == [0, -1, 0]


def test_kinds_are_kept_apart_and_numbers_of_keys_survive_a_change_of_kind() -> None:
    """`1` as a number, as text and as a boolean are three keys; 1 and 1.0 are one."""
    keys = Keys(keyed=True)
    rows = np.arange(1)

    assert keys.number([column_of([1])], rows).tolist() == [0]
    assert keys.number([column_of(["1"])], rows).tolist() == [1]
    assert keys.number([column_of([True])], rows).tolist() == [2]
    assert keys.number([column_of([1.0])], rows).tolist() == [0]
    assert keys.texts(np.array([0, 1, 2])).to_pylist() == ["1", "1", "true"]
