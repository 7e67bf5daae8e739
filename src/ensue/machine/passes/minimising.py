"""Merges states of a dense table that are equivalent: no stream can tell them apart."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from ensue.machine.dense import DenseMove, DenseTable


def minimise(table: DenseTable) -> DenseTable:
    """The smallest table with equal behaviour, by partition refinement.

    At first two states are in one class if they have the same marks of labels and every input has
    the same effects in both. Then classes are split, again and again: states stay together only if
    every input leads them to states of one class. When no class is split any more, the states of a
    class have the same effects on every stream, by induction over its length; and for states of two
    classes there is a stream that shows the difference, so no smaller table exists. (A dense table
    has only states that can be reached.)
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
    """A number for each key; equal keys have equal numbers, in the order of first occurrence."""
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys]
