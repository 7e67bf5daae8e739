"""Keys by which instances are found, and what instances of one rule have in common.

A key of one text or number stands for itself (`FastKey`), which is hashed faster than a tuple; any
other key is the tuple of `ensue.engine.ports`. `SharedFacts` holds what all instances of a rule
share, and `KeyInstance` is an instance that makes its `Outputs` only when it puts out something:
most of millions of keys never do.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from ensue.engine.instance import NO_TIMERS, Instance
from ensue.engine.outputs import Outputs
from ensue.engine.ports import Key, timer_mask
from ensue.lang.syntax import TimerPort
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


class SharedFacts:
    """The facts that all instances of a rule share: here, the masks of its timer ports."""

    machine: Machine

    def outputs(self, key: FastKey) -> Outputs:
        raise NotImplementedError

    @cached_property
    def timer_masks(self) -> dict[str, int | None]:
        """For each timer port the mask of its firings; None where their time matters."""
        return {}

    def timer_mask(self, port: TimerPort) -> int | None:
        known = self.timer_masks
        if port.name not in known:
            known[port.name] = timer_mask(self.machine, port.name)
        return known[port.name]


class KeyInstance(Instance):
    """An instance that has its `Outputs` from when it first puts something out.

    Until then it has only the key. There may be millions of keys in the middle of a match, and most
    are begun and dropped without an output.
    """

    __slots__ = ("_said",)

    facts: SharedFacts
    _said: Outputs | FastKey

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
        self._said = outputs
        self.armed_for = None
        self._timers = timers
        self._due = NO_TIMERS

    @property
    def outputs(self) -> Outputs:
        said = self._said
        if not isinstance(said, Outputs):
            said = self._said = self.facts.outputs(said)
        return said

    @outputs.setter
    def outputs(self, outputs: Outputs | FastKey) -> None:
        self._said = outputs

    @property
    def made_outputs(self) -> Outputs | None:
        """The outputs of the key, if it ever had any."""
        return self._said if isinstance(self._said, Outputs) else None
