"""Wire names: the `type` of events in place of the declared names of types.

In come the correlations and types of a library with declared names; out go copies with the `type`
that events carry, as `eventtype Name = "wire"` says. Engines work with these copies, since they
compare types with the `type` of an event. A library without wire names is returned as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from ensue.events.types import TypeSystem
from ensue.lang.expressions import Expression
from ensue.lang.syntax import (
    Correlation,
    EclCorrelation,
    EventPort,
    FilterCorrelation,
    LibraryTree,
    Push,
    PushNew,
)

Said = TypeVar("Said")


def wire_names(tree: LibraryTree) -> dict[str, str]:
    """The types whose events carry another name than the declared one, with that name."""
    return {each.name: each.wire for each in tree.types if each.wire is not None}


def wired_types(types: TypeSystem, names: Mapping[str, str]) -> TypeSystem:
    if not names:
        return types
    return TypeSystem.of(
        *(
            replace(
                each,
                name=names.get(each.name, each.name),
                parent=None if each.parent is None else names.get(each.parent, each.parent),
            )
            for each in types
        )
    )


def wired(said: Said, names: Mapping[str, str]) -> Said:
    """A correlation, or a part of one, with wire names."""
    result: Any = said
    match said:
        case FilterCorrelation() | EclCorrelation():
            result = replace(_inside(said, names), output=names.get(said.output, said.output))
        case EventPort(type_name):
            result = replace(said, type=names.get(type_name, type_name))
        case PushNew(type_name):
            result = replace(said, type=names.get(type_name, type_name))
        case Push(str(type_name)):
            result = replace(_inside(said, names), type=names.get(type_name, type_name))
        case tuple():
            result = tuple(wired(each, names) for each in said)
        case _ if is_dataclass(said) and not isinstance(said, Expression):
            result = _inside(said, names)
    return result  # type: ignore[no-any-return]


def _inside(said: Any, names: Mapping[str, str]) -> Any:
    changed = {}
    for each in fields(said):
        before = getattr(said, each.name)
        if each.compare and (isinstance(before, tuple) or is_dataclass(before)):
            after = wired(before, names)
            if after != before:
                changed[each.name] = after
    return replace(said, **changed) if changed else said


def wired_correlations(tree: LibraryTree) -> tuple[Correlation, ...]:
    names = wire_names(tree)
    return tuple(wired(each, names) for each in tree.correlations) if names else tree.correlations
