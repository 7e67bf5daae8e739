"""Rules that cannot be run across sites, refused before any is placed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ensue.errors import UsageError
from ensue.lang.checked import CheckedLibrary
from ensue.lang.checking.ecl import expressions_in
from ensue.lang.expressions.nesting import parts_of as operands_of
from ensue.lang.expressions.tree import Expression, TemporalTerm
from ensue.lang.syntax import Correlation, EclCorrelation, EventPort, Holds


def refuse_histories(library: CheckedLibrary) -> None:
    asking = [each.name for each in library.correlations if any(map(_asks, _predicates(each)))]
    if asking:
        names = ", ".join(f"`{name}`" for name in asking)
        raise UsageError(
            f"a history knows the events of all sites, so rules that ask one cannot be placed:"
            f" {names}; run them on one machine"
        )


def _predicates(correlation: Correlation) -> Iterator[Expression]:
    for port in correlation.ports:
        if isinstance(port, EventPort) and port.where is not None:
            yield port.where
    if isinstance(correlation, EclCorrelation):
        for part in expressions_in(correlation.body):
            if isinstance(part, Holds):
                yield part.predicate


def _asks(predicate: Expression) -> bool:
    waiting: Sequence[Expression] = [predicate]
    while waiting:
        if any(isinstance(each, TemporalTerm) for each in waiting):
            return True
        waiting = [part for each in waiting for part in operands_of(each)]
    return False
