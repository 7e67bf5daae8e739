"""A mapping: for parts of an event, the columns or dotted paths of a record they come from.

In comes text (`time=ts:ms,type=event_name,user=actor.name`) or a dictionary; out goes a frozen
`Mapping`, or a `UsageError` with all problems. Whether a column exists is only known with the data,
and checked in `rows` and `tables`. A time may be a pattern of directives over several columns
(`time=Date+Time:%y%m%d %H%M%S`); `plain` is the mapping as data that travels to workers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Self
from zoneinfo import ZoneInfo

from ensue.errors import UsageError
from ensue.events.columns import CONTEXT_COLUMNS, DATA_COLUMN, EXTENSION_PREFIX
from ensue.events.event import RESERVED
from ensue.events.time_patterns import is_pattern, time_pattern
from ensue.events.types import TypeSystem

_FIRST_YEAR, _LAST_YEAR = 1, 9999
UNITS = ("s", "ms", "us", "ns")
"""Units of times that are numbers since 1970."""

EXAMPLE = "time=ts:ms,type=event_name,user=actor.name"
JOINT = "+"
"""What stands between columns whose texts are joined by a space."""

PlainMapping = tuple[tuple[tuple[str, str, str | None], ...], str | None, str | None, int | None]
"""A mapping as plain data: names with their origins, the type, the time zone and the year."""
NO_MAPPING: PlainMapping = ((), None, None, None)


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a part of an event: a column or a dotted path, and how its times are read.

    `unit` is the unit of times that are numbers, or a pattern of times that are text.
    """

    path: str
    unit: str | None = None

    @classmethod
    def of(cls, text: str) -> Origin:
        """`ts:ms` is the column `ts` in milliseconds, `ts:%d.%m.%Y` in text of that pattern.

        Any other text is a column or a path, or several with `+` between them.
        """
        path, _, pattern = text.partition(":")
        if path.strip() and is_pattern(pattern):
            return cls(path.strip(), pattern.strip())
        path, colon, unit = text.rpartition(":")
        return cls(path, unit) if colon and path and unit in UNITS else cls(text)

    def sources(self, names: Collection[str]) -> tuple[str, ...]:
        """The columns or paths; several are joined. A column with the whole name counts as one."""
        if JOINT not in self.path or self.path in names:
            return (self.path,)
        return tuple(part.strip() for part in self.path.split(JOINT))

    def __str__(self) -> str:
        return self.path if self.unit is None else f"{self.path}:{self.unit}"


@dataclass(frozen=True)
class Mapping:
    """The meaning of columns as a user gives it; by default the rule of `events.columns`.

    `columns` has the origin of attributes of CloudEvents (`time`, `id`, `ce_NAME`, ...) and of the
    data, by their names. A column that is an origin loses its own name; the outer column of a path
    keeps its name. `type` is the type of every event. Times without an offset are in the zone
    `timezone`, and times without a year in the year `year` at the beginning of a file.
    """

    columns: MappingOf[str, Origin] = field(default_factory=dict)
    type: str | None = None
    timezone: str | None = None
    year: int | None = None

    def __post_init__(self) -> None:
        if problems := [*self._problems()]:
            raise UsageError("; ".join(problems))

    @classmethod
    def parse(
        cls,
        text: str | None = None,
        type: str | None = None,  # noqa: A002 - the CloudEvents name
        timezone: str | None = None,
        year: int | None = None,
    ) -> Self:
        """A mapping from the text of `--columns`: `Mapping.parse("time=ts:ms,user=actor.name")`."""
        parts: list[str] = []
        for part in (text or "").split(","):
            _, _, before = parts[-1].partition("=") if parts else ("", "", "")
            if "=" not in part and is_pattern(Origin.of(before).unit):
                # A comma of a pattern, as in `%H:%M:%S,%f`.
                parts[-1] += f",{part}"
            else:
                parts.append(part.strip())
        if parts == [""]:
            parts = []
        columns: dict[str, Origin] = {}
        problems: list[str] = []
        for part in parts:
            name, equals, origin = (each.strip() for each in part.partition("="))
            if not name or not equals or not origin:
                problems.append(
                    f"`{part}` does not say which column is what: write NAME=COLUMN, as in"
                    f" `{EXAMPLE}`"
                )
            elif columns.get(name, Origin.of(origin)) != Origin.of(origin):
                problems.append(f"`{name}` is given twice: leave one of them out")
            else:
                columns[name] = Origin.of(origin)
        return cls._checked(problems, columns, type, timezone, year)

    @classmethod
    def of(
        cls,
        columns: MappingOf[str, Any] | None = None,
        type: str | None = None,  # noqa: A002
        timezone: str | None = None,
        year: int | None = None,
    ) -> Self:
        """A mapping from a dictionary, or from a `[columns]` table of a file.

        A value is a column or a path, with a unit as in `ts:ms`; or, for columns with odd names,
        a table `{column = "a:ms", unit = "s"}`.
        """
        found: dict[str, Origin] = {}
        problems: list[str] = []
        for name, value in (columns or {}).items():
            if isinstance(value, Origin):
                found[name] = value
            elif isinstance(value, str) and value:
                found[name] = Origin.of(value)
            elif (
                isinstance(value, MappingOf)
                and value.keys() <= {"column", "unit"}
                and all(isinstance(each, str) and each for each in value.values())
                and "column" in value
            ):
                found[name] = Origin(value["column"], value.get("unit"))
            else:
                problems.append(
                    f"`columns` says of `{name}` `{value!r}`: give the name of a column, a path"
                    ' such as `actor.name`, or `{"column": "ts", "unit": "ms"}`'
                )
        return cls._checked(problems, found, type, timezone, year)

    @classmethod
    def from_plain(cls, plain: PlainMapping) -> Self:
        """The mapping of `plain`."""
        columns, type_, timezone, year = plain
        origins = {name: Origin(path, unit) for name, path, unit in columns}
        return cls(origins, type_, timezone, year)

    @classmethod
    def _checked(
        cls,
        problems: list[str],
        columns: MappingOf[str, Origin],
        type_: str | None,
        timezone: str | None,
        year: int | None,
    ) -> Self:
        """The mapping. Raises `UsageError` with the problems of its text and its own."""
        try:
            mapping = cls(columns, type_, timezone, year)
        except UsageError as error:
            raise UsageError("; ".join([*problems, str(error)])) from None
        if problems:
            raise UsageError("; ".join(problems))
        return mapping

    def _problems(self) -> list[str]:
        problems = []
        for name, origin in self.columns.items():
            is_text = name in CONTEXT_COLUMNS and name != "time"
            if is_pattern(origin.unit):
                problems += self._problems_of_pattern(name, origin)
            elif origin.unit is not None and origin.unit not in UNITS:
                units = ", ".join(f"`{unit}`" for unit in UNITS)
                problems.append(f"`{origin.unit}` is no unit of `{name}`: choose one of {units}")
            elif origin.unit is not None and (
                is_text or name == DATA_COLUMN or name.startswith(EXTENSION_PREFIX)
            ):
                problems.append(f"`{name}` is no time: leave out the unit `{origin.unit}`")
            if JOINT in origin.path and not all(origin.sources(())):
                problems.append(
                    f"`{origin.path}` joins columns, and one of them has no name: write"
                    f" `{name}=Date+Time`"
                )
            if name.removeprefix(EXTENSION_PREFIX) in RESERVED and name.startswith(
                EXTENSION_PREFIX
            ):
                plain = name.removeprefix(EXTENSION_PREFIX)
                problems.append(f"`{plain}` is no extension: write `{plain}={origin}`")
        if self.type is not None and not isinstance(self.type, str):
            problems.append(f"the type of all events is `{self.type!r}`: give a text")
        elif self.type is not None and not self.type:
            problems.append("the type of all events is empty: name an event type")
        if self.type is not None and "type" in self.columns:
            problems.append(
                f"the type is said twice, to be `{self.type}` and in the column"
                f" `{self.columns['type']}`: leave one of them out"
            )
        if self.timezone is not None and not isinstance(self.timezone, str):
            problems.append(f"the time zone is `{self.timezone!r}`: give a text")
        elif self.timezone is not None:
            try:
                ZoneInfo(self.timezone)
            except (KeyError, ValueError, OSError):
                problems.append(
                    f"there is no time zone `{self.timezone}`: give a name such as `UTC` or"
                    " `Europe/Berlin`"
                )
        # A table of a file may hold anything.
        year: Any = self.year
        if year is not None and not (isinstance(year, int) and _FIRST_YEAR <= year <= _LAST_YEAR):
            problems.append(f"`{self.year!r}` is no year: give one such as `2015`")
        elif self.year is not None and not self.lacks_years:
            problems.append(
                "a year is given, and no time has a pattern without one: give the pattern, as"
                " `time=COLUMN:%b %d %H:%M:%S`, or leave the year out"
            )
        return problems

    def _problems_of_pattern(self, name: str, origin: Origin) -> list[str]:
        is_text = name in CONTEXT_COLUMNS and name != "time"
        if is_text or name == DATA_COLUMN or name.startswith(EXTENSION_PREFIX):
            return [f"`{name}` is no time: leave out the pattern `{origin.unit}`"]
        try:
            pattern = time_pattern(origin.unit or "")
        except ValueError as error:
            return [f"`{name}`: {error}"]
        if not pattern.has_year and name != "time":
            return [
                f"the pattern `{origin.unit}` of `{name}` has no year, which only the `time` of"
                " events may lack: leave the pattern out, and the attribute is text"
            ]
        if pattern.has_year or self.year is not None:
            return []
        return [
            f"the pattern `{origin.unit}` of `{name}` has no year: say which year it is, as in"
            " `--year 2015`"
        ]

    @property
    def lacks_years(self) -> bool:
        """Whether some times have no year, so that rows must be read in the order of the file."""
        units = (each.unit for each in self.columns.values())
        return any(is_pattern(each) and not time_pattern(each or "").has_year for each in units)

    @property
    def plain(self) -> PlainMapping:
        columns = tuple((name, each.path, each.unit) for name, each in self.columns.items())
        return columns, self.type, self.timezone, self.year

    def moved(self, names: Collection[str]) -> set[str]:
        """The columns that lose their own names, among those of a record."""
        return {each for origin in self.columns.values() for each in origin.sources(names)}

    @property
    def is_default(self) -> bool:
        """Whether the user has given no mapping."""
        return not self.columns and self.type is None and self.timezone is None

    @property
    def is_plain(self) -> bool:
        """Whether JSON objects are read as rows of members, and not as CloudEvents."""
        return bool(self.columns) or self.type is not None

    def without_columns(
        self, missing: Sequence[tuple[str, str]], present: Sequence[str], where: str
    ) -> str:
        """What is wrong where parts of events have no column; the close match, if there is one.

        `missing` are the names of parts, each with the column or path that is not there.
        """
        listed = ", ".join(f"`{name}` in `{path}`" for name, path in missing)
        known = ", ".join(f"`{name}`" for name in present) or "none at all"
        meant = []
        for name, path in missing:
            origin = self.columns[name]
            cased = next((each for each in present if each.lower() == path.lower()), None)
            close = cased or next(iter(get_close_matches(path, present, 1)), None)
            if close is not None:
                whole = JOINT.join(close if e == path else e for e in origin.sources(present))
                meant.append(f"`{name}={replace(origin, path=whole)}`")
        advice = f"; did you mean {' and '.join(meant)}?" if meant else ""
        return (
            f"{where} has no column for what the mapping looks for: {listed}; its columns are"
            f" {known}{advice}"
        )

    def unit(self, name: str) -> str | None:
        """The unit or the pattern of the times of an attribute, if it has one."""
        origin = self.columns.get(name)
        return None if origin is None else origin.unit

    @cached_property
    def zone(self) -> ZoneInfo | None:
        return None if self.timezone is None else ZoneInfo(self.timezone)


def refuse_derived(names: Iterable[str], types: TypeSystem) -> None:
    """Raises `UsageError` for a mapping of an attribute that is worked out from others."""
    given = set(names)
    for declared in types:
        for each in declared.derived:
            if each.name in given and not any(each.name in other for other in _data_of(types)):
                raise UsageError(
                    f"`columns` says where `{each.name}` is, and `{each.name}` of"
                    f" `{declared.name}` is worked out: `{each.name} = {each.value}`; leave it out"
                    " of the columns, and say where what it is worked out from is"
                )


def _data_of(types: TypeSystem) -> list[set[str]]:
    return [{attribute.name for attribute in each.attributes} for each in types]
