"""Event types: their attributes and their inheritance.

In come declarations; out goes a `TypeSystem` with queries: whether a type is a subtype of another,
the types below a type, its attributes, and those that are derived from them. Mistakes in
declarations are reported by `ensue.lang`, which also works out derived attributes; whether a value
fits its attribute is checked in `conformance`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

INTEGER_RANGES: Mapping[str, tuple[int, int]] = {
    "octet": (0, 2**8 - 1),
    "short": (-(2**15), 2**15 - 1),
    "unsigned short": (0, 2**16 - 1),
    "long": (-(2**31), 2**31 - 1),
    "unsigned long": (0, 2**32 - 1),
    "long long": (-(2**63), 2**63 - 1),
    "unsigned long long": (0, 2**64 - 1),
}
REALS = frozenset({"float", "double"})
SCALARS = frozenset({*INTEGER_RANGES, *REALS, "boolean", "char", "string", "timestamp"})


@dataclass(frozen=True, slots=True)
class ValueType:
    """The type of one attribute: a scalar by its name, or `sequence` of an element type."""

    name: str
    element: ValueType | None = None

    @property
    def kind(self) -> str:
        """The kind in CESQL: `integer`, `real`, `boolean`, `string`, `timestamp` or `sequence`."""
        if self.name in INTEGER_RANGES:
            return "integer"
        if self.name in REALS:
            return "real"
        return "string" if self.name == "char" else self.name

    @classmethod
    def of(cls, text: str) -> ValueType:
        """The inverse of `str`: `ValueType.of("sequence<unsigned long>")`."""
        if text.startswith("sequence<") and text.endswith(">"):
            return cls("sequence", cls.of(text[len("sequence<") : -1]))
        if text not in SCALARS:
            raise ValueError(
                f"`{text}` is no attribute type: there are {', '.join(sorted(SCALARS))},"
                " and `sequence<...>` of one of them"
            )
        return cls(text)

    def __str__(self) -> str:
        return f"sequence<{self.element}>" if self.element else self.name


@dataclass(frozen=True, slots=True)
class Attribute:
    name: str
    type: ValueType


@dataclass(frozen=True, slots=True)
class DerivedAttribute:
    """An attribute that is no data: `value` is the text of the expression that works it out."""

    name: str
    type: ValueType
    value: str


@dataclass(frozen=True, slots=True)
class EventType:
    """A declared type: its name, its parent's name if it has one, and its own attributes."""

    name: str
    parent: str | None = None
    attributes: tuple[Attribute, ...] = ()
    derived: tuple[DerivedAttribute, ...] = ()


@dataclass(frozen=True)
class TypeSystem:
    """The declared types of a library. Parents must exist and must not form a circle."""

    types: Mapping[str, EventType] = field(default_factory=dict)
    # A cache, since the attributes are needed for every event that is read.
    _attributes: dict[str, Mapping[str, ValueType]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @classmethod
    def of(cls, *types: EventType) -> TypeSystem:
        return cls({each.name: each for each in types})

    def __contains__(self, name: object) -> bool:
        return name in self.types

    def __iter__(self) -> Iterator[EventType]:
        return iter(self.types.values())

    def lineage(self, name: str) -> Iterator[str]:
        """The type itself, its parent, and so on up."""
        current: str | None = name
        while current is not None:
            yield current
            declared = self.types.get(current)
            current = declared.parent if declared else None

    def is_subtype(self, name: str, of: str) -> bool:
        """Every type is a subtype of itself, an undeclared type of itself only."""
        below = self._ranges.get(of, range(0))
        return name == of or self._ranges.get(name, range(-1, 0)).start in below

    def subtypes(self, of: str) -> tuple[str, ...]:
        """`of` and all types below it, in order of declaration."""
        below = self._ranges.get(of, range(0))
        places = sorted(self._walk[below.start : below.stop])
        return tuple(self._names[place] for place in places)

    @cached_property
    def _names(self) -> list[str]:
        return list(self.types)

    @cached_property
    def _walk(self) -> list[int]:
        """The types in preorder, each by its place among the declarations."""
        places = {name: place for place, name in enumerate(self.types)}
        children: dict[str | None, list[int]] = {}
        for each in self.types.values():
            parent = each.parent if each.parent in self.types else None
            children.setdefault(parent, []).append(places[each.name])
        walk: list[int] = []
        waiting = children.get(None, [])[::-1]
        while waiting:
            place = waiting.pop()
            walk.append(place)
            waiting += children.get(self._names[place], [])[::-1]
        return walk

    @cached_property
    def _ranges(self) -> dict[str, range]:
        """The range of each type and all types below it in the preorder."""
        names = self._names
        sizes = [1] * len(names)
        places = {name: place for place, name in enumerate(names)}
        for place in reversed(self._walk):
            parent = self.types[names[place]].parent
            if parent in places:
                sizes[places[parent]] += sizes[place]
        return {
            names[place]: range(start, start + sizes[place])
            for start, place in enumerate(self._walk)
        }

    def attributes(self, name: str) -> Mapping[str, ValueType]:
        """All attributes of a declared type, the inherited ones first."""
        known = self._attributes.get(name)
        if known is None:
            chain = [self.types[each] for each in self.lineage(name) if each in self.types]
            known = {a.name: a.type for each in reversed(chain) for a in each.attributes}
            self._attributes[name] = known
        return known

    def derived(self, name: str) -> Mapping[str, DerivedAttribute]:
        """All derived attributes of a declared type, the inherited ones first."""
        chain = [self.types[each] for each in self.lineage(name) if each in self.types]
        return {a.name: a for each in reversed(chain) for a in each.derived}
