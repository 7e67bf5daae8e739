"""Sets of codes against plain sets of integers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ensue.knowledge.codes import UNKNOWN, CodeSet

codes = st.sets(st.integers(0, 60))


@given(codes)
def test_set_of_codes_has_what_was_put_in(given_codes: set[int]) -> None:
    made = CodeSet.of(given_codes)

    assert set(made) == given_codes
    assert len(made) == len(given_codes)
    assert [code in made for code in range(-1, 62)] == [c in given_codes for c in range(-1, 62)]


@given(codes)
def test_array_of_codes_is_answered_as_each_alone(given_codes: set[int]) -> None:
    made = CodeSet.of(given_codes)
    asked = np.arange(UNKNOWN, 62, dtype=np.int32)

    assert made.contains(asked).tolist() == [int(code) in made for code in asked]


@given(codes, codes)
def test_sets_compare_and_unite_as_plain_ones(one: set[int], other: set[int]) -> None:
    x, y = CodeSet.of(one), CodeSet.of(other)

    assert (x <= y) == (one <= other)
    assert x.isdisjoint(y) == one.isdisjoint(other)
    assert set(x | y) == one | other
    assert (x == y) == (one == other)


@given(st.integers(0, 50), st.integers(1, 50))
def test_run_of_codes_is_two_bounds(start: int, length: int) -> None:
    assert CodeSet.of(range(start, start + length)).bounds == (start, start + length)
