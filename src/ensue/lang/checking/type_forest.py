"""Event types as trees, numbered so that queries over thousands of types stay cheap.

In come declarations; out go answers: whether a type is below another one, and which attributes a
name means on a type and on the types below it. The types are numbered in preorder, and each type
has the last number below it: a type is below another if its number lies in the other's range.
Broken declarations are accepted: a type whose parents are not known is `open`, and an attribute
that it seems to lack must not be reported.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field

from ensue.events.types import DerivedAttribute, EventType, TypeSystem, ValueType


@dataclass(frozen=True, slots=True)
class AttributeInType:
    """A declaration of an attribute; `enclosing` is the nearest one in a type above."""

    type_name: str
    value_type: ValueType
    first: int
    last: int
    enclosing: AttributeInType | None


@dataclass
class TypeForest:
    """The types of a library, with parents that exist and form no circle.

    It is not known what the types in `broken` inherit; they are given without a parent.
    """

    types: Mapping[str, EventType]
    broken: Set[str] = frozenset()
    open_types: frozenset[str] = field(init=False)
    children: dict[str, list[str]] = field(init=False)
    _first: dict[str, int] = field(init=False)
    _last: dict[str, int] = field(init=False)
    _declared: dict[str, list[AttributeInType]] = field(init=False)
    _nested: bool = field(init=False)
    _below: dict[tuple[str, str], frozenset[ValueType]] = field(default_factory=dict, init=False)
    _near: dict[str, frozenset[str]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.children = {name: [] for name in self.types}
        for each in self.types.values():
            if each.parent is not None:
                self.children[each.parent].append(each.name)
        self._first, self._last = {}, {}
        order = self._number()
        self._declared = self._index_attributes(order)
        self._nested = any("." in name for name in self._declared)
        self.open_types = frozenset(name for each in self.broken for name in self.below(each))

    def _number(self) -> list[str]:
        order: list[str] = []
        for root in (each.name for each in self.types.values() if each.parent is None):
            pending: list[tuple[str, Iterator[str]]] = [(root, iter(self.children[root]))]
            self._first[root] = len(order)
            order.append(root)
            while pending:
                name, rest = pending[-1]
                child = next(rest, None)
                if child is None:
                    self._last[name] = len(order) - 1
                    pending.pop()
                else:
                    self._first[child] = len(order)
                    order.append(child)
                    pending.append((child, iter(self.children[child])))
        return order

    def _index_attributes(self, order: Iterable[str]) -> dict[str, list[AttributeInType]]:
        index: dict[str, list[AttributeInType]] = {}
        for name in order:
            first, last = self._first[name], self._last[name]
            for attribute, value_type in self._declarations(name):
                places = index.setdefault(attribute, [])
                above = places[-1] if places else None
                while above is not None and above.last < first:
                    above = above.enclosing
                places.append(AttributeInType(name, value_type, first, last, above))
        return index

    def _declarations(self, type_name: str) -> Iterator[tuple[str, ValueType]]:
        """The attributes that a type itself declares, as data or worked out."""
        declared = self.types[type_name]
        yield from ((each.name, each.type) for each in declared.attributes)
        yield from ((each.name, each.type) for each in declared.derived)

    def __contains__(self, name: object) -> bool:
        return name in self.types

    def is_subtype(self, name: str, of: str) -> bool:
        """Every type is a subtype of itself."""
        return self._first[of] <= self._first[name] <= self._last[of]

    def may_be_subtype(self, name: str, of: str) -> bool:
        """False only if it is certain: both types are known, and so are all parents of `name`."""
        if name not in self.types or of not in self.types or name in self.open_types:
            return True
        return self.is_subtype(name, of)

    def redeclared(self) -> Iterator[tuple[str, str, str]]:
        """Each attribute that an ancestor declares already: type, attribute, ancestor."""
        for attribute, places in self._declared.items():
            for place in places:
                if place.enclosing is not None:
                    yield place.type_name, attribute, place.enclosing.type_name

    def attribute(self, type_name: str, attribute: str) -> ValueType | None:
        """The type of an attribute that is declared on a type or above it."""
        places = self._declared.get(attribute)
        if not places:
            return None
        number = self._first[type_name]
        index = bisect_right(places, number, key=lambda place: place.first) - 1
        place = places[index] if index >= 0 else None
        while place is not None and place.last < number:
            place = place.enclosing
        return place.value_type if place else None

    def attributes_below(self, type_name: str, attribute: str) -> frozenset[ValueType]:
        """The types that an attribute has on the types below one."""
        key = (type_name, attribute)
        if key not in self._below:
            self._below[key] = self._find_below(type_name, attribute)
        return self._below[key]

    def _find_below(self, type_name: str, attribute: str) -> frozenset[ValueType]:
        places = self._declared.get(attribute, [])
        start = bisect_right(places, self._first[type_name], key=lambda place: place.first)
        end = bisect_right(places, self._last[type_name], key=lambda place: place.first)
        return frozenset(place.value_type for place in places[start:end])

    def has_parts(self, type_name: str, name: str) -> bool:
        """Whether values inside of `name` are declared on a type, above it or below it."""
        if not self._nested:
            return False
        return any(each.startswith(f"{name}.") for each in self.names_near(type_name))

    def lineage(self, name: str) -> Iterator[str]:
        """The type itself, its parent, and so on up."""
        current: str | None = name
        while current is not None:
            yield current
            current = self.types[current].parent

    def levels(self) -> dict[str, int]:
        """The level of each type; a type without a parent is at level 1."""
        levels: dict[str, int] = {}
        # In preorder parents come before their children.
        for name in self._first:
            parent = self.types[name].parent
            levels[name] = 1 if parent is None else levels[parent] + 1
        return levels

    def below(self, name: str) -> Iterator[str]:
        """The type itself and all types below it."""
        pending = [name]
        while pending:
            current = pending.pop()
            yield current
            pending.extend(reversed(self.children[current]))

    def attributes(self, name: str) -> dict[str, ValueType]:
        """All attributes of a type that are data, the inherited ones first."""
        chain = [self.types[each] for each in self.lineage(name)]
        return {a.name: a.type for each in reversed(chain) for a in each.attributes}

    def derived(self, name: str) -> dict[str, DerivedAttribute]:
        """All attributes of a type that are worked out, the inherited ones first."""
        chain = [self.types[each] for each in self.lineage(name)]
        return {a.name: a for each in reversed(chain) for a in each.derived}

    def derived_anywhere(self, attribute: str) -> DerivedAttribute | None:
        """The first attribute of a name that is worked out on some type, if it is data on none."""
        if attribute not in self._declared:
            return None
        declared = [self.types[each.type_name] for each in self._declared[attribute]]
        if any(attribute in {a.name for a in each.attributes} for each in declared):
            return None
        return next((a for each in declared for a in each.derived if a.name == attribute), None)

    def names_near(self, type_name: str) -> frozenset[str]:
        """All attribute names that are declared on a type, above it or below it."""
        if type_name not in self._near:
            names = {*self.attributes(type_name), *self.derived(type_name)}
            for each in self.below(type_name):
                names.update(attribute for attribute, _ in self._declarations(each))
            self._near[type_name] = frozenset(names)
        return self._near[type_name]

    def type_system(self) -> TypeSystem:
        return TypeSystem(dict(self.types))
