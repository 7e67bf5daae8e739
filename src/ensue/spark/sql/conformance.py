"""Whether a row fits its event type, in SQL: the rules of `ensue.events.conformance`.

In come a `DataFrameLayout` and the declared types; out go conditions, and columns with values in
the form that engines rely on (reals as doubles, instants as timestamps). A column whose Spark type
guarantees that every value fits needs no condition, and is not read for one. A column in which no
value could fit is refused before anything runs, naming the rule that needs it. The problems of a
rejected row are worded in Python, by `worker.event_rows`.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Mapping, Sequence

from pyspark.sql import Column
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from ensue.errors import UsageError
from ensue.events.cloudevents import TEXT_ATTRIBUTES, VERSION
from ensue.events.conformance import LARGEST_EXACT, describe
from ensue.events.times import EARLIEST, LATEST
from ensue.events.types import INTEGER_RANGES, TypeSystem, ValueType
from ensue.lang.checked import CheckedLibrary
from ensue.lang.derived.wanted import unusable_keys
from ensue.spark.plan import PlannedRule
from ensue.spark.sql.layout import DataFrameLayout, InputColumn, instant, kind_of_type, micros
from ensue.spark.sql.operators import balanced
from ensue.spark.sql.values import NotInSqlError, Sql, error

# The smallest real that is too large for a 32-bit float.
_LARGEST_FLOAT = (2 - 2**-24) * 2.0**127
_LARGEST_REAL = 1.7976931348623157e308
_BITS: dict[type[st.DataType], int] = {
    st.ByteType: 8,
    st.ShortType: 16,
    st.IntegerType: 32,
    st.LongType: 64,
}


def all_of(conditions: Sequence[Column]) -> Column:
    return balanced(conditions, operator.and_, True)


def any_of(conditions: Sequence[Column]) -> Column:
    return balanced(conditions, operator.or_, False)


def event_conditions(layout: DataFrameLayout) -> list[Column]:
    """The conditions on an event of any type. Never null."""
    time = layout.time
    conditions = [sf.coalesce(time.between(sf.lit(EARLIEST), sf.lit(LATEST)), sf.lit(False))]
    for name in ("type", "id"):
        source = layout.context[name]
        conditions.append(source.column.isNotNull())
        if source.kind == "string":
            conditions.append(source.column != "")
    if (version := layout.context.get("specversion")) is not None:
        conditions.append(version.column.eqNullSafe(VERSION) | version.column.isNull())
    for name, source in layout.extensions.items():
        allowed = ("string",) if name in TEXT_ATTRIBUTES else ("string", "integer", "boolean")
        if source.kind not in allowed:
            conditions.append(source.column.isNull())
    return conditions


def type_conditions(layout: DataFrameLayout, type_name: str, types: TypeSystem) -> list[Column]:
    """The conditions on an event of a declared type, beyond `event_conditions`. Never null."""
    attributes = types.attributes(type_name)
    conditions: list[Column] = []
    for name, type_ in attributes.items():
        source = layout.attributes.get(name)
        if source is None:
            return [sf.lit(False)]
        if source.in_data and layout.data is not None and not conditions:
            # A row without `data` lacks the attribute altogether, which is not the same as null.
            conditions.append(layout.data.isNotNull())
        fits = _fits(source, type_)
        if fits is not None:
            conditions.append(source.column.isNull() | sf.coalesce(fits, sf.lit(False)))
    return conditions


def types_by_conditions(
    layout: DataFrameLayout, names: Sequence[str], types: TypeSystem
) -> list[list[str]]:
    """The types that need conditions, grouped by equal conditions.

    Most subtypes declare no attribute, and share the conditions of the type above them.
    """
    found: dict[tuple[tuple[str, ValueType], ...] | None, list[str]] = {}
    for name in names:
        attributes = types.attributes(name)
        if any(each not in layout.attributes for each in attributes):
            found.setdefault(None, []).append(name)
            continue
        asked = tuple(
            (each, type_)
            for each, type_ in attributes.items()
            if layout.attributes[each].in_data or not _always_fits(layout.attributes[each], type_)
        )
        if asked:
            found.setdefault(asked, []).append(name)
    return list(found.values())


def conforms(layout: DataFrameLayout, types: TypeSystem) -> Column:
    """Whether a row is an event and, if its type is declared, fits it."""
    type_column = layout.context["type"].column
    conditions = event_conditions(layout)
    for names in types_by_conditions(layout, list(types.types), types):
        fitting = all_of(type_conditions(layout, names[0], types))
        conditions.append(~type_column.isin(*names) | fitting)
    return sf.coalesce(all_of(conditions), sf.lit(False))


def attributes_read_in_python(layout: DataFrameLayout, types: TypeSystem) -> list[str]:
    """The columns that SQL would read differently, each as a reason to read the rows in Python."""
    reasons = []
    for each in types:
        for name, type_ in types.attributes(each.name).items():
            source = layout.attributes.get(name)
            if source is not None and _needs_python(source.type, type_):
                reasons.append(
                    f"`{source.origin}` holds the `{type_}` `{name}` as"
                    f" `{source.type.simpleString()}`"
                )
    return list(dict.fromkeys(reasons))


def check_columns(layout: DataFrameLayout, types: TypeSystem, rules: Sequence[PlannedRule]) -> None:
    """Raises `UsageError` if a rule reads a type that no row can fit."""
    if layout.python_reasons and layout.data is None and "data" in dict(layout.renamed):
        return
    for rule in rules:
        for port in rule.outside_ports:
            for name, type_ in types.attributes(port.type).items():
                _check_attribute(layout, rule, port.type, name, type_)


def _check_attribute(
    layout: DataFrameLayout, rule: PlannedRule, type_name: str, name: str, type_: ValueType
) -> None:
    asked = f"`{rule.name}` reads events of type `{type_name}`, whose attribute `{name}` is"
    source = layout.attributes.get(name)
    if source is None:
        raise UsageError(
            f"{asked} {describe(type_)}, and the DataFrame has no column for it: add one (it may be"
            f' null), or say which it is, as `columns={{"{name}": "..."}}`'
        )
    if isinstance(source.type, st.NullType) or _needs_python(source.type, type_):
        return
    if not _can_fit(source.type, type_):
        raise UsageError(
            f"{asked} {describe(type_)}, and the column `{source.origin}` is"
            f" `{source.type.simpleString()}`: cast it, or name another column with `columns`"
        )


def attribute_value(source: InputColumn, type_: ValueType) -> Sql:
    """A declared attribute in the form that engines rely on, in rows that fit."""
    if type_.element is not None:
        return Sql(None, source.column)
    kind = type_.kind
    if isinstance(source.type, st.NullType):
        return Sql(None, source.column.cast("boolean"))
    if not _can_fit(source.type, type_):
        return Sql(None, sf.lit(None).cast("boolean"))
    if kind == "integer":
        if source.kind == "real":
            whole = sf.when(sf.abs(source.column) < 2.0**63, source.column)
            return Sql(kind, whole.cast("bigint"))
        return Sql(kind, source.column.cast("bigint"))
    if kind == "real":
        return Sql(kind, source.column.cast("double"))
    if kind == "timestamp":
        return Sql(kind, instant(source))
    return Sql(kind, source.column)


def fitted(value: Sql, type_: ValueType) -> Sql:
    """A value that was computed, null where it does not fit an attribute."""
    if type_.element is not None:
        raise NotInSqlError("a sequence is worked out")
    if type_.kind == "real" and value.kind == "integer":
        value = Sql("real", value.column.cast("double"))
    if value.kind != type_.kind:
        return error()
    source = InputColumn("", value.column, _COMPUTED[type_.kind], value.kind)
    fits = _fits(source, type_)
    return value if fits is None else Sql(value.kind, sf.when(fits, value.column))


_COMPUTED: Mapping[str, st.DataType] = {
    "boolean": st.BooleanType(),
    "integer": st.LongType(),
    "real": st.DoubleType(),
    "string": st.StringType(),
    "timestamp": st.TimestampType(),
}


def undeclared_value(source: InputColumn) -> Sql:
    """A column that no type declares, with its values as they are."""
    if source.kind in ("integer", "boolean", "string"):
        column = source.column.cast("bigint") if source.kind == "integer" else source.column
        return Sql(source.kind, column)
    if isinstance(source.type, st.NullType):
        return Sql(None, source.column.cast("boolean"))
    # A double may be NaN, and an instant may lie outside the years that events can have.
    raise NotInSqlError(f"`{source.origin}` is `{source.type.simpleString()}` and in no type")


def _needs_python(given: st.DataType, type_: ValueType) -> bool:
    if isinstance(given, st.NullType):
        return False
    if type_.element is not None:
        return isinstance(given, st.ArrayType) and not _surely_fits(given, type_)
    kind = kind_of_type(given)
    if kind == "string" and type_.kind == "timestamp":
        return True
    if kind == "real" and type_.name == "unsigned long long":
        return True
    # Arrow turns decimals into doubles and dates into text; SQL would not.
    return isinstance(given, st.DecimalType | st.DateType) or (
        isinstance(given, st.StringType) and kind is None
    )


def _surely_fits(given: st.DataType, type_: ValueType) -> bool:
    if type_.element is not None:
        return isinstance(given, st.ArrayType) and _surely_fits(given.elementType, type_.element)
    if isinstance(given, st.NullType):
        return True
    if type_.name in INTEGER_RANGES:
        bits = _BITS.get(type(given))
        low, high = INTEGER_RANGES[type_.name]
        return bits is not None and low <= -(2 ** (bits - 1)) and 2 ** (bits - 1) - 1 <= high
    kind = kind_of_type(given)
    return kind == type_.kind and type_.name in ("boolean", "string")


def _can_fit(given: st.DataType, type_: ValueType) -> bool:
    if type_.element is not None:
        return isinstance(given, st.ArrayType)
    kind = kind_of_type(given)
    if type_.kind in ("integer", "real"):
        return kind in ("integer", "real")
    return kind == type_.kind


def _always_fits(source: InputColumn, type_: ValueType) -> bool:
    is_whole = source.kind == "integer" and type_.kind == "real"
    return _surely_fits(source.type, type_) or is_whole


def _fits(source: InputColumn, type_: ValueType) -> Column | None:
    """The condition on a value that is not null; None if every value fits."""
    if _always_fits(source, type_):
        return None
    if not _can_fit(source.type, type_):
        return sf.lit(False)
    column = source.column
    if type_.name in INTEGER_RANGES:
        low, high = INTEGER_RANGES[type_.name]
        if source.kind == "real":
            whole = sf.rint(column) == column
            inside = (column >= float(low)) & (column < float(min(high, 2**63 - 1) + 1))
            return whole & inside & (sf.abs(column) <= float(LARGEST_EXACT))
        return column.cast("bigint").between(sf.lit(low), sf.lit(min(high, 2**63 - 1)))
    if type_.kind == "real":
        if type_.name == "float":
            return sf.abs(column.cast("double")) < _LARGEST_FLOAT
        return sf.abs(column.cast("double")) <= _LARGEST_REAL
    if type_.name == "char":
        return sf.char_length(column) == 1
    return micros(source).between(sf.lit(EARLIEST), sf.lit(LATEST))


def mention_unusable_keys(layout: DataFrameLayout, library: CheckedLibrary) -> None:
    """Warns of rules that are `by` a struct or a list, and so read no row at all."""

    def inside(name: str) -> Sequence[str] | None:
        source = layout.attributes.get(name)
        if source is None:
            return None
        if isinstance(source.type, st.StructType):
            return source.type.fieldNames()
        return () if isinstance(source.type, st.ArrayType | st.MapType) else None

    for _, sentence in unusable_keys(library, inside):
        warnings.warn(sentence, stacklevel=5)
