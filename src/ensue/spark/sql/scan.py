"""The scan of a group in SQL: which rows its rules want, their keys, and the columns to shuffle.

In come a group of rules and a `DataFrameLayout`; out goes a `Scan` of plain `Column`s, or
`NotInSqlError` with the reason why Python must read the rows. A predicate that SQL cannot express
exactly is listed in the scan and filters nothing, for the worker evaluates every predicate again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from ensue.errors import UsageError
from ensue.events.cloudevents import VERSION
from ensue.events.columns import extension_column, is_attribute_column
from ensue.events.types import TypeSystem
from ensue.lang.checking.ecl import expressions_in
from ensue.lang.derived.parts import statements_of, values_in
from ensue.lang.derived.wiring import sources_asked
from ensue.lang.diagnostics import did_you_mean
from ensue.lang.expressions.derived_names import DerivedName, derived_name
from ensue.lang.expressions.names import Parts, names_in, read_from
from ensue.lang.expressions.text.printing import print_expression
from ensue.lang.syntax import EclCorrelation, EventPort, Holds, PushPort
from ensue.spark.plan import PlannedRule, RuleGroup
from ensue.spark.sql.conformance import (
    all_of,
    any_of,
    attribute_value,
    event_conditions,
    fitted,
    type_conditions,
    types_by_conditions,
    undeclared_value,
)
from ensue.spark.sql.layout import DataFrameLayout, InputColumn, instant, kind_of_type, micros
from ensue.spark.sql.predicates import Resolve, conjuncts, holds, in_sql
from ensue.spark.sql.values import NotInSqlError, Sql, literal


@dataclass(frozen=True)
class KeyColumn:
    """A key of a group: `made`, of the shuffled columns of these names, is equal for equal keys.

    `is_plain` for a key that is the value of its one column.
    """

    names: tuple[str, ...]
    made: Callable[..., Column]
    is_plain: bool = True

    def of(self, columns: Mapping[str, Column]) -> Column:
        return self.made(*(columns[name] for name in self.names))

    def is_there(self, columns: Mapping[str, Column]) -> Column:
        # Of a plain column Spark can tell it from the statistics of a file.
        return (columns[self.names[0]] if self.is_plain else self.of(columns)).isNotNull()


@dataclass(frozen=True)
class Scan:
    """Which rows a group reads, and what of them.

    `wanted` is the condition on rows. `keys` decide the partition of a row. `shuffled` has the
    columns that go through the shuffle, by their names in `ensue.events.columns`, and `nulls` the
    declared attributes that no rule reads, which the worker adds as nulls. `python_predicates` are
    left to the worker. `types` are the event types of wanted rows.
    """

    wanted: Column
    keys: tuple[KeyColumn, ...]
    shuffled: tuple[tuple[str, Column], ...]
    nulls: tuple[str, ...]
    python_predicates: tuple[str, ...]
    types: tuple[str, ...]


def scan_of(group: RuleGroup, layout: DataFrameLayout, types: TypeSystem) -> Scan:
    """Raises `NotInSqlError` if a key cannot be computed in SQL."""
    in_python: list[str] = []
    # Ports of several rules may have equal conditions, which are then evaluated once.
    distinct = {
        (port.type, sources_asked(port), port.where): (rule, port)
        for rule in group.rules
        for port in rule.outside_ports
    }
    ports = [_port(rule, port, layout, types, in_python) for rule, port in distinct.values()]
    conditions = [any_of(ports), *event_conditions(layout)]
    type_column = layout.context["type"].column
    read = tuple(_types_read(group, types))
    conditions += [
        ~type_column.isin(*names) | all_of(type_conditions(layout, names[0], types))
        for names in types_by_conditions(layout, read, types)
    ]
    keys = _keys(group, layout, types)
    shuffled = _travelling(group, layout, types)
    conditions += [each.is_there(dict(shuffled)) for each in keys]
    present = {name for name, _ in shuffled}
    declared = dict.fromkeys(
        name for type_name in types.types for name in types.attributes(type_name)
    )
    nulls = tuple(n for n in declared if n not in present and is_attribute_column(n))
    python = tuple(dict.fromkeys(in_python))
    return Scan(all_of(conditions), keys, shuffled, nulls, python, read)


def check_arrival(events: DataFrame, arrival: str | None) -> None:
    """Raises `UsageError` if there is no such column, or it holds no integers."""
    if arrival is None:
        return
    if arrival not in events.columns:
        raise UsageError(
            f"there is no column `{arrival}` to take the arrival from;"
            f" {did_you_mean(arrival, events.columns)}"
        )
    type_ = events.schema[arrival].dataType
    if kind_of_type(type_) != "integer":
        raise UsageError(
            f"the column `{arrival}`, which is to tell the order of arrival, is"
            f" `{type_.simpleString()}`: it must hold integers, as offsets are"
        )


def wanted_by_rule(
    group: RuleGroup, layout: DataFrameLayout, types: TypeSystem
) -> dict[str, Column]:
    """Which events each rule wants, as far as SQL can tell."""
    keys = _keys(group, layout, types)
    found: dict[str, Column] = {}
    for rule in group.rules:
        ports = [_port(rule, port, layout, types, []) for port in rule.outside_ports]
        shuffled = dict(_travelling(group, layout, types))
        found[rule.name] = all_of([any_of(ports), *(each.is_there(shuffled) for each in keys)])
    return found


def _types_read(group: RuleGroup, types: TypeSystem) -> Iterator[str]:
    ports = [port.type for rule in group.rules for port in rule.outside_ports]
    read = {name for port in set(ports) for name in types.subtypes(port)}
    return (name for name in types.types if name in read)


def _port(
    rule: PlannedRule,
    port: EventPort,
    layout: DataFrameLayout,
    types: TypeSystem,
    in_python: list[str],
) -> Column:
    accepted = types.subtypes(port.type)
    conditions = [layout.context["type"].column.isin(*accepted)]
    asked = sources_asked(port)
    if asked is not None:
        conditions.append(layout.source.isin(*sorted(asked)))
    if port.where is not None:
        resolve = resolver(layout, port.type, types)
        for part in conjuncts(port.where):
            try:
                conditions.append(holds(part, resolve))
            except NotInSqlError as reason:
                text = print_expression(part)
                in_python.append(f"`{text}` of port `{port.name}` of `{rule.name}`: {reason}")
    return all_of(conditions)


# --- names --------------------------------------------------------------------------------------


def resolver(layout: DataFrameLayout, type_name: str, types: TypeSystem) -> Resolve:
    """The values of names in rows of a type and its subtypes."""

    def resolve(parts: tuple[str, ...]) -> Sql | None:
        if (derived := derived_name(parts)) is not None:
            value = derived.values.get(type_name)
            if value is not None:
                return fitted(in_sql(value.expression, resolve), value.type)
            if any(each in derived.values for each in types.subtypes(type_name)):
                raise NotInSqlError(f"`{derived}` is worked out in a type below `{type_name}`")
        name, *inner = parts
        if inner:
            found = layout.attributes.get(name)
            is_declared = ".".join(parts) in layout.attributes
            if not is_declared and (found is None or found.kind is not None):
                return None
            raise NotInSqlError(f"`{'.'.join(parts)}` reaches into nested data")
        candidates = list(_candidates(name, layout, type_name, types))
        if not candidates:
            return None
        if len(candidates) == 1:
            return candidates[0]
        if len({each.kind for each in candidates}) > 1:
            raise NotInSqlError(f"`{name}` may be several things of different kinds")
        return Sql(candidates[0].kind, sf.coalesce(*(each.column for each in candidates)))

    return resolve


def _candidates(
    name: str, layout: DataFrameLayout, type_name: str, types: TypeSystem
) -> Iterator[Sql]:
    """The values that a name may stand for, by precedence, up to one that is never missing."""
    always = _context(name, layout)
    if always is not None:
        yield always
        return
    if (extension := layout.extensions.get(name)) is not None:
        yield undeclared_value(extension)
    if (source := layout.attributes.get(name)) is not None:
        yield _data(name, source, type_name, types)
    lower = name.lower()
    if lower != name:
        if (always := _context(lower, layout)) is not None:
            yield always
        elif (extension := layout.extensions.get(lower)) is not None:
            yield undeclared_value(extension)


def _context(name: str, layout: DataFrameLayout) -> Sql | None:
    match name:
        case "id":
            return Sql("string", layout.context["id"].column.cast("string"))
        case "type":
            return Sql("string", layout.context["type"].column)
        case "source":
            return Sql("string", layout.source)
        case "time":
            return Sql("timestamp", instant(layout.context["time"]))
        case "specversion":
            return literal(VERSION)
    return None


def _data(name: str, source: InputColumn, type_name: str, types: TypeSystem) -> Sql:
    declared = types.attributes(type_name).get(name)
    if declared is not None:
        return attribute_value(source, declared)
    below = {
        types.attributes(each)[name]
        for each in types.subtypes(type_name)
        if name in types.attributes(each)
    }
    plain = undeclared_value(source)
    if any(each.kind != plain.kind for each in below):
        raise NotInSqlError(f"`{name}` is of another kind in a type below `{type_name}`")
    return plain


# --- keys ---------------------------------------------------------------------------------------


def _keys(group: RuleGroup, layout: DataFrameLayout, types: TypeSystem) -> tuple[KeyColumn, ...]:
    if not group.key_set:
        return ()
    if len(group.key_set) > 1:
        raise NotInSqlError("an event may have several keys")
    return tuple(_key(name, group, layout, types) for name in group.key_set[0])


def _key(name: str, group: RuleGroup, layout: DataFrameLayout, types: TypeSystem) -> KeyColumn:
    """A function that is equal for equal keys, across integer and real columns too."""
    if isinstance(name, DerivedName):
        return _derived_key(name, group, layout, types)
    if name in ("id", "type"):
        return KeyColumn((name,), _unchanged)
    if name == "time":
        return KeyColumn((name,), partial(_micros, layout.context["time"]))
    extension, lower = layout.extensions.get(name), layout.extensions.get(name.lower())
    places = {
        extension_column(name): extension,
        name: layout.attributes.get(name),
        extension_column(name.lower()): lower,
    }
    found = {place: source for place, source in places.items() if source is not None}
    if len(found) != 1 or name.lower() in ("id", "type", "source", "time", "specversion"):
        raise NotInSqlError(f"the key `{name}` may stand in several columns")
    ((place, source),) = found.items()
    if source.kind in ("integer", "real"):
        return KeyColumn((place,), _as_double)
    if source.kind == "timestamp":
        return KeyColumn((place,), partial(_micros, source))
    if source.kind is None:
        raise NotInSqlError(f"the key `{name}` is `{source.type.simpleString()}`")
    return KeyColumn((place,), _unchanged)


def _derived_key(
    name: DerivedName, group: RuleGroup, layout: DataFrameLayout, types: TypeSystem
) -> KeyColumn:
    """A key that is worked out, in the same way on all types that the rules of a group read."""
    read = {port.type for rule in group.rules for port in rule.event_ports}
    values = {name.values.get(each) for each in read}
    asked = {".".join(parts) for parts in read_from((name,), read)}
    declared = {tuple(types.attributes(each).get(n) for n in sorted(asked)) for each in read}
    if len(values) > 1 or None in values or len(declared) > 1:
        raise NotInSqlError(f"the key `{name}` is not worked out in one way on all types")
    places = dict(_places(layout))
    needed = tuple(n for n in places if n in asked | {extension_column(each) for each in asked})

    def made(*columns: Column) -> Column:
        moved = _with_columns(layout, dict(zip(needed, columns, strict=True)))
        found = resolver(moved, min(read), types)((name,))
        assert found is not None, "a derived attribute has a value, which may be null"
        if found.kind in ("integer", "real"):
            return _as_double(found.column)
        return sf.unix_micros(found.column) if found.kind == "timestamp" else found.column

    made(*(places[each] for each in needed))
    return KeyColumn(needed, made, is_plain=False)


def _places(layout: DataFrameLayout) -> Iterator[tuple[str, Column]]:
    """The columns that rules read, by the names under which they are shuffled."""
    for name, source in layout.context.items():
        yield name, source.column
    for name, source in layout.extensions.items():
        yield extension_column(name), source.column
    for name, source in layout.attributes.items():
        yield name, source.column


def _with_columns(layout: DataFrameLayout, columns: Mapping[str, Column]) -> DataFrameLayout:
    """The layout with other columns in place of some."""

    def moved(name: str, source: InputColumn) -> InputColumn:
        return replace(source, column=columns[name]) if name in columns else source

    return replace(
        layout,
        context={name: moved(name, each) for name, each in layout.context.items()},
        extensions={n: moved(extension_column(n), e) for n, e in layout.extensions.items()},
        attributes={name: moved(name, each) for name, each in layout.attributes.items()},
    )


def _unchanged(column: Column) -> Column:
    return column


def _as_double(column: Column) -> Column:
    # Adding zero turns -0.0 into 0.0.
    return column.cast("double") + sf.lit(0.0)


def _micros(source: InputColumn, column: Column) -> Column:
    return micros(replace(source, column=column))


# --- shuffled columns ---------------------------------------------------------------------------


def _travelling(
    group: RuleGroup, layout: DataFrameLayout, types: TypeSystem
) -> tuple[tuple[str, Column], ...]:
    names = {name for rule in group.rules for name in names_read(rule)}
    forwarded = set(_forwarded_types(group, types))
    for type_name in forwarded:
        names |= set(types.attributes(type_name))
    found: list[tuple[str, Column]] = [
        ("id", layout.context["id"].column.cast("string")),
        ("type", layout.context["type"].column),
        ("time", layout.context["time"].column),
    ]
    asks_source = any(
        sources_asked(port) is not None for rule in group.rules for port in rule.outside_ports
    )
    if "source" in layout.context and (forwarded or asks_source or "source" in _lower(names)):
        found.append(("source", layout.source))
    for name, source in layout.extensions.items():
        if name in names | _lower(names):
            found.append((extension_column(name), source.column))
    found += [(n, source.column) for n, source in layout.attributes.items() if n in names]
    return tuple(found)


def _lower(names: set[str]) -> set[str]:
    return {name.lower() for name in names}


def _forwarded_types(group: RuleGroup, types: TypeSystem) -> Iterator[str]:
    for rule in group.rules:
        ports = {port.name: port for port in rule.outside_ports}
        for statement in statements_of(rule.correlation):
            if isinstance(statement, PushPort) and statement.port in ports:
                yield from types.subtypes(ports[statement.port].type)


def names_read(rule: PlannedRule) -> Iterator[str]:
    """Every name that a rule reads in an event, and its first part, which may hold nested data."""
    types = {port.type for port in rule.event_ports}
    for parts in _names_asked(rule):
        yield from _whole_and_first(read_from(parts, types))


def _names_asked(rule: PlannedRule) -> Iterator[Parts]:
    for names in rule.key_set:
        yield from ((name,) for name in names)
    for port in rule.event_ports:
        if port.where is not None:
            yield from names_in(port.where)
    if isinstance(rule.correlation, EclCorrelation):
        for part in expressions_in(rule.correlation.body):
            if isinstance(part, Holds):
                yield from names_in(part.predicate)
        return
    values = list(values_in(statements_of(rule.correlation)))
    if rule.correlation.clauses.having is not None:
        values.append(rule.correlation.clauses.having)
    for value in values:
        # The first part is a port.
        yield from (parts[1:] for parts in names_in(value) if parts[1:])


def _whole_and_first(names: Iterable[tuple[str, ...]]) -> Iterator[str]:
    for parts in names:
        yield parts[0]
        yield ".".join(parts)
