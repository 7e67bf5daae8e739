"""What correlations put out, by their text.

In comes a correlation; out go the kinds of outputs that it can have. It puts out the types that it
pushes: `push new T`, `push(T)` and `notify` an event of type `T`, and `push a` any event of port
`a`. A push that can never happen puts out nothing: in a case whose labels exclude each other, of a
port that has no place in the filter, or of `false`. Which correlations read these outputs is said
by name (`ensue.lang.derived.wiring`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ensue.lang.checking.ecl import expressions_in
from ensue.lang.checking.pushing import cases_that_may_run
from ensue.lang.derived.parts import ports_in
from ensue.lang.syntax import (
    Constant,
    Correlation,
    EclCorrelation,
    EventPort,
    Push,
    PushNew,
    PushPort,
)


@dataclass(frozen=True, slots=True)
class OutputKind:
    """A kind of output. An event that is sent on (`or_below`) may also be of a subtype."""

    type: str
    or_below: bool


def outputs_of(correlation: Correlation) -> Iterator[OutputKind]:
    """The kinds of outputs that a correlation can have, by its text."""
    if isinstance(correlation, EclCorrelation):
        for part in expressions_in(correlation.body):
            if isinstance(part, Push) and part.body != Constant(False):
                yield OutputKind(part.type or correlation.output, False)
        return
    bound = set(ports_in(correlation.branches))
    ports = {
        each.name: each
        for each in correlation.ports
        if isinstance(each, EventPort) and each.name in bound
    }
    cases = [s for case in cases_that_may_run(correlation) for s in case.statements]
    for statement in (*correlation.initially, *cases):
        if isinstance(statement, PushNew):
            yield OutputKind(statement.type, False)
    # Before the first case nothing is bound, so `push a` sends nothing there.
    for statement in cases:
        if isinstance(statement, PushPort) and statement.port in ports:
            yield OutputKind(ports[statement.port].type, True)
