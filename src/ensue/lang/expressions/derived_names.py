"""Derived names: names of attributes that are worked out from the other attributes of an event.

A derived name is the text of its name, and knows what it stands for on events of each type. It
stands where a name stands in an expression, a key or an aggregate of a checked library, so that
whoever reads the value of a name from an event reads that of a derived one too. On events of other
types it is a plain name. Within one library a name is derived everywhere or nowhere, so that texts
are enough to tell names apart. `ensue.lang.derived.attributes` puts derived names into a library.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ensue.events.conformance import conform_value
from ensue.events.nesting import path_of
from ensue.events.types import ValueType

if TYPE_CHECKING:
    from ensue.lang.expressions.tree import Expression


@dataclass(frozen=True, slots=True)
class DerivedValue:
    """What a derived attribute stands for: an expression over one event, and the declared type.

    `evaluate` is `evaluation.evaluate`, which reads names, as this is the value of one.
    """

    expression: Expression
    type: ValueType
    evaluate: Callable[[Expression, Any], Any] = field(compare=False, repr=False)

    def fitted(self, value: Any) -> Any:
        """A value as the declared type holds it; None where it does not fit."""
        try:
            return conform_value(value, self.type)
        except ValueError:
            return None


class DerivedName(str):
    """The name of a derived attribute; `values` are by the `type` that events carry."""

    __slots__ = ("values",)
    values: Mapping[str, DerivedValue]

    @classmethod
    def of(cls, name: str, values: Mapping[str, DerivedValue]) -> DerivedName:
        derived = cls(name)
        derived.values = values
        return derived


def derived_name(parts: tuple[str, ...]) -> DerivedName | None:
    """The derived name that the parts of a name are, if they are one."""
    first = parts[0] if len(parts) == 1 else None
    return first if isinstance(first, DerivedName) else None


def path_to(name: str) -> tuple[str, ...]:
    """The parts of the name of an attribute; a derived name has one part."""
    return (name,) if isinstance(name, DerivedName) else path_of(name)
