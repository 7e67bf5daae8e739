"""Events of JSON objects as most objects are, without a question that most objects do not raise.

In come the members of an object; out goes its event, the same that `mapping.rows`, `cloudevents`
and `conformance` make of it, or None for an object that has anything unusual: it then goes through
these, which also know what is wrong with it. What follows from the names of members is worked out
once for all objects with these names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ensue.events.cloudevents import TEXT_ATTRIBUTES, VERSION
from ensue.events.columns import CONTEXT_COLUMNS, DATA_COLUMN, EXTENSION_PREFIX
from ensue.events.event import RESERVED, Event
from ensue.events.mapping import Mapping
from ensue.events.mapping.definition import JOINT
from ensue.events.nesting import is_nested
from ensue.events.record_ids import record_id
from ensue.events.times import parse_time
from ensue.events.types import INTEGER_RANGES, TypeSystem, ValueType

MOST_SHAPES = 4096
"""Up to how many sets of names are kept; objects with others are read the usual slow way."""

MOST_SECONDS = 1 << 16
"""How many seconds are kept with their instants."""

_SECOND_LENGTH = len("2024-05-06T07:08:09")
_MICROSECOND_DIGITS = 6

Members = dict[str, Any]
Check = Callable[[Any], Any]


class _Shape(NamedTuple):
    """Where the parts of an event are in objects with some names."""

    identity: str | None
    source: str | None
    type: str | None
    time: str
    version: str | None
    data: str | None
    attributes: tuple[tuple[str, str], ...]
    nulls: tuple[str, ...]
    extensions: tuple[tuple[str, str], ...]


class _OddError(Exception):
    """An object is not as most are."""


class _MisfitError(Exception):
    """A value is not of the kind of its attribute."""


class UsualEvents:
    """Reads the events of one file; `name` is the source of events without one.

    `label` is the file in ids of events without one, by default its `name`.
    """

    def __init__(
        self, types: TypeSystem, name: str, mapping: Mapping | None, label: str | None = None
    ) -> None:
        self.has_misfit = False
        self._name = name
        self._label = label or name
        self._mapping = mapping or Mapping()
        self._shapes: dict[tuple[str, ...], _Shape | None] = {}
        self._seconds: dict[str, int] = {}
        self._checks = {each.name: _checks(types, each.name) for each in types}
        self._nested = {
            each.name for each in types if any(map(is_nested, types.attributes(each.name)))
        }
        self._is_plain = self._mapping.is_plain
        # Numbers with a unit, patterns, paths and joined columns are for the other readers.
        self._fits = not any(
            origin.unit is not None or "." in origin.path or JOINT in origin.path or is_nested(name)
            for name, origin in self._mapping.columns.items()
        )

    def event(self, members: Members, number: int) -> Event | None:
        """The event of the object in a line; None if the object is odd.

        Afterwards `has_misfit` says that a value may not fit its attribute, so that the event has
        still to be conformed.
        """
        self.has_misfit = False
        if not self._fits:
            return None
        names = tuple(members)
        try:
            shape = self._shapes[names]
        except KeyError:
            shape = self._learn(names)
        if shape is None:
            return None
        try:
            return self._event(members, shape, number)
        except (_OddError, ValueError, OverflowError):
            return None

    def _learn(self, names: tuple[str, ...]) -> _Shape | None:
        if len(self._shapes) >= MOST_SHAPES:
            return None
        shape = self._plain_shape(names) if self._is_plain else _cloud_shape(names)
        self._shapes[names] = shape
        return shape

    def _plain_shape(self, names: tuple[str, ...]) -> _Shape | None:
        columns = self._mapping.columns
        moved = {origin.path for origin in columns.values()}
        taken = {*columns, *(["type"] if self._mapping.type is not None else [])}
        context: dict[str, str] = {}
        attributes: dict[str, str] = {}
        nulls: list[str] = []
        pairs = [(name, name) for name in names if name not in moved and name not in taken]
        pairs += [(name, origin.path) for name, origin in columns.items()]
        for name, place in pairs:
            is_extension = name.startswith(EXTENSION_PREFIX) and name.removeprefix(
                EXTENSION_PREFIX
            ) not in ("", *RESERVED)
            if name in CONTEXT_COLUMNS or is_extension:
                if place in names:
                    context[name] = place
            elif place in names:
                attributes[name] = place
            else:
                nulls.append(name)
        if "time" not in context or ("type" not in context and self._mapping.type is None):
            return None
        if DATA_COLUMN in columns or any(is_nested(name) for name in attributes):
            return None
        data = attributes.pop(DATA_COLUMN, None)
        kept = {"specversion", "id", "source", "type", "time"}
        extensions = tuple(
            (name.removeprefix(EXTENSION_PREFIX), place)
            for name, place in context.items()
            if name not in kept
        )
        return _Shape(
            context.get("id"),
            context.get("source"),
            context.get("type"),
            context["time"],
            context.get("specversion"),
            data,
            tuple(attributes.items()),
            tuple(nulls),
            extensions,
        )

    def _event(self, members: Members, shape: _Shape, number: int) -> Event:
        if shape.version is not None:
            version = members[shape.version]
            if version is not None and version != VERSION:
                raise _OddError
        type_ = self._mapping.type if shape.type is None else members[shape.type]
        if type(type_) is not str or not type_ or type_ in self._nested:
            raise _OddError
        data: Any
        if self._is_plain:
            identity, source = self._plain_context(members, shape, number)
            data = self._plain_data(members, shape)
        else:
            assert shape.identity is not None
            assert shape.source is not None
            identity, source = members[shape.identity], members[shape.source]
            data = None if shape.data is None else members[shape.data]
        if type(identity) is not str or not identity or type(source) is not str or not source:
            raise _OddError
        extensions: dict[str, Any] = {}
        for name, place in shape.extensions:
            value = members[place]
            if value is None:
                continue
            kind = type(value)
            if kind is not str and (name in TEXT_ATTRIBUTES or kind not in (int, bool)):
                raise _OddError
            extensions[name] = value
        time = self._instant(members[shape.time])
        checks = self._checks.get(type_)
        if checks is not None:
            if type(data) is not dict:
                if data is not None or checks:
                    raise _OddError
            else:
                data = self._checked(data, checks)
        if self._is_plain and not data:
            data = None
            if checks:
                raise _OddError
        return Event(identity, source, type_, time, data, extensions)

    def _plain_context(self, members: Members, shape: _Shape, number: int) -> tuple[Any, Any]:
        identity = None if shape.identity is None else members[shape.identity]
        if identity is None:
            identity = record_id(self._label, number)
        elif type(identity) is int:
            identity = str(identity)
        source = None if shape.source is None else members[shape.source]
        if source is not None and type(source) is not str:
            raise _OddError
        return identity, source or self._name

    def _plain_data(self, members: Members, shape: _Shape) -> Members:
        data = {name: members[place] for name, place in shape.attributes}
        for name in shape.nulls:
            data[name] = None
        if shape.data is None:
            return data
        inner = members[shape.data]
        if type(inner) is not dict or any(map(is_nested, inner)):
            raise _OddError
        given = {
            name: value for name, value in data.items() if not (value is None and name in inner)
        }
        return {**inner, **given}

    def _checked(self, data: Members, checks: tuple[tuple[str, Check], ...]) -> Members:
        """The data in normal form; with nulls for what a plain object lacks."""
        changed: Members | None = None
        for name, check in checks:
            if name not in data:
                if not self._is_plain:
                    raise _OddError
                changed = dict(data) if changed is None else changed
                changed[name] = None
                continue
            value = data[name]
            if value is None:
                continue
            try:
                held = check(value)
            except _MisfitError:
                self.has_misfit = True
                continue
            if held is not value:
                changed = dict(data) if changed is None else changed
                changed[name] = held
        return data if changed is None else changed

    def _instant(self, text: Any) -> int:
        """The instant of a time, whose seconds have mostly been read before."""
        if type(text) is not str:
            raise _OddError
        second, rest = text[:_SECOND_LENGTH], text[_SECOND_LENGTH:]
        if rest[:1] == "." and rest[-1:] == "Z":
            digits = rest[1:-1]
            if not (digits.isascii() and digits.isdigit()):
                raise _OddError
            fraction = int(digits[:_MICROSECOND_DIGITS].ljust(_MICROSECOND_DIGITS, "0"))
            return self._known(f"{second}Z") + fraction
        return self._known(text)

    def _known(self, text: str) -> int:
        known = self._seconds.get(text)
        if known is None:
            known = parse_time(text, self._mapping.zone)
            # The second `:60` is the first instant of the next minute, whatever its fraction.
            if text[_SECOND_LENGTH - 2 : _SECOND_LENGTH] == "60":
                raise _OddError
            if len(self._seconds) >= MOST_SECONDS:
                self._seconds.clear()
            self._seconds[text] = known
        return known


def _cloud_shape(names: tuple[str, ...]) -> _Shape | None:
    """The shape of CloudEvents with these members."""
    if not {"id", "source", "type", "time"} <= {*names} or "data_base64" in names:
        return None
    extensions = tuple((name, name) for name in names if name not in RESERVED)
    version = "specversion" if "specversion" in names else None
    data = DATA_COLUMN if DATA_COLUMN in names else None
    return _Shape("id", "source", "type", "time", version, data, (), (), extensions)


def _checks(types: TypeSystem, name: str) -> tuple[tuple[str, Check], ...]:
    return tuple((attribute, _check(type_)) for attribute, type_ in types.attributes(name).items())


def _odd(_: Any) -> Any:
    raise _OddError


def _check(type_: ValueType) -> Check:
    """What gives a value in the form of its type, or raises `_MisfitError`."""
    if type_.name in INTEGER_RANGES:
        low, high = INTEGER_RANGES[type_.name]

        def integer(value: Any) -> Any:
            if type(value) is int and low <= value <= high:
                return value
            raise _MisfitError

        return integer
    return {"double": _double, "string": _string, "boolean": _boolean}.get(type_.name, _odd)


def _double(value: Any) -> Any:
    if type(value) is float:
        return value
    if type(value) is int:
        return float(value)
    raise _MisfitError


def _string(value: Any) -> Any:
    if type(value) is str:
        return value
    raise _MisfitError


def _boolean(value: Any) -> Any:
    if type(value) is bool:
        return value
    raise _MisfitError
