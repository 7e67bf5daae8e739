"""Exact sums of many keys as arrays: how wide they are, and what they and counts come to.

In come the registers of keys (`counting`), in which a sum is a row of limbs above a power of two;
out go `Tallies`: what a rule without a window holds of events that it has let go. They are put back
into registers that may have become wider, and become the saved form that every engine has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ensue.engine.batch.related import conditions, port_aggregates
from ensue.engine.batch.related.conditions import EXPONENT_OF_ONE, LIMB
from ensue.engine.core.relating.form import ChainForm
from ensue.engine.core.relating.tallies import SavedTallies, saved_sum

_ROOM_FOR_EVENTS = 31
"""How many bits more than its values a sum may have."""
_FRACTION = 53
_DIGITS = (1 << LIMB) - 1

Registers = npt.NDArray[np.int64]


class KeySums(NamedTuple):
    """One sum for each key: how many values it is of, and its limbs above a power of two."""

    present: npt.NDArray[np.int64]
    limbs: npt.NDArray[np.int64]
    power: int


class Tallies(NamedTuple):
    """For each key how many events counted ports have, and its sums by the number of aggregates."""

    counts: npt.NDArray[np.int64]
    sums: dict[int, KeySums]

    def save(self, key: int, form: ChainForm) -> SavedTallies:
        """The tallies of one key, as every engine has them."""
        counts = dict(zip(form.counted, self.counts[key].tolist(), strict=True))
        sums = {}
        for number, each in self.sums.items():
            total = sum(limb << LIMB * at for at, limb in enumerate(each.limbs[key].tolist()))
            is_real = form.aggregates[number].kind == "real"
            whole, numerator = (0, total) if is_real else (total, 0)
            sums[number] = saved_sum(int(each.present[key]), whole, numerator, int(each.power))
        return SavedTallies(counts, sums)

    def take_in(self, key: int, saved: SavedTallies, form: ChainForm) -> None:
        """Write the saved tallies of one key; the limbs of sums are wide enough for them."""
        self.counts[key] = [saved.counts[port] for port in form.counted]
        for number, of in saved.sums.items():
            sums, total = self.sums[number], of.whole_number
            if of.fraction:
                total = of.numerator << int(of.power - sums.power)
            sums.present[key] = of.present
            last = sums.limbs.shape[1] - 1
            for limb in range(last):
                sums.limbs[key, limb] = total >> LIMB * limb & _DIGITS
            sums.limbs[key, last] = total >> LIMB * last


@dataclass
class Powers:
    """The range of powers of two in which all reals of an aggregate lie, so far."""

    low: int = 0
    high: int = 0
    is_known: bool = False

    def including(self, reals: npt.NDArray[np.float64]) -> Powers:
        bits = np.abs(reals).view(np.int64)
        bits = bits[bits != 0]
        if not bits.size:
            return self
        low = max(1, int(bits.min()) >> 52) - EXPONENT_OF_ONE
        return self.holding(low, (int(bits.max()) >> 52) - EXPONENT_OF_ONE + _FRACTION)

    def holding(self, low: int, high: int) -> Powers:
        """Powers between which there is room for `low` to `high`."""
        if self.is_known and self.low <= low and high <= self.high:
            return self
        if self.is_known:
            low, high = min(low, self.low), max(high, self.high)
        # More than is needed, so that it is seldom needed again.
        return Powers((low // LIMB - 1) * LIMB, (high // LIMB + 1) * LIMB, True)

    @property
    def limbs(self) -> int:
        needed = (self.high - self.low + _ROOM_FOR_EVENTS) // LIMB + 2
        return max(needed, (self.high - self.low - _FRACTION) // LIMB + 4)


def tallies_in(held: Registers, ports: Registers, aggregates: Registers) -> Tallies:
    """The counts and sums of all keys, from their registers."""
    counts = held[:, ports[:, 2] + port_aggregates.COUNTED]
    sums = {}
    for number, row in enumerate(aggregates):
        if row[conditions.KIND] == conditions.SUM:
            own, limbs = row[conditions.OWN], row[conditions.LIMBS]
            found = held[:, own : own + 1 + limbs]
            sums[number] = KeySums(
                found[:, 0].copy(), _carried(found[:, 1:]), row[conditions.POWER]
            )
    return Tallies(counts, sums)


def put_back(tallies: Tallies, held: Registers, ports: Registers, aggregates: Registers) -> None:
    """Write counts and sums to registers, in which sums may be wider than they were."""
    size = len(tallies.counts)
    held[:size, ports[:, 2] + port_aggregates.COUNTED] = tallies.counts
    for number, each in tallies.sums.items():
        row = aggregates[number]
        own, limbs = row[conditions.OWN] + 1, row[conditions.LIMBS]
        held[:size, own - 1] = each.present
        held[:size, own : own + limbs] = 0
        # A wider sum begins at a lower power of two; at a higher one, it was of no reals yet.
        up = own + (each.power - row[conditions.POWER]) // LIMB
        if up >= own:
            width = min(each.limbs.shape[1], own + limbs - up)
            held[:size, up : up + width] = each.limbs[:, :width]


def _carried(limbs: Registers) -> Registers:
    """Sums whose limbs are digits, but for the last one, which has the sign."""
    limbs = limbs.copy()
    for at in range(limbs.shape[1] - 1):
        limbs[:, at + 1] += limbs[:, at] >> LIMB
        limbs[:, at] &= _DIGITS
    return limbs
