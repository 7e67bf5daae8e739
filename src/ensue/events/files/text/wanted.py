"""What a library asks of a JSON object: the paths of values, by a mapping.

`Way`s are where a value may stand; the first that a line has counts. In a plain object, whose
`data` may be an object too, an attribute stands in the object itself or, unless it has a value
there, in its `data`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ensue.events.cloudevents import TEXT_ATTRIBUTES
from ensue.events.columns import DATA_COLUMN, EXTENSION_PREFIX
from ensue.events.files.attributes import DeclaredAttribute, DeclaredAttributes
from ensue.events.mapping import Mapping, Origin
from ensue.events.nesting import path_of
from ensue.events.types import ValueType

Way = tuple[str, ...]

ABSENT = object()
CONTEXT_NAMES = ("specversion", "id", "source", "type", "time", *sorted(TEXT_ATTRIBUTES))


@dataclass(frozen=True)
class Wanted:
    """The ways to a value, and the unit of times.

    `type` is the type that a value has in most lines, if it is known. `in_data` are the ways if
    the object itself has no value.
    """

    ways: tuple[Way, ...]
    unit: str | None = None
    type: ValueType | None = None
    in_data: tuple[Way, ...] = ()
    is_split: bool = False
    """Whether parts of it may stand in an object and other parts in its `data`."""
    others: tuple[Wanted, ...] = ()
    """The values to which it is joined."""


_TEXT = ValueType("string")
_TIME = ValueType("timestamp")


@dataclass
class WantedValues:
    """All that a library asks of the objects of a file."""

    mapping: Mapping
    declared: DeclaredAttributes
    context: dict[str, Wanted | None] = field(init=False)
    attributes: list[tuple[DeclaredAttribute, Wanted]] = field(init=False)
    data: Wanted = field(init=False)
    encoded: Wanted | None = field(init=False)

    def __post_init__(self) -> None:
        names = [
            *CONTEXT_NAMES,
            *(name for name in self.mapping.columns if name.startswith(EXTENSION_PREFIX)),
        ]
        self.context = {name: self._context(name) for name in names}
        self.attributes = [(each, self._attribute(each)) for each in self.declared.all]
        self.data = Wanted(self._data_ways())
        self.encoded = None if self.mapping.is_plain else Wanted((("data_base64",),), type=_TEXT)

    @property
    def all(self) -> list[Wanted]:
        """Each value that is asked for, but for `data` as a whole."""
        context = [each for each in self.context.values() if each is not None]
        asked = [*context, *(each for _, each in self.attributes)]
        joined = [other for each in asked for other in each.others]
        return [*asked, *joined, *([] if self.encoded is None else [self.encoded])]

    def _context(self, name: str) -> Wanted | None:
        """Where an attribute of CloudEvents is; None if no object has it."""
        type_ = _TIME if name == "time" else _TEXT
        origin = self.mapping.columns.get(name)
        if origin is not None:
            return _of_origin(origin, Wanted((), origin.unit, type_))
        if self._is_moved(name) or (name == "type" and self.mapping.type is not None):
            return None
        return Wanted(((name,),), None, type_)

    def _attribute(self, each: DeclaredAttribute) -> Wanted:
        path = path_of(each.name)
        if not self.mapping.is_plain:
            return Wanted(((DATA_COLUMN, *path),), None, each.type)
        inner = tuple((*way, each.name) for way in self._data_ways()) if len(path) == 1 else ()
        origin = self.mapping.columns.get(each.name)
        if origin is not None:
            return _of_origin(origin, Wanted((), origin.unit, each.type, inner))
        is_split = len(path) > 1
        own: tuple[Way, ...] = ((each.name,), path) if len(path) > 1 else (path,)
        if self._is_moved(each.name) or self._is_moved(path[0]):
            own = () if len(path) == 1 else ((each.name,),)
        return Wanted(own, None, each.type, inner, is_split)

    def _data_ways(self) -> tuple[Way, ...]:
        origin = self.mapping.columns.get(DATA_COLUMN)
        if origin is not None:
            return _ways(origin.path)
        return () if self._is_moved(DATA_COLUMN) else ((DATA_COLUMN,),)

    def _is_moved(self, name: str) -> bool:
        return name in self.mapping.moved(())


def _of_origin(origin: Origin, wanted: Wanted) -> Wanted:
    """The value of an origin; columns that are joined are of the kind that they have mostly."""
    first, *others = (_ways(path) for path in origin.sources(()))
    if not others:
        return replace(wanted, ways=first)
    joined = tuple(Wanted(ways, wanted.unit) for ways in others)
    return Wanted(first, wanted.unit, None, (), False, joined)


def _ways(path: str) -> tuple[Way, ...]:
    """The names that a dotted path may stand for: names with dots in them go first."""
    parts = path.split(".")
    return tuple((*parts[:at], ".".join(parts[at:])) for at in range(len(parts)))


def value_in(members: dict[str, Any], ways: Sequence[Way], nulls_below: int) -> Any:
    """The first value that an object has on one of the ways, or `ABSENT`.

    A value inside of a null is null from the depth `nulls_below` on, and else absent.
    """
    for way in ways:
        held: Any = members
        for depth, name in enumerate(way):
            if held is None and depth > nulls_below:
                return None
            if type(held) is not dict or name not in held:
                held = ABSENT
                break
            held = held[name]
        if held is not ABSENT:
            return held
    return ABSENT
