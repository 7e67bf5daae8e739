"""When operations run: the rates of suppliers, followed along what they supply to its consumers.

In come operations; out go their `Stream`s. A stream is a source that runs at a period, and the
operations that run, one after the other, because of it; the last of them is the one it is a stream
of. A supplier has one stream. A consumer of any of several types has those of all their suppliers,
so it runs at the sum of their rates; a consumer of all of them runs when the slowest has come, and
has the streams of that one. Circles are refused, with their path.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from ensue.channel.scheduling.operations import Operation
from ensue.errors import UsageError

MOST_STREAMS: Final = 20_000


@dataclass(frozen=True)
class Stream:
    """A period in microseconds, and the operations from the source to the one that runs."""

    period: int
    path: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.path[-1]

    @property
    def source(self) -> str:
        return self.path[0]


def in_dependency_order(operations: Sequence[Operation]) -> list[Operation]:
    """Suppliers before their consumers, and otherwise as declared. Refuses a circle."""
    suppliers = _suppliers(operations)
    by_name = {each.name: each for each in operations}
    ordered: dict[str, Operation] = {}
    for operation in operations:
        # Depth first, without recursion: a chain may be as long as there are operations.
        path, waiting = [operation.name], [_needed(operation, suppliers)]
        while path:
            if path[-1] in ordered:
                path.pop()
                waiting.pop()
            elif not waiting[-1]:
                waiting.pop()
                name = path.pop()
                ordered[name] = by_name[name]
            else:
                needed = waiting[-1].pop(0)
                if needed in path:
                    circle = [*path[path.index(needed) :], needed]
                    raise UsageError(_circle(circle[::-1]))
                if needed not in ordered:
                    path.append(needed)
                    waiting.append(_needed(by_name[needed], suppliers))
    return list(ordered.values())


def streams_of(ordered: Sequence[Operation]) -> dict[str, tuple[Stream, ...]]:
    """The streams of each operation, of operations in the order of their dependencies."""
    suppliers = _suppliers(ordered)
    found: dict[str, tuple[Stream, ...]] = {}
    count = 0
    for operation in ordered:
        if operation.period is not None:
            found[operation.name] = (Stream(operation.period, (operation.name,)),)
        else:
            by_type = [
                [stream for name in suppliers[type_] for stream in found[name]]
                for type_ in operation.consumes
            ]
            chosen = _slowest(by_type) if operation.consumes_all else _once(by_type)
            found[operation.name] = tuple(
                Stream(each.period, (*each.path, operation.name)) for each in chosen
            )
        count += len(found[operation.name])
        if count > MOST_STREAMS:
            raise UsageError(
                f"`{operation.name}`: operations run because of more than {MOST_STREAMS:,} others"
                " together, which is the most: divide the schedule"
            )
    return found


def rate_of(streams: Sequence[Stream]) -> Fraction:
    """How often an operation runs in a microsecond."""
    return sum((Fraction(1, each.period) for each in streams), Fraction(0))


def _slowest(by_type: Sequence[Sequence[Stream]]) -> Sequence[Stream]:
    """The streams of the type that comes least often; of equals the last, which is waited for."""
    return min(reversed(by_type), key=rate_of)


def _once(by_type: Sequence[Sequence[Stream]]) -> list[Stream]:
    """The streams of all types: what supplies two of them runs its consumer for each."""
    return [stream for streams in by_type for stream in streams]


def _suppliers(operations: Sequence[Operation]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for operation in operations:
        for type_ in operation.supplies:
            found.setdefault(type_, []).append(operation.name)
    return found


def _needed(operation: Operation, suppliers: Mapping[str, list[str]]) -> list[str]:
    names = [name for type_ in operation.consumes for name in suppliers[type_]]
    return list(dict.fromkeys(names))


def _circle(names: Sequence[str]) -> str:
    path = " supplies ".join(f"`{each}`" for each in names)
    return f"operations supply each other in a circle, so that none has a rate: {path}"
