"""The meaning of columns: the one rule by which rows of CSV, Parquet and Arrow become events.

- `specversion`, `id`, `source`, `type`, `time`, `subject`, `datacontenttype` and `dataschema` are
  those CloudEvents attributes. `type` and `time` must be there. Without an `id` the number of the
  row is the id, and without a `source` the name of the file is the source.
- `data` is the whole data: a struct, a map, or JSON text.
- `ce_<name>` is the extension `<name>`.
- Every other column is an attribute of the data, and takes precedence over `data`. A column with
  the name of a declared attribute inside of nested data, such as `host.name`, is that attribute.

An empty cell is null. A null attribute is kept if the event's type declares it, and else left out.
In come rows of plain values; out go conformed events. Bytes are read in `records` and `arrow`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ensue.errors import EventError, UsageError
from ensue.events.cloudevents import (
    TEXT_ATTRIBUTES,
    VERSION,
    extension_problems,
    read_json,
    text_of_number,
    text_problem,
    version_problem,
)
from ensue.events.conformance import conform, with_whole_numbers
from ensue.events.event import RESERVED, Event, instant_of
from ensue.events.nesting import is_nested, with_values
from ensue.events.types import TypeSystem, ValueType

NEEDED = ("type", "time")
CONTEXT_COLUMNS = frozenset({"specversion", "id", "source", *NEEDED, *TEXT_ATTRIBUTES})
DATA_COLUMN = "data"
EXTENSION_PREFIX = "ce_"

MOST_COLUMNS = 10_000
"""The most columns of a table: each costs time in every chunk of rows."""

Convert = Callable[[Any, ValueType], Any]
"""Converts the value of a cell to its declared type; a value that it cannot convert is returned as
it is, and conformance says what is wrong with it."""


def is_attribute_column(name: str) -> bool:
    """Whether a column is an attribute of the data."""
    if name.startswith(EXTENSION_PREFIX):
        return name == EXTENSION_PREFIX
    return name not in CONTEXT_COLUMNS and name != DATA_COLUMN


def extension_column(name: str) -> str:
    """The column of an extension, or of an optional attribute of CloudEvents."""
    return name if name in TEXT_ATTRIBUTES else f"{EXTENSION_PREFIX}{name}"


@dataclass(frozen=True, slots=True)
class Layout:
    """The places of columns in a row, by their meaning."""

    context: Mapping[str, int]
    extensions: tuple[tuple[str, int], ...]
    attributes: tuple[tuple[str, int], ...]
    data: int | None

    @classmethod
    def of(cls, columns: Sequence[str], where: str) -> Layout:
        """Raises `UsageError` if the columns do not make events; `where` names their file."""
        if len(columns) > MOST_COLUMNS:
            raise UsageError(
                f"{where} has {len(columns):,} columns, and {MOST_COLUMNS:,} are allowed: leave out"
                " what no rule asks for"
            )
        context: dict[str, int] = {}
        extensions: dict[str, int] = {}
        attributes: dict[str, int] = {}
        data: dict[str, int] = {}
        for place, column in enumerate(columns):
            name, group = column, attributes
            if column in TEXT_ATTRIBUTES:
                group = extensions
            elif column in CONTEXT_COLUMNS:
                group = context
            elif column == DATA_COLUMN:
                group = data
            elif not is_attribute_column(column):
                name, group = column.removeprefix(EXTENSION_PREFIX), extensions
                if name in RESERVED:
                    raise UsageError(
                        f"{where} has a column `{column}`, but `{name}` is no extension:"
                        f" name the column `{name}`"
                    )
            if name in group:
                raise UsageError(f"{where} has two columns for `{name}`: leave one of them out")
            group[name] = place
        if missing := [name for name in NEEDED if name not in context]:
            raise UsageError(_missing_columns(missing, columns, where))
        return cls(
            context, tuple(extensions.items()), tuple(attributes.items()), data.get(DATA_COLUMN)
        )


@dataclass(frozen=True, slots=True)
class RowReader:
    """Makes events of rows with one layout. `source` is the source of rows without one.

    `instant` reads the times of events.
    """

    layout: Layout
    types: TypeSystem
    source: str
    convert: Convert
    instant: Callable[[Any], int] = instant_of
    years: None = None
    """Times of plain columns have years."""

    def event(self, identity: str, row: Sequence[Any]) -> Event:
        """The event in a row, by default of this id. Raises `EventError` with all problems."""
        problems: list[str] = []
        version = self._cell(row, "specversion")
        if version is not None and version != VERSION:
            problems.append(version_problem(version))
        given = self._cell(row, "id")
        texts = {
            "id": identity if given is None else text_of_number(given),
            "source": self._cell(row, "source") or self.source,
            "type": text_of_number(self._cell(row, "type")),
        }
        problems += [
            text_problem(name, value)
            for name, value in texts.items()
            if not isinstance(value, str) or not value
        ]
        time = self._time(row, problems)
        extensions = {
            name: row[place] for name, place in self.layout.extensions if row[place] is not None
        }
        for name, value in extensions.items():
            problems += extension_problems(name, value)
        data = self._data(row, str(texts["type"]), problems)
        if problems:
            raise EventError(problems)
        return conform(Event(time=time, data=data, extensions=extensions, **texts), self.types)

    def _cell(self, row: Sequence[Any], column: str) -> Any:
        place = self.layout.context.get(column)
        return None if place is None else row[place]

    def _time(self, row: Sequence[Any], problems: list[str]) -> int:
        value = self._cell(row, "time")
        if value is None:
            problems.append("`time` is missing")
            return 0
        try:
            return self.instant(value)
        except ValueError as error:
            problems.append(f"`time`: {error}")
            return 0

    def _data(self, row: Sequence[Any], type_name: str, problems: list[str]) -> Any:
        known = self.types.attributes(type_name)
        attributes: dict[str, Any] = {}
        inner: dict[str, Any] = {}
        for name, place in self.layout.attributes:
            value, declared = row[place], known.get(name)
            if declared is None:
                if value is not None:
                    attributes[name] = value
            elif is_nested(name):
                inner[name] = None if value is None else self.convert(value, declared)
            else:
                attributes[name] = None if value is None else self.convert(value, declared)
        if inner:
            attributes = with_values(attributes, inner)
        whole = self._whole_data(row, known, problems)
        if whole is None:
            return attributes or None
        if isinstance(whole, Mapping):
            for name, value in whole.items():
                if attributes.get(name) is None:
                    attributes[name] = value
            return attributes
        if any(value is not None for value in attributes.values()):
            names = ", ".join(f"`{name}`" for name in attributes)
            problems.append(f"`data` is no object, so the columns {names} cannot be added to it")
        return whole

    def _whole_data(
        self, row: Sequence[Any], known: Mapping[str, ValueType], problems: list[str]
    ) -> Any:
        value = None if self.layout.data is None else row[self.layout.data]
        if isinstance(value, str):
            try:
                return read_json(value)
            except EventError as error:
                problems += [f"the column `data`: {problem}" for problem in error.problems]
                return None
        if isinstance(value, Mapping):
            # A struct has all of its fields in every row, so a null there means as little as a
            # null in a column of its own.
            return {
                name: self.convert(each, known[name])
                if each is not None and name in known
                else each
                for name, each in value.items()
                if each is not None or name in known
            }
        return value


_is_integer = re.compile(r"[+-]?[0-9]+(\.0+)?").fullmatch
_is_real = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?").fullmatch
_LONGEST_INTEGER = 40
_BOOLEANS = {"true": True, "false": False}


def convert_text(value: Any, type_: ValueType) -> Any:
    """A CSV cell by its declared type: numbers, `true` and `false`, and sequences as JSON."""
    text = value.strip()
    kind = type_.kind
    if kind == "integer" and len(text) <= _LONGEST_INTEGER and _is_integer(text):
        # A column of integers with gaps is often written as one of reals: `1.0`.
        return int(text.partition(".")[0])
    if kind == "real" and _is_real(text):
        return float(text)
    if kind == "boolean":
        return _BOOLEANS.get(text.lower(), value)
    if kind == "timestamp":
        return text
    if kind == "sequence":
        try:
            return read_json(text)
        except EventError:
            return value
    return value


def convert_number(value: Any, type_: ValueType) -> Any:
    """An integer from a column of reals, which is the form of a column of integers with nulls."""
    return with_whole_numbers(value, type_)


def _missing_columns(missing: Sequence[str], columns: Sequence[str], where: str) -> str:
    lacking = " and no ".join(f"column `{name}`" for name in missing)
    present = ", ".join(f"`{name}`" for name in columns) or "none at all"
    return (
        f"{where} has no {lacking}: its columns are {present}. an event needs a `type` (the name of"
        " its event type) and a `time` (when it happened): say which columns hold them (`--columns"
        " time=COLUMN,type=COLUMN`, in Python `columns={...}`), or name the type of all events"
        " (`--type NAME`)"
        f"{_about_first_line(columns)}"
    )


def _about_first_line(columns: Sequence[str]) -> str:
    """Advice for text whose first line seems to have no names, or another delimiter."""
    if any(re.match(r"\d{4}-\d\d-\d\d|\d+$", name) for name in columns):
        return "; its first line looks like a row: `--header time,type,...` names the columns"
    if columns and columns[0].startswith("#"):
        return "; its first line looks like a comment: `grep -v '^#'` leaves such lines out"
    if len(columns) == 1 and (found := re.search(r"\w(\s|[^\w.@-])\w", columns[0])):
        between = "space" if found[1] == " " else f"'{found[1]}'"
        return f"; if its columns are several, `--delimiter {between}` takes them apart"
    return ""
