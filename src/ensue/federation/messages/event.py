"""The common event: the form in which events of unlike services are compared and mapped.

A common event has a subject (what kind of event it is), parameters (what it says) and attributes
(how it is to be treated). Parameters and attributes are fields: each has a position, a name, a type
and a value, and is found by position or by name. `CommonEvent.of` and `.event` go from CloudEvents
and back without loss: the subject is the CloudEvents `type`, parameters are the members of `data`,
attributes are everything else. What single attributes mean to services is told in `attributes`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from ensue.errors import UsageError
from ensue.events.event import Event

FieldType = Literal[
    "string", "long", "double", "boolean", "timestamp", "octets", "sequence", "structure", "null"
]
Form = Literal["members", "value", "none"]
"""How data is laid out: as named members, as one value without a name, or not at all."""

ID, SOURCE, TIME = "id", "source", "time"
OWN_ATTRIBUTES = (ID, SOURCE, TIME)

_TYPES: tuple[tuple[type | tuple[type, ...], FieldType], ...] = (
    (str, "string"),
    (bool, "boolean"),
    (int, "long"),
    (float, "double"),
    (datetime, "timestamp"),
    (bytes, "octets"),
    (Mapping, "structure"),
    ((list, tuple), "sequence"),
    (type(None), "null"),
)


@dataclass(frozen=True, slots=True)
class Field:
    """One parameter or attribute."""

    index: int
    name: str
    type: FieldType
    value: Any


class Fields:
    """Fields in their order: `fields[0]`, `fields["speed"]`, `"speed" in fields`."""

    __slots__ = ("_by_name", "_fields")

    def __init__(self, named: Iterable[tuple[str, Any]]) -> None:
        self._fields = tuple(
            Field(index, name, type_of(value), value) for index, (name, value) in enumerate(named)
        )
        self._by_name = {field.name: field for field in self._fields}
        if len(self._by_name) < len(self._fields):
            names = [field.name for field in self._fields]
            twice = next(name for name in names if names.count(name) > 1)
            raise UsageError(f"the field `{twice}` is given twice: a name stands for one value")

    def __getitem__(self, key: int | str) -> Field:
        return self._fields[key] if isinstance(key, int) else self._by_name[key]

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[Field]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fields) and other._fields == self._fields

    def __hash__(self) -> int:
        return hash(tuple(self._by_name))

    def __repr__(self) -> str:
        return f"Fields({self.values()!r})"

    def get(self, name: str, default: Any = None) -> Any:
        field = self._by_name.get(name)
        return default if field is None else field.value

    def values(self) -> dict[str, Any]:
        """The values by name, in order."""
        return {field.name: field.value for field in self._fields}

    def replaced(self, name: str, value: Any) -> Fields:
        """The fields with one value set: in its place if there is the name, at the end if not."""
        return Fields((self.values() | {name: value}).items())

    def without(self, name: str) -> Fields:
        return Fields((each.name, each.value) for each in self._fields if each.name != name)


@dataclass(frozen=True, slots=True)
class CommonEvent:
    """An event in the terms that all services share."""

    subject: str
    parameters: Fields
    attributes: Fields
    form: Form = "members"

    @classmethod
    def of(cls, event: Event) -> CommonEvent:
        own = ((ID, event.id), (SOURCE, event.source), (TIME, event.time))
        attributes = Fields((*own, *event.extensions.items()))
        if event.data is None:
            return cls(event.type, Fields(()), attributes, "none")
        if isinstance(event.data, Mapping):
            return cls(event.type, Fields(event.data.items()), attributes)
        return cls(event.type, Fields((("", event.data),)), attributes, "value")

    @property
    def event(self) -> Event:
        """The event as CloudEvents have it. Raises `UsageError` if an attribute is missing."""
        if missing := [name for name in OWN_ATTRIBUTES if name not in self.attributes]:
            raise UsageError(f"the event `{self.subject}` has no attribute `{missing[0]}`")
        extensions = {
            each.name: each.value for each in self.attributes if each.name not in OWN_ATTRIBUTES
        }
        identity, source, time = (self.attributes[name].value for name in OWN_ATTRIBUTES)
        return Event(identity, source, self.subject, time, self._data(), extensions)

    def _data(self) -> Any:
        if self.form == "none":
            return None
        return self.parameters[0].value if self.form == "value" else self.parameters.values()


def type_of(value: Any) -> FieldType:
    """The type of a value, by the names that the common event has for types."""
    for known, name in _TYPES:
        if isinstance(value, known):
            return name
    raise UsageError(f"`{value!r}` is of no type that an event can carry")
