"""The mapping of a user over a DataFrame: which column, path or expression is what.

In come a DataFrame and a mapping of its columns; out go the DataFrame with a column for each
path, expression and constant, the names under which columns are read, and the units and the zone
of times, which travel to workers as plain data. The meaning is that of `ensue.events.mapping`;
`layout` makes instants of the times.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from ensue.errors import UsageError
from ensue.events.mapping import Mapping as UserMapping
from ensue.events.mapping import Origin
from ensue.events.time_patterns import is_pattern, time_pattern
from ensue.events.types import TypeSystem
from ensue.lang.diagnostics import did_you_mean
from ensue.spark.worker.event_rows import NO_TIMES, Times

Columns = Mapping[str, Any]
"""By the name of an attribute, a column, a dotted path, either with a unit as in `ts:ms`, or a
`Column` expression."""

_MADE = "ensue_from_"
_ANY_YEAR = 2000


@dataclass(frozen=True)
class MappedEvents:
    """Events in columns, with the user's mapping applied.

    `renames` pairs names of attributes with columns of `events`; `times` has units and zone.
    """

    events: DataFrame
    renames: Mapping[str, str]
    times: Times = NO_TIMES


def attribute_names(types: TypeSystem) -> list[str]:
    """The names of all attributes that types declare."""
    return sorted({name for each in types for name in types.attributes(each.name)})


def mapped_events(
    events: DataFrame,
    columns: Columns | None = None,
    type_: str | None = None,
    timezone: str | None = None,
    declared: Iterable[str] = (),
) -> MappedEvents:
    """Raises `UsageError` for a mapping that cannot be meant.

    A name that is neither a column nor a path stays as it is, and is refused with the layout. An
    attribute that is declared with dots is looked for inside structs.
    """
    nested = {
        name: name
        for name in declared
        if name not in events.columns and _inside(events, name) is not None
    }
    given = {**nested, **(columns or {})}
    expressions = {name: each for name, each in given.items() if isinstance(each, Column)}
    texts = {name: each for name, each in given.items() if name not in expressions}
    said = _in_no_order(texts, type_, timezone)
    # An expression may be for any name but one that is constant.
    UserMapping.of({name: name for name in expressions}, type_)
    made = dict(expressions)
    if type_ is not None:
        made["type"] = sf.lit(type_)
    renames: dict[str, str] = {}
    for name, origin in said.columns.items():
        renames[name] = origin.path
        first, *others = origin.sources(events.columns)
        if others:
            parts = [_part(events, path) for path in (first, *others)]
            joints = chain.from_iterable((sf.lit(" "), part) for part in parts)
            # Null if one of them is null.
            made[name] = sf.concat(*islice(joints, 1, None))
        elif origin.path not in events.columns:
            inner = _inside(events, origin.path)
            if inner is not None:
                made[name] = inner
    for name in made:
        renames[name] = f"{_MADE}{name}"
    if made:
        events = events.withColumns({f"{_MADE}{name}": each for name, each in made.items()})
    units = tuple((name, each.unit) for name, each in said.columns.items() if each.unit)
    return MappedEvents(events, renames, (units, timezone))


def _in_no_order(columns: Columns, type_: str | None, timezone: str | None) -> UserMapping:
    """The mapping. Raises `UsageError` for times without a year, which follows from an order."""
    if UserMapping.of(columns, type_, timezone, _ANY_YEAR if _lack(columns) else None).lacks_years:
        raise UsageError(
            "`time` has a pattern without a year, which follows from the order of rows, and the"
            " rows of a table on Spark have none: join a column with the year, as in"
            " `time=Year+Time:%Y %b %d %H:%M:%S`"
        )
    return UserMapping.of(columns, type_, timezone)


def _lack(columns: Columns) -> bool:
    """Whether one of the columns has a pattern without a year."""
    units = [Origin.of(each).unit for each in columns.values() if isinstance(each, str)]
    with suppress(ValueError):
        return any(is_pattern(each) and not time_pattern(each or "").has_year for each in units)
    return False


def _part(events: DataFrame, path: str) -> Column:
    """A column that is joined with others. Raises `UsageError` if there is none."""
    inner = sf.col(f"`{path}`") if path in events.columns else _inside(events, path)
    if inner is None:
        raise UsageError(
            f"`columns` joins the column `{path}`, and the DataFrame has none of that name;"
            f" {did_you_mean(path, events.columns)}"
        )
    return inner.cast("string")


def _inside(events: DataFrame, path: str) -> Column | None:
    """A field of a struct by its path; None if there is none."""
    first, *rest = path.split(".")
    if not rest or first not in events.columns:
        return None
    type_: st.DataType = events.schema[first].dataType
    found = sf.col(f"`{first}`")
    for part in rest:
        if not isinstance(type_, st.StructType) or part not in type_.fieldNames():
            return None
        type_ = type_[part].dataType
        found = found.getField(part)
    return found
