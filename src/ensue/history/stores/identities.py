"""Where publications are in a database, by halves of their identities, and which are surely new.

In come halves, numbers of eight bytes; out go numbers of publications that may have them. Nearly
every event is new, so that most questions to the database would find nothing. A `Sieve` in memory
answers those: a Bloom filter of the halves that the database holds, made when many are first asked
for and made anew, larger, when it is full. It is told of what this process writes; what others have
written is read from the rows since. A half that the sieve lets through is asked of the database.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from sqlalchemy import Connection, Select

from ensue.history.stores import schema, statements
from ensue.history.stores.rows import insert_rows, portions

Halves = npt.NDArray[np.int64]

SLICES: Final = 12
"""Parts in which recent identities are moved, by their halves: all at once would hold up the disk
for others."""
BITS_EACH: Final = 12
"""Bits of a sieve for each half: with four probes, one of a hundred is let through in vain."""
LARGEST: Final = 1 << 28
"""Bits: 32 megabytes. With more halves than fit, more are let through in vain."""


@dataclass(frozen=True)
class Sizes:
    """Where the ways of keeping identities change over, for much data; tests have little."""

    recent: int = 200_000
    """Publications after which the identities of a slice are moved again."""
    fewest: int = 500
    """Fewer halves are asked of the database, without a sieve."""
    page: int = 50_000
    """Rows that are read at once."""
    smallest: int = 1 << 22
    """Bits of the smallest sieve: half a megabyte."""


class Sieve:
    """A set of halves that may find too much, and never too little."""

    def __init__(self, count: int, smallest: int = Sizes.smallest) -> None:
        """Room for twice as many halves as there are."""
        wanted = max(smallest, 2 * count * BITS_EACH)
        self._bits = min(LARGEST, 1 << (wanted - 1).bit_length())
        self._bytes = np.zeros(self._bits >> 3, np.uint8)
        self._room = max(self._bits // BITS_EACH, 2 * count)
        self._count = 0

    @property
    def is_full(self) -> bool:
        return self._count > self._room

    def add(self, halves: Halves) -> None:
        self._count += len(halves)
        for place, bit in self._probes(halves):
            np.bitwise_or.at(self._bytes, place, bit)

    def may_hold(self, halves: Halves) -> npt.NDArray[np.bool_]:
        found = np.ones(len(halves), np.bool_)
        for place, bit in self._probes(halves):
            found &= self._bytes[place] & bit != 0
        return found

    def _probes(
        self, halves: Halves
    ) -> Iterator[tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint8]]]:
        """Bytes and bits of each half. Halves are of digests, and so are random as they are."""
        begin = halves.view(np.uint64)
        step = begin >> np.uint64(31) | np.uint64(1)
        for number in range(4):
            probe = begin + np.uint64(number) * step & np.uint64(self._bits - 1)
            yield probe >> np.uint64(3), np.uint8(1) << (probe & np.uint64(7)).astype(np.uint8)


class Identities:
    """The tables of identities, with a sieve over them. Used inside of transactions."""

    def __init__(self, sizes: Sizes | None = None) -> None:
        self._sizes = sizes or Sizes()
        self._sieve: Sieve | None = None
        self._last = 0

    def numbers(self, connection: Connection, halves: Halves, last: int, count: int) -> list[int]:
        """Numbers of publications that may have halves; there are `count`, up to number `last`."""
        if len(halves) >= self._sizes.fewest:
            halves = halves[self._current(connection, last, count).may_hold(halves)]
        found: list[int] = []
        # In their order, each page of the index is looked at once.
        for some in portions(np.sort(halves).tolist()):
            for table in (schema.recent, schema.identities):
                statement = statements.identified(table, connection.dialect, len(some))
                found += [seq for (seq,) in connection.exec_driver_sql(statement, some)]
        return found

    def insert(self, connection: Connection, halves: Halves, first: int) -> None:
        """Halves of new publications, numbered from `first` on."""
        if self._sieve is not None and self._last == first - 1:
            self._sieve.add(halves)
            self._last += len(halves)
        order = np.argsort(halves, kind="stable")
        rows = np.column_stack((halves[order], order + first))
        insert_rows(connection, schema.recent, rows.ravel().tolist())
        step = max(1, self._sizes.recent // SLICES)
        begin, end = (first - 1) // step, (first + len(halves) - 1) // step
        for number in range(max(begin, end - SLICES), end):
            low, high = _slice(number % SLICES)
            for each in statements.MOVE_RECENT:
                connection.execute(each, {"low": low, "high": high})

    def forget(self) -> None:
        """A transaction has failed: what the sieve was told of it is not so."""
        self._sieve = None

    def _current(self, connection: Connection, last: int, count: int) -> Sieve:
        """The sieve with every publication up to a number."""
        sieve = self._sieve
        if sieve is not None and self._last < last:
            for rows in self._pages(connection, statements.IDENTITIES_SINCE, self._last):
                sieve.add(halves_of([bytes(identity) for (identity,) in rows]))
        if sieve is None or sieve.is_full or self._last > last:
            sieve = self._sieve = Sieve(count, self._sizes.smallest)
            for statement in statements.ALL_HALVES:
                for rows in self._pages(connection, statement):
                    sieve.add(np.fromiter((half for (half,) in rows), np.int64, len(rows)))
        self._last = last
        return sieve

    def _pages(
        self, connection: Connection, statement: Select[Any], since: int | None = None
    ) -> Iterator[Sequence[Any]]:
        found = connection.execute(statement, {} if since is None else {"since": since})
        while rows := found.fetchmany(self._sizes.page):
            yield rows


def _slice(number: int) -> tuple[int, int]:
    """The least and the largest half of a slice."""
    width = 2**64 // SLICES
    low = number * width - 2**63
    return low, 2**63 - 1 if number == SLICES - 1 else low + width - 1


def halves_of(keys: Sequence[bytes]) -> Halves:
    """Half of each identity, which has sixteen bytes, as a number."""
    return np.frombuffer(b"".join(keys), ">i8")[::2].astype(np.int64)
