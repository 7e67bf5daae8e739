"""What operations declare: the tables `[schedule]` and `[[operation]]`, checked as a whole.

In comes the path of a TOML file, or its tables as mappings; out go `ScheduleTables`, with every
duration in microseconds. All mistakes are reported together. What follows from the declarations
(rates, priorities) is worked out elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import Any, Final, Literal, cast

from ensue.configuration.toml import read_settings_file
from ensue.errors import UsageError
from ensue.lang.durations import parse_duration

Strategy = Literal["rate-monotonic", "maximum-urgency", "fixed"]
STRATEGIES: Final[tuple[Strategy, ...]] = ("rate-monotonic", "maximum-urgency", "fixed")
MOST_THREADS: Final = 1_024
MOST_OPERATIONS: Final = 2_000

_SCHEDULE_KEYS: Final = ("strategy", "threads")
_OPERATION_KEYS: Final = (
    "name", "period", "worst", "supplies", "consumes", "deadline", "critical", "priority",
    "sub_priority",
)  # fmt: skip


@dataclass(frozen=True)
class Operation:
    """One operation as it was declared; times are in microseconds, None where they are left out.

    A supplier has a `period`. A consumer has the types that it `consumes`: one of each of them
    (`all`), or any of them.
    """

    name: str
    worst: int | None = None
    period: int | None = None
    supplies: tuple[str, ...] = ()
    consumes: tuple[str, ...] = ()
    consumes_all: bool = True
    deadline: int | None = None
    critical: bool = False
    priority: int | None = None
    sub_priority: int = 0


@dataclass(frozen=True)
class ScheduleTables:
    """The declarations of one file."""

    operations: tuple[Operation, ...]
    strategy: Strategy = "rate-monotonic"
    threads: int = 1

    def with_worst(self, measured: Mapping[str, int]) -> ScheduleTables:
        """The same, with measured execution times where none was declared."""
        filled = (
            replace(each, worst=measured.get(each.name)) if each.worst is None else each
            for each in self.operations
        )
        return replace(self, operations=tuple(filled))


def read_tables(given: str | PathLike[str] | Mapping[str, Any]) -> ScheduleTables:
    """The tables of a file, or tables as a mapping. Raises `UsageError` with all mistakes."""
    if isinstance(given, Mapping):
        return _Reading("schedule", given).tables()
    place = Path(given)
    file = read_settings_file(place, "give a TOML file with [schedule] and [[operation]]")
    return _Reading(str(place), file.tables).tables()


class _Reading:
    """One reading of tables, with the mistakes that were found so far."""

    def __init__(self, where: str, given: Mapping[str, Any]) -> None:
        self._where = where
        self._given = given
        self._problems: list[str] = []

    def tables(self) -> ScheduleTables:
        for name in self._given.keys() - {"schedule", "operation"}:
            self._problems.append(f"`{name}` is no table; there are [schedule] and [[operation]]")
        schedule = self._table(self._given.get("schedule", {}), "[schedule]", _SCHEDULE_KEYS)
        strategy = schedule.get("strategy", STRATEGIES[0])
        if strategy not in STRATEGIES:
            known = ", ".join(f"`{each}`" for each in STRATEGIES)
            self._problems.append(f"there is no strategy `{strategy}`; choose one of {known}")
        threads = schedule.get("threads", 1)
        if not _is_integer(threads) or not 1 <= threads <= MOST_THREADS:
            self._problems.append(f"`threads` is a number from 1 to {MOST_THREADS:,}")
        operations = self._operations(strategy)
        if self._problems:
            raise UsageError("\n".join(f"{self._where}: {each}" for each in self._problems))
        return ScheduleTables(tuple(operations), cast(Strategy, strategy), threads)

    def _operations(self, strategy: object) -> list[Operation]:
        given = self._given.get("operation", [])
        if not isinstance(given, list) or not given:
            self._problems.append("there is no operation: each needs a table [[operation]]")
            return []
        if len(given) > MOST_OPERATIONS:
            self._problems.append(
                f"there are {len(given):,} operations, and {MOST_OPERATIONS:,} are allowed"
            )
            return []
        operations: dict[str, Operation] = {}
        for number, each in enumerate(given, 1):
            operation = self._operation(each, number)
            if operation.name in operations:
                self._problems.append(f"two operations are called `{operation.name}`: rename one")
            operations[operation.name] = operation
            if strategy == "fixed" and operation.priority is None:
                self._problems.append(
                    f"operation `{operation.name}`: the strategy `fixed` needs its `priority`"
                )
            if strategy != "fixed" and operation.priority is not None:
                self._problems.append(
                    f"operation `{operation.name}`: `priority` is for the strategy `fixed`;"
                    f" `{strategy}` works it out, so leave it out"
                )
        self._check_types(operations)
        return list(operations.values())

    def _operation(self, given: object, number: int) -> Operation:
        table = self._table(given, f"operation {number}", _OPERATION_KEYS)
        name = table.get("name")
        if not isinstance(name, str) or not name:
            self._problems.append(f"operation {number}: it needs a `name`")
            name = f"operation {number}"
        where = f"operation `{name}`"
        consumes, takes_all = self._consumed(table.get("consumes"), where)
        period = self._duration(table, "period", where)
        if (period is None) == (not consumes) and "period" not in table:
            self._problems.append(f"{where}: a supplier has a `period`, a consumer has `consumes`")
        elif consumes and "period" in table:
            self._problems.append(
                f"{where}: the rate of a consumer follows from what it consumes: leave out"
                " `period`, or `consumes` if it runs by itself"
            )
        priority, sub_priority = table.get("priority"), table.get("sub_priority", 0)
        for key, value in (("priority", priority), ("sub_priority", sub_priority)):
            if value is not None and not _is_integer(value):
                self._problems.append(f"{where}: `{key}` is an integer; given is `{value!r}`")
        critical = table.get("critical", False)
        if not isinstance(critical, bool):
            self._problems.append(f"{where}: `critical` is true or false")
        return Operation(
            name,
            self._duration(table, "worst", where),
            period,
            self._names(table.get("supplies", []), f"{where}: `supplies`"),
            consumes,
            takes_all,
            self._duration(table, "deadline", where),
            bool(critical),
            priority,
            sub_priority,
        )

    def _consumed(self, given: object, where: str) -> tuple[tuple[str, ...], bool]:
        if given is None:
            return (), True
        if isinstance(given, dict) and len(given) == 1 and given.keys() <= {"all", "any"}:
            (kind,) = given
            return self._names(given[kind], f"{where}: `consumes`"), kind == "all"
        self._problems.append(
            f"{where}: `consumes` says whether one of each type is needed or any of them:"
            ' `consumes = { all = ["A", "B"] }` or `{ any = ["A", "B"] }`'
        )
        return (), True

    def _names(self, given: object, where: str) -> tuple[str, ...]:
        if isinstance(given, list) and all(isinstance(each, str) and each for each in given):
            return tuple(dict.fromkeys(given))
        self._problems.append(f'{where} is a list of event types, as `["Airframe"]`')
        return ()

    def _duration(self, table: Mapping[str, Any], key: str, where: str) -> int | None:
        if key not in table:
            return None
        value = table[key]
        try:
            found = parse_duration(value).microseconds if isinstance(value, str) else 0
        except ValueError:
            found = 0
        if found > 0:
            return found
        self._problems.append(
            f'{where}: `{key}` is a duration longer than nothing, as "50 ms"; given is `{value!r}`'
        )
        return None

    def _table(self, given: object, where: str, keys: tuple[str, ...]) -> Mapping[str, Any]:
        if not isinstance(given, Mapping):
            self._problems.append(f"{where}: it is a table")
            return {}
        for key in given.keys() - set(keys):
            known = ", ".join(f"`{each}`" for each in keys)
            self._problems.append(f"{where}: there is no key `{key}`; there are {known}")
        return given

    def _check_types(self, operations: Mapping[str, Operation]) -> None:
        supplied = {type_ for each in operations.values() for type_ in each.supplies}
        for operation in operations.values():
            for type_ in operation.consumes:
                if type_ not in supplied:
                    close = get_close_matches(type_, supplied, 1)
                    meant = f"; did you mean `{close[0]}`?" if close else ""
                    self._problems.append(
                        f"operation `{operation.name}`: no operation supplies `{type_}`{meant}"
                    )


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
