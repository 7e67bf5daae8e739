"""The mapping of a user over a DataFrame: which column, path or expression is what.

In come a DataFrame and a mapping of its columns; out go the DataFrame with a column for each
path, expression and constant, the names under which columns are read, and the units and the zone
of times, which travel to workers as plain data. The meaning is that of `ensue.events.mapping`;
`layout` makes instants of the times.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from ensue.events.mapping import Mapping as UserMapping
from ensue.events.types import TypeSystem
from ensue.spark.worker.event_rows import NO_TIMES, Times

Columns = Mapping[str, Any]
"""By the name of an attribute, a column, a dotted path, either with a unit as in `ts:ms`, or a
`Column` expression."""

_MADE = "ensue_from_"


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
    said = UserMapping.of(texts, type_, timezone)
    # An expression may be for any name but one that is constant.
    UserMapping.of({name: name for name in expressions}, type_)
    made = dict(expressions)
    if type_ is not None:
        made["type"] = sf.lit(type_)
    renames: dict[str, str] = {}
    for name, origin in said.columns.items():
        renames[name] = origin.path
        if origin.path not in events.columns:
            inner = _inside(events, origin.path)
            if inner is not None:
                made[name] = inner
    for name in made:
        renames[name] = f"{_MADE}{name}"
    if made:
        events = events.withColumns({f"{_MADE}{name}": each for name, each in made.items()})
    units = tuple((name, each.unit) for name, each in said.columns.items() if each.unit)
    return MappedEvents(events, renames, (units, timezone))


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
