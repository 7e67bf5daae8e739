"""A mapping applied to one record: from its members to the members of a CloudEvent.

A JSON object is read like a row of a table: its members are columns, by the rule of
`ensue.events.columns`. Since objects have no schema, a declared attribute that an object does not
have is null. In objects and rows, an object or a list with the name of a CloudEvents attribute
(Debezium's `source`) stays in the data, unless it is mapped. Except for times, values are checked
against declared types in `conformance`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from collections.abc import Mapping as MappingOf
from contextlib import suppress
from datetime import datetime
from typing import Any

from ensue.errors import EventError, UsageError
from ensue.events.cloudevents import VERSION, event_of, read_json
from ensue.events.columns import (
    CONTEXT_COLUMNS,
    DATA_COLUMN,
    EXTENSION_PREFIX,
    Convert,
    Layout,
    RowReader,
)
from ensue.events.conformance import conform
from ensue.events.event import RESERVED, Event
from ensue.events.mapping.definition import Mapping, Origin
from ensue.events.mapping.values import joined, mapped_instant
from ensue.events.mapping.years import Years
from ensue.events.nesting import is_nested, value_at, with_nulls, with_values
from ensue.events.times import datetime_of, format_time
from ensue.events.types import TypeSystem, ValueType

ABSENT = object()
_NESTED = {dict, list, tuple}


def apply_row(
    mapping: Mapping,
    members: MappingOf[str, Any],
    types: TypeSystem,
    *,
    identity: str = "1",
    source: str = "record",
    convert: Convert | None = None,
    years: Years | None = None,
) -> dict[str, Any]:
    """The members of a CloudEvent from a JSON object or, with `convert`, from a row of a table.

    `identity` and `source` are the id and the source of a record without them, and `years` finds
    the years that times lack. Raises `EventError` with the problems of times; `event_of` and
    `conform` find all others.
    """
    if convert is None and not mapping.is_plain:
        return _local_cloud_event(mapping, members, types)
    problems: list[str] = []
    times = _Times(mapping, years or Years.of(mapping.year), problems)
    # The members of an object are not known before it is read, so that `+` always joins them.
    names = members if convert is not None else ()
    context, attributes = _sorted_members(mapping, members, names)
    for name, origin in mapping.columns.items():
        value = _mapped_value(members, origin, names)
        if name in CONTEXT_COLUMNS or name.startswith(EXTENSION_PREFIX):
            context[name] = value
        else:
            attributes = with_values(attributes, {name: value})
    if mapping.type is not None:
        context["type"] = mapping.type
    event_members = {
        name.removeprefix(EXTENSION_PREFIX): value
        for name, value in context.items()
        if value is not None
    }
    event_members.setdefault("specversion", VERSION)
    event_members.setdefault("id", identity)
    event_members["source"] = event_members.get("source") or source
    if "time" in event_members:
        event_members["time"] = times.instant(event_members["time"])
    else:
        place = mapping.columns.get("time")
        looked = "" if place is None else f": there is nothing at `{place.path}`"
        problems.append(f"`time` is missing{looked}")
    declared = types.attributes(str(event_members.get("type")))
    data = _whole(attributes, convert, problems)
    if isinstance(data, MappingOf):
        data = _shaped(data, declared, convert)
        data = times.within(data, declared)
    if problems:
        raise EventError(problems)
    event_members[DATA_COLUMN] = data or None
    return event_members


class MappedRowReader:
    """Makes events of rows of a table by a mapping, as `RowReader` does without one.

    Where the mapping only renames columns, `RowReader` reads the rows under their new names. A row
    that it refuses, or that has nested values, is read by `apply_row`, whose words count.
    """

    def __init__(
        self,
        names: Sequence[str],
        mapping: Mapping,
        types: TypeSystem,
        source: str,
        convert: Convert,
    ) -> None:
        self._names = names
        self._mapping = mapping
        self._types = types
        self._source = source
        self._convert = convert
        self.years = Years.of(mapping.year)
        self._renamed = self._renaming()

    def _renaming(self) -> tuple[RowReader, list[int]] | None:
        """A reader of renamed columns with their places, if the mapping does no more than that."""
        mapping, names = self._mapping, list(self._names)
        others = [origin for name, origin in mapping.columns.items() if name != "time"]
        moved = mapping.moved(names)
        taken = {*mapping.columns, *(["type"] if mapping.type is not None else [])}
        columns = {name: name for name in names if name not in moved and name not in taken}
        columns |= {name: origin.path for name, origin in mapping.columns.items()}
        attributes = [self._types.attributes(each.name) for each in self._types]
        if (
            any(origin.unit is not None for origin in others)
            or not {*columns.values()} <= {*names}
            or DATA_COLUMN in columns
            or any(map(is_nested, columns))
            or any(type_.name == "timestamp" for each in attributes for type_ in each.values())
        ):
            return None
        layout = Layout.of([*columns, *(["type"] if mapping.type is not None else [])], "the table")
        unit, zone, years = mapping.unit("time"), mapping.zone, self.years

        def instant(value: Any) -> int:
            return mapped_instant(value, unit, zone, years)

        reader = RowReader(layout, self._types, self._source, self._convert, instant)
        return reader, [names.index(path) for path in columns.values()]

    def event(self, identity: str, row: Sequence[Any]) -> Event:
        """The event in a row. Raises `EventError` with all problems."""
        if self._renamed is not None and _NESTED.isdisjoint(map(type, row)):
            reader, places = self._renamed
            renamed = [row[place] for place in places]
            if self._mapping.type is not None:
                renamed.append(self._mapping.type)
            with suppress(EventError):
                return reader.event(identity, renamed)
        event_members = apply_row(
            self._mapping,
            dict(zip(self._names, row, strict=True)),
            self._types,
            identity=identity,
            source=self._source,
            convert=self._convert,
            years=self.years,
        )
        return conform(event_of(event_members), self._types)


def row_reader(
    names: Sequence[str],
    mapping: Mapping | None,
    types: TypeSystem,
    source: str,
    convert: Convert,
    where: str,
) -> RowReader | MappedRowReader:
    """The reader of the rows of a table. Raises `UsageError` if its columns make no events."""
    if mapping is None or mapping.is_default:
        return RowReader(Layout.of(names, where), types, source, convert)
    missing = [
        (name, path)
        for name, origin in mapping.columns.items()
        for path in origin.sources(names)
        if path not in names and path.partition(".")[0] not in names
    ]
    if missing:
        raise UsageError(mapping.without_columns(missing, names, where))
    renamed = [*mapping.columns, *(["type"] if mapping.type is not None else [])]
    moved = mapping.moved(names)
    kept = [name for name in names if name not in moved and name not in renamed]
    Layout.of([*renamed, *kept], where)
    return MappedRowReader(names, mapping, types, source, convert)


def _local_cloud_event(
    mapping: Mapping, members: MappingOf[str, Any], types: TypeSystem
) -> dict[str, Any]:
    """A CloudEvent, with times without an offset read in the zone of the mapping."""
    adapted, problems = dict(members), list[str]()
    times = _Times(mapping, None, problems)
    if isinstance(data := adapted.get(DATA_COLUMN), MappingOf):
        declared = types.attributes(str(adapted.get("type")))
        adapted[DATA_COLUMN] = times.within(data, declared)
    if isinstance(time := adapted.get("time"), str):
        adapted["time"] = times.instant(time)
    if problems:
        raise EventError(problems)
    return adapted


def _mapped_value(members: MappingOf[str, Any], origin: Origin, names: Collection[str]) -> Any:
    """The value of an origin, joined from its columns; None if there is none."""
    found = [find(members, path) for path in origin.sources(names)]
    values = [None if each is ABSENT else each for each in found]
    return values[0] if len(values) == 1 else joined(values)


def find(members: Any, path: str) -> Any:
    """The value at a path, `ABSENT` if there is none; a name with dots takes precedence."""
    if not isinstance(members, MappingOf):
        return ABSENT
    if path in members:
        return members[path]
    first, dot, rest = path.partition(".")
    return find(members[first], rest) if dot and first in members else ABSENT


def _sorted_members(
    mapping: Mapping, members: MappingOf[str, Any], names: Collection[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The members that are attributes of CloudEvents, and those of the data.

    A member that the mapping renames has no longer its own name, and a member whose name the
    mapping gives to another one is left out.
    """
    moved = mapping.moved(names)
    taken = {*mapping.columns, *(["type"] if mapping.type is not None else [])}
    context: dict[str, Any] = {}
    attributes: dict[str, Any] = {}
    for name, value in members.items():
        if name in moved or name in taken:
            continue
        is_context = name in CONTEXT_COLUMNS or (
            name.startswith(EXTENSION_PREFIX)
            and name.removeprefix(EXTENSION_PREFIX) not in ("", *RESERVED)
        )
        if is_context and not isinstance(value, MappingOf | list | tuple):
            context[name] = value
        else:
            attributes[name] = value
    return context, attributes


def _whole(
    attributes: dict[str, Any], convert: Convert | None, problems: list[str]
) -> MappingOf[str, Any]:
    """The attributes together with those in `data`, over which they take precedence.

    `data` is an object or, in a table, the JSON text of one.
    """
    inner = attributes.get(DATA_COLUMN)
    if convert is not None and isinstance(inner, str):
        try:
            inner = read_json(inner)
        except EventError as error:
            problems += [f"the column `data`: {problem}" for problem in error.problems]
    if not isinstance(inner, MappingOf):
        return attributes
    given = {
        name: value
        for name, value in attributes.items()
        if name != DATA_COLUMN and not (value is None and name in inner)
    }
    return {**inner, **given}


def _shaped(
    data: MappingOf[str, Any], declared: MappingOf[str, ValueType], convert: Convert | None
) -> MappingOf[str, Any]:
    """The data with declared attributes in their places, and cells converted to their types."""
    flat = {name: data[name] for name in declared if is_nested(name) and name in data}
    if flat:
        data = with_values({name: data[name] for name in data if name not in flat}, flat)
    if convert is None:
        return with_nulls(data, declared)
    held = {name: value_at(data, name)[1] for name in declared}
    changed = {
        name: convert(value, declared[name]) for name, value in held.items() if value is not None
    }
    whole = with_values(data, changed) if changed else data
    # A null cell of an undeclared attribute is left out.
    return {name: each for name, each in whole.items() if each is not None or name in declared}


class _Times:
    """Reads the times of one record; what is no time is added to `problems`."""

    def __init__(self, mapping: Mapping, years: Years | None, problems: list[str]) -> None:
        self._mapping = mapping
        self._years = years
        self._problems = problems

    def within(
        self, data: MappingOf[str, Any], declared: MappingOf[str, ValueType]
    ) -> MappingOf[str, Any]:
        """The data with times read by the unit, the pattern or the zone of the mapping."""
        mapping = self._mapping
        units = {name: origin.unit for name, origin in mapping.columns.items() if origin.unit}
        wanted = [name for name, type_ in declared.items() if type_.name == "timestamp"]
        changed: dict[str, Any] = {}
        for name in dict.fromkeys([*(name for name in units if name != "time"), *wanted]):
            value = value_at(data, name)[1]
            if value is None or (name not in units and not isinstance(value, str | datetime)):
                continue
            try:
                instant = mapped_instant(value, units.get(name), mapping.zone)
            except ValueError as error:
                self._problems.append(f"attribute `{name}`: {error}")
            else:
                changed[name] = datetime_of(instant)
        return with_values(data, changed) if changed else data

    def instant(self, value: Any) -> str:
        """The time of the event as RFC 3339 text in UTC."""
        mapping = self._mapping
        try:
            unit = mapping.unit("time")
            return format_time(mapped_instant(value, unit, mapping.zone, self._years))
        except ValueError as error:
            self._problems.append(f"`time`: {error}")
            return ""
