"""Checks the first phase of a filter correlation: ports, labels and repetitions.

Out goes a `FilterNames`: the labels with their places, and the ports in the filter. The parser
checks the size of a filter. The walk has its own stack, since a tree from the builder may be nested
deeper than Python can recurse.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ensue.lang.checking.ports import Ports, find_port
from ensue.lang.checking.scope import LibraryScope
from ensue.lang.source import Span
from ensue.lang.syntax import (
    Filter,
    FilterCorrelation,
    Labelled,
    PortRef,
    Timeout,
    Times,
)


@dataclass
class FilterNames:
    labels: dict[str, Span] = field(default_factory=dict)
    ports: set[str] = field(default_factory=set)


def check_filter(correlation: FilterCorrelation, ports: Ports, scope: LibraryScope) -> FilterNames:
    facts = FilterNames()
    # Each part, and whether it stands inside a repetition.
    pending: list[tuple[Filter, bool]] = [(each, False) for each in correlation.branches[::-1]]
    while pending:
        part, repeated = pending.pop()
        if isinstance(part, PortRef):
            find_port(part.name, part.span, ports, scope)
            facts.ports.add(part.name)
        elif isinstance(part, Labelled):
            _check_label(part, ports, facts, scope, repeated=repeated)
            pending.append((part.body, repeated))
        elif isinstance(part, Times):
            if part.count < 1:
                scope.error(
                    "bad-count",
                    f"a repetition of {part.count} times has nothing to match",
                    part.span,
                    "the number in `x{n}` must be 1 or more",
                )
            pending.append((part.body, True))
        elif not isinstance(part, Timeout):
            pending.extend((each, repeated) for each in reversed(part.parts))
    return facts


def _check_label(
    part: Labelled, ports: Ports, facts: FilterNames, scope: LibraryScope, *, repeated: bool
) -> None:
    span = part.span
    if part.label == "true":
        scope.error(
            "reserved-label",
            "a label cannot be named `true`, since `case true` means always",
            span,
            "give it another name",
        )
        return
    if part.label in facts.labels:
        first = facts.labels[part.label]
        scope.error(
            "duplicate-label",
            f"label `{part.label}` is defined twice",
            span,
            f"the first one is at {scope.place(first)}; give one of them another name",
        )
    elif part.label in ports:
        scope.warning(
            "label-is-port",
            f"label `{part.label}` has the name of a port",
            span,
            "a case asks for the label, `push` for the port; another name tells them apart",
        )
    facts.labels.setdefault(part.label, span)
    if repeated:
        scope.error(
            "label-in-repetition",
            f"label `{part.label}` stands in a repetition and would be defined many times",
            span,
            f"put it outside: `{part.label}:(...){{n}}`",
        )
