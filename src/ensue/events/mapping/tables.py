"""A mapping applied to a table: from its columns to those of `ensue.events.columns`.

Every step is over a whole column. A row whose times were not read is `doubtful`, and its time is
null: it is read singly by `rows`, which reports its problems, if there are any. All missing columns
are named in one `UsageError`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ensue.errors import UsageError
from ensue.events.columns import CONTEXT_COLUMNS, DATA_COLUMN
from ensue.events.mapping.definition import Mapping
from ensue.events.mapping.instants import (
    TIME,
    ReadInstants,
    has_text,
    instants_in,
    is_time,
    joined_columns,
)
from ensue.events.mapping.years import Years
from ensue.events.time_patterns import is_pattern
from ensue.events.types import TypeSystem

Mask = npt.NDArray[np.bool_]


class Mapped(NamedTuple):
    """Rows with the columns of `events.columns`; `doubtful` rows must be read singly."""

    rows: pa.RecordBatch
    doubtful: Mask | None


def apply_table(
    mapping: Mapping,
    rows: pa.Table | pa.RecordBatch,
    types: TypeSystem,
    where: str,
    years: Years | None = None,
    near: npt.NDArray[np.int64] | None = None,
) -> Mapped:
    """The rows with the columns of `events.columns`, and the rows that must be read singly.

    `years` finds the years that times lack, in the order of the rows; `near` are the times of rows
    that are read again. Raises `UsageError` with all missing columns; `where` names the table in
    the message.
    """
    batch = _one_batch(rows)
    columns = _placed(mapping, batch, where)
    doubtful = np.zeros(batch.num_rows, np.bool_)
    declared = _timestamps(types)
    years = years or Years.of(mapping.year)
    for name, column in columns.items():
        unit = mapping.unit(name)
        is_local = _is_local(column.type, mapping)
        is_declared = name in declared and is_time(column.type, None)
        if name != "time" and unit is None and not is_local and not is_declared:
            continue
        if not is_time(column.type, unit):
            raise UsageError(_no_time(name, column.type, unit, where))
        found = instants_in(column, unit, mapping.zone, years, near)
        columns[name] = _as_column(found)
        # A null time is a problem of its row; an attribute may be null.
        doubtful |= found.unread if name != "time" else found.unread | found.missing
    mapped = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
    return Mapped(mapped, doubtful if doubtful.any() else None)


def _one_batch(rows: pa.Table | pa.RecordBatch) -> pa.RecordBatch:
    if isinstance(rows, pa.RecordBatch):
        return rows
    arrays = [
        each.chunk(0) if each.num_chunks == 1 else each.combine_chunks() for each in rows.columns
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=rows.schema)


def _placed(mapping: Mapping, batch: pa.RecordBatch, where: str) -> dict[str, pa.Array]:
    """The columns under their new names. Raises `UsageError` with all missing columns."""
    names = batch.schema.names
    if twice := {name for name in names if names.count(name) > 1}:
        listed = ", ".join(f"`{name}`" for name in sorted(twice))
        raise UsageError(
            f"{where} has several columns of one name ({listed}): leave out all but one"
        )
    parts = {
        name: {path: _find(batch, path) for path in origin.sources(names)}
        for name, origin in mapping.columns.items()
    }
    missing = [
        (name, path)
        for name, found_in in parts.items()
        for path, column in found_in.items()
        if column is None
    ]
    if missing:
        raise UsageError(mapping.without_columns(missing, names, where))
    found = {name: _joined(name, columns, where) for name, columns in parts.items()}
    moved = mapping.moved(names)
    kept = {
        name: column
        for name, column in zip(names, batch.columns, strict=True)
        if name not in moved and name not in mapping.columns
    }
    if mapping.type is not None:
        kept.pop("type", None)
        codes = pa.array(np.zeros(batch.num_rows, np.int32))
        found["type"] = pa.DictionaryArray.from_arrays(codes, pa.array([mapping.type]))
    return {**_with_inner_data(kept, where), **found}


def _joined(name: str, columns: dict[str, pa.Array], where: str) -> pa.Array:
    """The column of an attribute, of texts joined if it comes from several columns."""
    (first, *others) = columns.values()
    if not others:
        return first
    for path, column in columns.items():
        if not has_text(column.type):
            raise UsageError(
                f"`{path}` of {where} is `{column.type}`, which cannot be joined to a text for"
                f" `{name}`: choose columns of text or whole numbers"
            )
    return joined_columns([first, *others])


def _with_inner_data(columns: dict[str, pa.Array], where: str) -> dict[str, pa.Array]:
    """The columns, with structs and lists under names of CloudEvents attributes in the data."""
    inner = {
        name: column
        for name, column in columns.items()
        if name in CONTEXT_COLUMNS and pa.types.is_nested(column.type)
    }
    if not inner:
        return columns
    data = columns.get(DATA_COLUMN)
    parts = dict(inner)
    if data is not None:
        if not pa.types.is_struct(data.type):
            listed = ", ".join(f"`{name}`" for name in inner)
            raise UsageError(
                f"{where} has a column `{DATA_COLUMN}`, and {listed} cannot be added to it: map"
                " them to names of their own"
            )
        fields = zip((each.name for each in data.type), data.flatten(), strict=True)
        parts = {**dict(fields), **inner}
    kept = {name: column for name, column in columns.items() if name not in inner}
    return {**kept, DATA_COLUMN: pa.StructArray.from_arrays(list(parts.values()), list(parts))}


def _find(batch: pa.RecordBatch, path: str) -> pa.Array | None:
    """The column at a path; null where a column around it is null."""
    if path in batch.schema.names:
        return batch.column(batch.schema.get_field_index(path))
    first, dot, rest = path.partition(".")
    if not dot or first not in batch.schema.names:
        return None
    return _find_inside(batch.column(batch.schema.get_field_index(first)), rest)


def _find_inside(column: pa.Array, path: str) -> pa.Array | None:
    if not pa.types.is_struct(column.type):
        return None
    names = [field.name for field in column.type]
    # `flatten` makes a field null where its struct is null.
    if path in names:
        return column.flatten()[names.index(path)]
    first, dot, rest = path.partition(".")
    if not dot or first not in names:
        return None
    return _find_inside(column.flatten()[names.index(first)], rest)


def _timestamps(types: TypeSystem) -> set[str]:
    """The attributes that are timestamps in every type that has them."""
    kinds: dict[str, set[str]] = {}
    for each in types:
        for name, type_ in types.attributes(each.name).items():
            kinds.setdefault(name, set()).add(type_.name)
    return {name for name, found in kinds.items() if found == {"timestamp"}}


def _is_local(type_: pa.DataType, mapping: Mapping) -> bool:
    return mapping.zone is not None and pa.types.is_timestamp(type_) and type_.tz is None


def _as_column(found: ReadInstants) -> pa.Array:
    gone = found.unread | found.missing
    return pa.array(found.values, pa.int64(), mask=gone if gone.any() else None).cast(TIME)


def _no_time(name: str, type_: Any, unit: str | None, where: str) -> str:
    if is_pattern(unit):
        return f"`{name}` of {where} is `{type_}`, which is no text: leave out the pattern `{unit}`"
    if unit is not None:
        return (
            f"`{name}` of {where} is `{type_}`, which is no number since 1970: leave out the unit"
            f" `{unit}`"
        )
    return (
        f"`{name}` of {where} is `{type_}`: it must be a timestamp, RFC 3339 text, or a number with"
        " a unit, as `time=COLUMN:ms`"
    )
