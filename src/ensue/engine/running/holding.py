"""Which keys the rules of a run hold, and whether an event would add to them.

In comes an engine that reads event by event; out go `Holder`s, one for each rule. Nothing is
refused here: a server with a limit on keys asks before it lets a run read an event.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple, Protocol, runtime_checkable

from ensue.engine.ports import Ports, key_of
from ensue.engine.step.dispatch.routines import key_under
from ensue.engine.step.stream import StepStream
from ensue.engine.stream import Stream
from ensue.events.event import Event


@runtime_checkable
class HoldsKeys(Protocol):
    """An engine that knows how many keys it holds."""

    @property
    def keys_held(self) -> int: ...


class Holder(NamedTuple):
    """A rule and its keys. Rules in one group of cells share one collection of keys."""

    name: str
    ports: Ports
    keys: Collection[Any]
    key_under: Callable[[Event, tuple[str, ...]], Any]

    def lacks(self, event: Event) -> bool:
        """Whether an event would begin a key that is not there."""
        names = self.ports.key_names
        keys = (self.key_under(event, names[port]) for port in self.ports.matched(event))
        return any(key is not None and key not in self.keys for key in keys)


def keys_held_in(engine: object) -> int:
    """For how many keys an engine holds something; a key that rules share counts once."""
    if isinstance(engine, HoldsKeys):
        return engine.keys_held
    collections = {id(each.keys): len(each.keys) for each in holders_in(engine)}
    return sum(collections.values())


def holders_in(engine: object) -> list[Holder]:
    """The rules of an engine; none if it does not read event by event."""
    if isinstance(engine, StepStream):
        return [
            Holder(
                rule.name,
                rule.ports,
                rule.instances if rule.group is None else rule.group.keys,
                key_under,
            )
            for rule in engine.rules
        ]
    if isinstance(engine, Stream):
        return [
            Holder(each.correlation.name, each.ports, each.instances, key_of)
            for each in engine.running
        ]
    return []
