"""Keys by which instances are found, and what instances of one rule have in common.

A key of one text or number stands for itself (`FastKey`), which is hashed faster than a tuple; any
other key is the tuple of `ensue.engine.ports`. `SharedFacts` has the facts that all instances of a
rule share. `KeyInstance` is an instance that makes its `Outputs` when it first puts something out:
most of millions of keys never do.
"""

from __future__ import annotations

from collections.abc import Sequence

from ensue.engine.instance import NO_TIMERS, Instance
from ensue.engine.outputs import Outputs
from ensue.engine.ports import Key, timer_mask
from ensue.events.types import TypeSystem
from ensue.lang.syntax import Correlation, TimerPort
from ensue.machine.model import Machine

FastKey = str | int | float | Key
"""The key by which instances are found: a single text or number stands for itself."""


def whole_key(key: FastKey) -> Key:
    if isinstance(key, tuple):
        return key
    return (("str" if isinstance(key, str) else "number", key),)


def fast_key(key: Key) -> FastKey:
    """The inverse of `whole_key`."""
    if len(key) == 1:
        (kind, value), *_ = key
        if kind == "str" and type(value) is str:
            return value
        if kind == "number" and type(value) in (int, float):
            assert isinstance(value, int | float)
            return value
    return key


class FirstMove:
    """What an event does to a key that has not started: nothing, or it starts an instance."""

    def __init__(self, is_noop: bool) -> None:
        self.is_noop = is_noop


NO_MOVE, BEGINS = FirstMove(is_noop=True), FirstMove(is_noop=False)


class SharedFacts:
    """The facts that all instances of a rule share."""

    def __init__(self, correlation: Correlation, types: TypeSystem) -> None:
        self.correlation = correlation
        self.types = types
        self._name, self._is_keyed = correlation.name, bool(correlation.clauses.by)

    def outputs(self, key: FastKey) -> Outputs:
        return Outputs(self._name, whole_key(key), self._is_keyed, self.types)


class MachineFacts(SharedFacts):
    """The facts that all instances of a rule share which runs on a machine."""

    def __init__(self, correlation: Correlation, machine: Machine, types: TypeSystem) -> None:
        super().__init__(correlation, types)
        self.machine = machine
        self._timer_masks: dict[str, int | None] = {}

    def timer_mask(self, port: TimerPort) -> int | None:
        """The mask of all firings of a timer port; None where it depends on their time."""
        known = self._timer_masks
        if port.name not in known:
            known[port.name] = timer_mask(self.machine, port.name)
        return known[port.name]


class KeyInstance(Instance):
    """An instance that has its `Outputs` from when it first puts something out.

    Until then it has only the key. There may be millions of keys in the middle of a match, and most
    are begun and dropped without an output.
    """

    __slots__ = ("_outputs_or_key",)

    facts: SharedFacts
    _outputs_or_key: Outputs | FastKey

    def __init__(
        self,
        timers: Sequence[TimerPort],
        outputs: Outputs | FastKey,
        started: int,
    ) -> None:
        if timers:
            # The setter below takes a key for outputs that are still to be made.
            super().__init__(timers, outputs, started)  # type: ignore[arg-type]
            return
        # Most have no timers, and a stream may begin as many of these as it has events.
        self.last_read = 0
        self._outputs_or_key = outputs
        self.armed_for = None
        self._timers = timers
        self._due = NO_TIMERS

    @property
    def outputs(self) -> Outputs:
        held = self._outputs_or_key
        if not isinstance(held, Outputs):
            held = self._outputs_or_key = self.facts.outputs(held)
        return held

    @outputs.setter
    def outputs(self, outputs: Outputs | FastKey) -> None:
        self._outputs_or_key = outputs

    @property
    def made_outputs(self) -> Outputs | None:
        """The `Outputs` of the key; None if it has never put out anything."""
        held = self._outputs_or_key
        return held if isinstance(held, Outputs) else None
