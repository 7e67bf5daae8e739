"""The attributes that a library declares, as columns for rows of many types.

Types may declare one name differently, so that a column has a type that is wide enough for all. A
name without such a type, or with another meaning in CloudEvents, has no column, and rows with it
are read singly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ensue.events.arrow_types import field_of, widen
from ensue.events.columns import is_attribute_column
from ensue.events.types import TypeSystem, ValueType


@dataclass(frozen=True)
class DeclaredAttribute:
    """An attribute: its name, the type of its column if it has one, and the types that declare it.

    `by` has a flag for each type, in the order of the library, and one for all others.
    """

    name: str
    type: ValueType | None
    by: Any

    @property
    def is_apart(self) -> bool:
        """Whether rows with a value are read singly: it is a sequence, or has no common type."""
        return self.type is None or self.type.element is not None

    @property
    def field(self) -> pa.Field:
        assert self.type is not None
        return field_of(self.name, self.type)


class DeclaredAttributes:
    """All attributes of a library's types."""

    def __init__(self, types: TypeSystem) -> None:
        self._names = pa.array(list(types.types), pa.string())
        found: dict[str, ValueType | None] = {}
        by: dict[str, Any] = {}
        for place, declared in enumerate(types):
            for name, type_ in types.attributes(declared.name).items():
                if name not in found:
                    found[name] = type_
                    by[name] = np.zeros(len(types.types) + 1, np.bool_)
                else:
                    known = found[name]
                    found[name] = None if known is None else widen(known, type_)
                by[name][place] = True
        self.all = tuple(
            DeclaredAttribute(name, type_ if is_attribute_column(name) else None, by[name])
            for name, type_ in found.items()
        )

    def codes(self, types: pa.Array) -> Any:
        """The place of each row's type among the declared types, -1 for an undeclared type."""
        if not len(self._names):
            return np.full(len(types), -1, np.int32)
        found = pc.index_in(types, value_set=self._names)
        return pc.fill_null(found, -1).to_numpy(zero_copy_only=False)
