"""Tallies: the counts and exact sums of all keys, as arrays and in the form that is saved.

A rule without a window keeps counts and sums of events that it has let go (`stretch_registers`). In
come the registers of keys; out go `Tallies`, which are put back into registers that may have become
wider, or become the saved form that every engine has.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ensue.engine.batch.related.port_aggregates import (
    COUNTED,
    KIND,
    LIMBS,
    OWN,
    PORT_REGISTERS,
    POWER,
    SUM,
)
from ensue.engine.batch.related.sums import LIMB
from ensue.engine.core.relating.form import ChainForm
from ensue.engine.core.relating.tallies import SavedTallies, saved_sum

_DIGITS = (1 << LIMB) - 1
"""All bits of a limb."""

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

    def restore(self, key: int, saved: SavedTallies, form: ChainForm) -> None:
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


def tallies_in(registers: Registers, ports: Registers, aggregates: Registers) -> Tallies:
    """The counts and sums of all keys, from their registers."""
    counts = registers[:, ports[:, PORT_REGISTERS] + COUNTED]
    sums = {}
    for number, row in enumerate(aggregates):
        if row[KIND] == SUM:
            own, limbs = row[OWN], row[LIMBS]
            found = registers[:, own : own + 1 + limbs]
            sums[number] = KeySums(found[:, 0].copy(), _carried(found[:, 1:]), row[POWER])
    return Tallies(counts, sums)


def put_back(
    tallies: Tallies, registers: Registers, ports: Registers, aggregates: Registers
) -> None:
    """Write counts and sums to registers, in which sums may be wider than they were."""
    size = len(tallies.counts)
    registers[:size, ports[:, PORT_REGISTERS] + COUNTED] = tallies.counts
    for number, each in tallies.sums.items():
        row = aggregates[number]
        own, limbs = row[OWN] + 1, row[LIMBS]
        registers[:size, own - 1] = each.present
        registers[:size, own : own + limbs] = 0
        # A wider sum begins at a lower power of two; at a higher one, it was of no reals yet.
        up = own + (each.power - row[POWER]) // LIMB
        if up >= own:
            width = min(each.limbs.shape[1], own + limbs - up)
            registers[:size, up : up + width] = each.limbs[:, :width]


def _carried(limbs: Registers) -> Registers:
    """Sums whose limbs are digits, but for the last one, which has the sign."""
    limbs = limbs.copy()
    for at in range(limbs.shape[1] - 1):
        limbs[:, at + 1] += limbs[:, at] >> LIMB
        limbs[:, at] &= _DIGITS
    return limbs
