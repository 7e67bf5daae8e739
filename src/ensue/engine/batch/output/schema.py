"""The columns of outputs, which follow from the library: one rule for tables, files and Spark.

In come the types of a library and correlations; out go the columns that their outputs have, also
where nothing was found. First the attributes of CloudEvents, then where an output comes from, then
a column for each attribute of an output type. An attribute stands in a struct named like its type
instead, if two output types give it types that one column cannot hold, or if its name is a column
of every output. Tables are made in `columns`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from ensue.events.arrow import CONTEXT_FIELDS
from ensue.events.arrow_types import arrow_type, field_of, widen
from ensue.events.types import TypeSystem, ValueType
from ensue.lang.checking.feeding import outputs_of
from ensue.lang.syntax import Correlation

CONTEXT = tuple(field.name for field in CONTEXT_FIELDS)
PROVENANCE = ("correlation", "trigger", "labels", "causes", "partitionkey")
ORDER = "order"
EVENT = "event"
TAKEN = frozenset({*CONTEXT, *PROVENANCE, ORDER, EVENT})
"""Names of columns that no attribute has; `order` and `event` are asked for on Spark."""


@dataclass(frozen=True)
class OutputSchema:
    """The columns of outputs: one for each of `attributes`; `structs` hold the others by type."""

    attributes: Mapping[str, ValueType]
    structs: Mapping[str, Mapping[str, ValueType]]

    @cached_property
    def schema(self) -> pa.Schema:
        fields = [*CONTEXT_FIELDS, *(pa.field(name, pa.string()) for name in PROVENANCE)]
        fields += [field_of(name, type_) for name, type_ in self.attributes.items()]
        fields += [pa.field(name, struct_of(members)) for name, members in self.structs.items()]
        return pa.schema(fields)


def struct_of(members: Mapping[str, ValueType]) -> pa.DataType:
    return pa.struct([pa.field(name, arrow_type(type_)) for name, type_ in members.items()])


def output_schema(types: TypeSystem, correlations: Iterable[Correlation]) -> OutputSchema:
    """The columns of what the correlations put out."""
    made: set[str] = set()
    for correlation in correlations:
        for output in outputs_of(correlation):
            made.update(types.subtypes(output.type) if output.or_below else (output.type,))
    wide: dict[str, ValueType] = {}
    apart: set[str] = set()
    # In the order of declarations, so that the same library gives the same columns.
    for type_name in (name for name in types.types if name in made):
        for name, type_ in types.attributes(type_name).items():
            joined = widen(wide[name], type_) if name in wide else type_
            if joined is None or name.lower() in TAKEN:
                apart.add(name)
            else:
                wide[name] = joined
    apart |= _differing_in_case(wide)
    structs = {
        type_name: members
        for type_name in types.types
        if type_name in made
        and (members := {n: t for n, t in types.attributes(type_name).items() if n in apart})
    }
    beside = {name: type_ for name, type_ in wide.items() if name not in apart}
    return OutputSchema(beside, structs)


def _differing_in_case(names: Iterable[str]) -> set[str]:
    """Names that differ only in case, which Spark cannot tell apart, without the first of each."""
    seen: dict[str, str] = {}
    return {name for name in names if seen.setdefault(name.lower(), name) != name}
