"""Derived attributes read a second time: data that events are given before any rule reads them.

In comes an event as it came; out goes one whose data also has what its type works out, and the way
back, since an event is sent on as it came. The engines work an attribute out where it is asked.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ensue.events.event import Event
from ensue.events.types import TypeSystem, ValueType
from ensue.lang.expressions import Expression
from ensue.lang.expressions.evaluation import EventScope, evaluate
from ensue.lang.expressions.names import names_in
from ensue.lang.syntax import LibraryTree

from .values_that_fit import fitted


class Deriving:
    """The derived attributes of a library, by the `type` that events carry."""

    def __init__(self, library: LibraryTree, types: TypeSystem) -> None:
        by_name = {each.wire_name: each for each in library.types}
        self.by_type: dict[str, dict[str, tuple[Expression, ValueType]]] = {
            name: {
                each.name: (each.value, each.type)
                for above in types.lineage(name)
                for each in by_name[above].attributes
                if each.value is not None
            }
            for name in by_name
        }
        self.originals: dict[int, tuple[Event, Event]] = {}

    def given(self, event: Event) -> Event:
        """The event with all that its type works out."""
        wanted = self.by_type.get(event.type)
        if not wanted:
            return event
        data: dict[str, Any] = {n: v for n, v in event.attributes.items() if n not in wanted}
        left = dict(wanted)
        while left:
            # What needs nothing that is still to come; there are no circles.
            ready = [
                name
                for name, (value, _) in left.items()
                if not any(parts[0] in left for parts in names_in(value) if len(parts) == 1)
            ]
            scope = EventScope(msgspec.structs.replace(event, data=dict(data)))
            for name in ready:
                value, type_ = left.pop(name)
                outcome = evaluate(value, scope)
                data[name] = None if outcome.errors else fitted(outcome.value, type_)
        whole = msgspec.structs.replace(event, data=data)
        self.originals[id(whole)] = (whole, event)
        return whole

    def as_it_came(self, event: Event) -> Event:
        known = self.originals.get(id(event))
        return event if known is None else known[1]
