"""Numbers close to each other and far apart are told and ranked alike."""

from __future__ import annotations

import numpy as np
import pytest

from ensue.engine.core.numbering import distinct, ranks_in


@pytest.mark.parametrize("span", [1, 50, 700, 10**12])
def test_distinct_numbers_come_in_their_order_each_once(span: int) -> None:
    numbers = np.random.default_rng(span).integers(-span, span, 300)

    assert distinct(numbers).tolist() == sorted(set(numbers.tolist()))


@pytest.mark.parametrize("span", [1, 50, 700, 10**12])
def test_the_rank_of_a_known_number_says_how_many_come_before_it(span: int) -> None:
    numbers = np.random.default_rng(span).integers(5, 5 + span, (100, 3))
    known = sorted(set(numbers.ravel().tolist()))
    ranks = ranks_in(np.array(known), numbers)

    assert ranks.tolist() == [[known.index(each) for each in row] for row in numbers.tolist()]


def test_there_may_be_no_numbers() -> None:
    none = np.empty(0, np.int64)

    assert distinct(none).size == 0
    assert ranks_in(none, np.array([3, 4])).tolist() == [0, 0]
