"""Sums by limbs are what fractions say, whatever came and went."""

from __future__ import annotations

import math
import struct
from fractions import Fraction
from random import Random

import numpy as np
import pytest

from ensue.engine.batch.related import sums
from ensue.engine.batch.related.sums import Powers


def any_real(random: Random) -> float:
    """Any finite real: also the smallest, and both zeros."""
    match random.randrange(6):
        case 0:
            return random.uniform(-100, 100)
        case 1:
            return round(random.uniform(0, 50), 2)
        case 2:
            return math.ldexp(random.uniform(-1, 1), random.randrange(-1070, 900))
        case 3:
            return 5e-324 * random.randrange(-9, 9)
        case 4:
            return -0.0
        case _:
            return float(random.randrange(-(2**53), 2**53))


def bits_of(value: float) -> int:
    return int(struct.unpack("<q", struct.pack("<d", value))[0])


@pytest.mark.parametrize("seed", range(60))
def test_reals_that_come_and_go_sum_to_what_is_nearest(seed: int) -> None:
    random = Random(seed)
    values = [any_real(random) for _ in range(random.choice([1, 2, 5, 40]))]
    powers = Powers().including(np.array(values))
    held = np.zeros((1, powers.limbs), np.int64)
    digits = np.zeros(sums.MOST_LIMBS, np.uint64)
    there: list[float] = []

    for value in values * 3:
        sums.add_real(held, 0, 0, powers.low, bits_of(value), 1)
        there.append(value)
        if random.random() < 0.5:
            gone = there.pop(random.randrange(len(there)))
            sums.add_real(held, 0, 0, powers.low, bits_of(gone), -1)
        total = sum(map(Fraction, there), Fraction(0))
        found = sums.rounded_sum(held, 0, 0, powers.limbs, powers.low, digits)
        assert found == float(total)
    for value in there:
        sums.add_real(held, 0, 0, powers.low, bits_of(value), -1)
    assert not held.any()


@pytest.mark.parametrize("seed", range(20))
def test_integers_sum_exactly_and_past_64_bits_to_none(seed: int) -> None:
    random = Random(seed)
    held = np.zeros((1, 4), np.int64)
    digits = np.zeros(sums.MOST_LIMBS, np.uint64)
    total = 0

    for _ in range(50):
        value = random.choice([2**63 - 1, -(2**63), random.randrange(-9, 9), -(2**62), 2**40])
        sums.add_integer(held, 0, 0, value, 1)
        total += value
        found, fits = sums.whole_sum(held, 0, 0, 4, digits)
        assert fits == (-(2**63) <= total < 2**63)
        assert not fits or found == total
        assert sums.rounded_sum(held, 0, 0, 4, 0, digits) == float(total)
