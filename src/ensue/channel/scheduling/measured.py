"""A running channel held against its schedule: execution times, rates and overruns.

In come turns of operations, as consumers run them and suppliers push; out go `OperationFigures`,
and records, JSON files from which `ensue schedule --measure` takes execution times. An execution
time is what passes on the clock between the beginning and the end of a turn: where threads share a
processor, other work is in it.
"""

from __future__ import annotations

import functools
import inspect
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Final

import msgspec

from ensue.channel.scheduling.schedule import Schedule, Scheduled
from ensue.configuration.bounded import read_text
from ensue.errors import UsageError

LARGEST_RECORD: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class OperationFigures:
    """What was measured of one operation; times are in microseconds, None without a turn.

    `overruns` counts turns that took longer than the declared worst case. `rate` is in turns a
    second, from the first to the last.
    """

    name: str
    priority: int
    declared_worst: int | None
    turns: int = 0
    worst: int | None = None
    average: float | None = None
    overruns: int = 0
    declared_rate: float = 0.0
    rate: float | None = None


class Meter:
    """The turns of one operation."""

    def __init__(self, worst: int | None) -> None:
        self._limit = None if worst is None else worst * 1_000
        self._lock = threading.Lock()
        self._turns = self._overruns = self._total = self._longest = 0
        self._first = self._last = 0

    def note(self, began: int, ended: int) -> None:
        """Count a turn, by its times in nanoseconds on a clock that does not jump."""
        taken = ended - began
        with self._lock:
            if not self._turns:
                self._first = began
            self._last = began
            self._turns += 1
            self._total += taken
            self._longest = max(self._longest, taken)
            if self._limit is not None and taken > self._limit:
                self._overruns += 1

    def figures(self, operation: Scheduled, declared_worst: int | None) -> OperationFigures:
        with self._lock:
            turns, passed = self._turns, self._last - self._first
            return OperationFigures(
                operation.name,
                operation.priority,
                declared_worst,
                turns,
                -(-self._longest // 1_000) if turns else None,
                self._total / turns / 1_000 if turns else None,
                self._overruns,
                operation.rate,
                (turns - 1) * 1e9 / passed if turns > 1 and passed else None,
            )


class ChannelSchedule:
    """The schedule of a channel, and what its operations have taken so far."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self._meters = {
            each.name: Meter(schedule.declared_worst(each.name)) for each in schedule.operations
        }

    def quality_of(self, operation: str) -> dict[str, Any]:
        """The quality of service that a consumer has as an operation."""
        found = self.schedule[operation]
        return {
            "priority": found.priority,
            "sub_priority": found.sub_priority,
            "deadline": f"{found.deadline / 1_000} ms",
        }

    def measured(self, operation: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """A function that calls another one as a turn of an operation."""
        note = self._meters[self.schedule[operation].name].note
        if inspect.iscoroutinefunction(call):

            @functools.wraps(call)
            async def awaited(*given: Any) -> Any:
                began = time.monotonic_ns()
                try:
                    return await call(*given)
                finally:
                    note(began, time.monotonic_ns())

            return awaited

        def called(*given: Any) -> Any:
            began = time.monotonic_ns()
            try:
                return call(*given)
            finally:
                note(began, time.monotonic_ns())

        return called

    @contextmanager
    def turn(self, operation: str) -> Iterator[None]:
        """Measure a block as a turn of an operation, as of a supplier in a thread of its own."""
        meter = self._meters[self.schedule[operation].name]
        began = time.monotonic_ns()
        try:
            yield
        finally:
            meter.note(began, time.monotonic_ns())

    def report(self) -> list[OperationFigures]:
        """Every operation, in the order of the schedule."""
        return [
            self._meters[each.name].figures(each, self.schedule.declared_worst(each.name))
            for each in self.schedule.operations
        ]

    def save(self, path: str | PathLike[str]) -> None:
        """Write what was measured, for `ensue schedule FILE --measure`."""
        rows = [_Measured(each.name, each.worst, each.turns) for each in self.report()]
        Path(path).write_bytes(msgspec.json.format(msgspec.json.encode(_Record(rows)), indent=2))


class _Measured(msgspec.Struct, frozen=True):
    """`worst` is in microseconds; None if there was no turn."""

    operation: str
    worst: int | None
    turns: int


class _Record(msgspec.Struct, frozen=True):
    measured: list[_Measured]


def read_record(path: str | PathLike[str]) -> Mapping[str, int]:
    """The worst execution times of a record, by operation. Raises `UsageError`."""
    hint = "give a file that `channel.schedule.save(path)` has written"
    text = read_text(path, LARGEST_RECORD, hint)
    try:
        record = msgspec.json.decode(text, type=_Record)
    except msgspec.DecodeError as error:
        raise UsageError(f"{path}: no record of measured times: {error}: {hint}") from None
    # An operation that took less than a microsecond took one: a turn is never for nothing.
    return {
        each.operation: max(1, each.worst) for each in record.measured if each.worst is not None
    }
