"""Merges the states of a dense table that no stream can tell apart."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from ensue.machine.dense import DenseMove, DenseTable


def minimise(table: DenseTable) -> DenseTable:
    """The smallest table that does the same.

    Two states are put together as long as nothing tells them apart: at first if an engine sees the
    same marks of labels in both and every input has the same effects; then, again and again, only
    if every input also leads to states that are still together. What is together when nothing
    changes any more has, by induction over the length of a stream, the same effects on every
    stream; and states that are apart have a stream that shows it, so no smaller table exists.
    (Only states that can be reached are in a dense table.)
    """
    groups = _numbered(
        (table.watched[state], tuple((cell.effects, cell.started) for cell in row))
        for state, row in enumerate(table.rows)
    )
    count = len(set(groups))
    while True:
        groups = _numbered(
            (groups[state], tuple(groups[cell.to] for cell in row))
            for state, row in enumerate(table.rows)
        )
        if len(set(groups)) == count:
            break
        count = len(set(groups))
    members = {group: state for state, group in reversed(list(enumerate(groups)))}
    return DenseTable(
        groups[table.first],
        table.inputs,
        tuple(
            tuple(
                DenseMove(groups[cell.to], cell.effects, cell.started)
                for cell in table.rows[members[group]]
            )
            for group in range(count)
        ),
        tuple(table.watched[members[group]] for group in range(count)),
    )


def _numbered(keys: Iterable[Hashable]) -> list[int]:
    """Equal keys get equal numbers, in the order in which they first come."""
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys]
