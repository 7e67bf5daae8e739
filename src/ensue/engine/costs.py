"""What a key of a correlation costs at most: the events that are kept for it, bytes, and time.

In comes a correlation of a library; out goes a `Cost`. It follows from the form in which a rule
runs: on a machine (`ensue.machine.plan`) a key has its states and the events that ports stand for;
chains without aggregates (`linked`) have the latest match up to each place; with aggregates and
without a window (`stretched`) these and some events; any other rule that runs from remembered
events keeps the events of its window, or all events since its last trigger.

The time of an event is told by how it grows with the events that the key remembers. A machine, a
chain and a rule that forgets all but one event take the same time whatever is remembered, and
aggregates in a window their logarithm; a rule that goes through its remembered events takes as long
as they are many.

Bytes are counted for the step engine, which keeps whole events; the batch engine keeps a part of
them. Texts of up to some twenty characters are counted in, longer ones come on top. Events that
have left a window are dropped in blocks, and alarms that are put off when they outnumber the
others. The tests measure the figures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ensue.engine.core.relating.branched import chain_facts
from ensue.events.types import TypeSystem
from ensue.lang.checked import CheckedLibrary
from ensue.lang.derived.relating import has_timeout
from ensue.lang.durations import print_duration
from ensue.lang.printer import print_key
from ensue.lang.syntax import (
    Correlation,
    Duration,
    EventPort,
    FilterCorrelation,
    PortRef,
    Then,
    Timeout,
)
from ensue.machine.plan import Plan
from ensue.machine.prepared import plan_in

KEY_BYTES = 600
MEMORY_BYTES = 2_600
"""What a key costs by itself, and where it runs from remembered events."""
EVENT_BYTES = 700
ATTRIBUTE_BYTES = 110
STATE_BYTES = 60
"""A state of a machine that is active, with the time from which it counts."""
ALARM_BYTES = 140
"""An alarm of a `timeout`: a key has one that counts, and as many again that do not any more."""


Growth = Literal["constant", "logarithmic", "linear"]
"""How the time of an event grows with the events that its key remembers."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a rule keeps under one key.

    `events` is how many are kept at most, or None where only time or a trigger bounds them.

    `window` is how long an event is kept at most; with neither a rule keeps all that it has read
    since its last trigger.
    """

    correlation: str
    keys: tuple[str, ...]
    ports: tuple[str, ...]
    unless: tuple[str, ...]
    key_bytes: int
    event_bytes: int
    events: int | None = None
    window: Duration | None = None
    growth: Growth = "constant"
    waits: bool = False

    @property
    def is_dear(self) -> bool:
        """Whether an event costs more than the logarithm of the events that are remembered."""
        return self.growth == "linear"

    @property
    def time(self) -> str:
        """The time of an event, in words."""
        name = f"`{self.correlation}`"
        if self.growth == "constant":
            return f"{name} takes the same time for each event, whatever it remembers"
        if self.growth == "logarithmic":
            return f"{name} takes O(log n) for an event, n the events that a key remembers"
        advice = (
            "let one rule wait, `x ; timeout(D) unless x`, and another count until it puts out"
            if self.waits
            else "a chain, `a ; b ; c`, or a shorter `within` costs less"
        )
        return (
            f"{name} takes O(n) for an event, n the events that a key remembers, so that ten times"
            f" as many take a hundred times as long: {advice}"
        )

    @property
    def is_bounded(self) -> bool:
        return self.events is not None or self.window is not None

    @property
    def most_bytes(self) -> int | None:
        """The bytes of a key at most; None if the number of events is not known."""
        return None if self.events is None else self.key_bytes + self.events * self.event_bytes

    def __str__(self) -> str:
        keys = ", ".join(self.keys)
        whose = (
            f"`{self.correlation}` keeps for each `{keys}`"
            if keys
            else f"`{self.correlation}` keeps"
        )
        read = _listed(self.ports)
        each = f"some {in_kilobytes(self.event_bytes)} for each event"
        if self.events == 0:
            return f"{whose} no events"
        if self.events is not None:
            count = f"{self.events:,} event" + ("s" if self.events != 1 else "")
            return f"{whose} at most {count} of {read}: {in_kilobytes(self.most_bytes or 0)}"
        if self.window is not None:
            return (
                f"{whose} the events of {read} of the last {print_duration(self.window)}: {each}, "
                f"and {in_kilobytes(self.key_bytes)} for the key"
            )
        or_void = f" or {_listed(self.unless)}" if self.unless else ""
        return (
            f"{whose} all events of {read} since its last trigger{or_void}: {each}; "
            "`within` would bound them"
        )


def in_kilobytes(count: int) -> str:
    return f"{count / 1_000:.1f} kB" if count < 1_000_000 else f"{count / 1_000_000:.1f} MB"


def _listed(names: tuple[str, ...]) -> str:
    shown = [f"`{name}`" for name in names[:4]]
    if len(names) > len(shown):
        shown.append(f"{len(names) - len(shown)} more ports")
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def cost_of(library: CheckedLibrary, correlation: Correlation) -> Cost:
    """What a key costs at most. Raises `LimitError` for a rule that is too large to run."""
    planned = plan_in(library, correlation)
    ports = tuple(each.name for each in correlation.ports if isinstance(each, EventPort))
    events, window = _kept(correlation, library.types, planned, ports)
    waits = has_timeout(correlation)
    key_bytes = KEY_BYTES
    if planned.form != "memory":
        key_bytes += STATE_BYTES * len(planned.needed_machine.names)
    elif events is None or waits:
        key_bytes = MEMORY_BYTES + (2 * ALARM_BYTES if waits else 0)
    return Cost(
        correlation.name,
        tuple(print_key(key) for key in correlation.clauses.by),
        ports,
        tuple(each.name for each in correlation.clauses.unless),
        key_bytes,
        _event_bytes(library, correlation),
        events,
        window,
        _growth(correlation, library.types, planned),
        waits,
    )


def _growth(correlation: Correlation, types: TypeSystem, planned: Plan) -> Growth:
    if planned.form != "memory" or not isinstance(correlation, FilterCorrelation):
        return "constant"
    chains = chain_facts(correlation, types)
    if chains is not None:
        return "constant" if chains.most_events is not None else "logarithmic"
    clauses = correlation.clauses
    ports = {each.name for each in correlation.ports if isinstance(each, EventPort)}
    forgets = ports <= {each.name for each in clauses.unless}
    only_waits = clauses.keep in (None, "none") and clauses.having is None and clauses.bind is None
    if forgets or (only_waits and all(map(_waits_for_clock, correlation.branches))):
        return "constant"
    return "linear"


def _kept(
    correlation: Correlation, types: TypeSystem, planned: Plan, ports: tuple[str, ...]
) -> tuple[int | None, Duration | None]:
    """How many events are kept at most, or for how long."""
    if not isinstance(correlation, FilterCorrelation):
        return 0, None
    if planned.form != "memory":
        # The event that a port stands for, in each branch.
        return len(ports) * len(correlation.branches), None
    chains = chain_facts(correlation, types)
    if chains is not None and chains.most_events is not None:
        return chains.most_events, None
    clauses = correlation.clauses
    void = {each.name for each in clauses.unless}
    if set(ports) <= void:
        # Each event makes the branches forget all others.
        return len(correlation.branches), None
    waits = [_waits_for_clock(branch) for branch in correlation.branches]
    if clauses.keep in (None, "none") and clauses.having is None and all(waits):
        longest = max(each.microseconds for each in waits if each is not None)
        return None, _shorter(clauses.within, Duration(longest))
    return None, clauses.within


def _waits_for_clock(branch: object) -> Duration | None:
    """D of `a ; timeout(D)`, which forgets everything D after the first `a`."""
    match branch:
        case Then((PortRef(), Timeout(after))):
            return after
        case _:
            return None


def _shorter(one: Duration | None, other: Duration) -> Duration:
    return other if one is None or other.microseconds < one.microseconds else one


def _event_bytes(library: CheckedLibrary, correlation: Correlation) -> int:
    """The bytes of an event, of the port whose events have the most attributes."""
    types = {port.type for port in correlation.ports if isinstance(port, EventPort)}
    below = {name for each in types for name in library.types.subtypes(each)}
    most = max((len(library.types.attributes(name)) for name in below), default=0)
    return EVENT_BYTES + ATTRIBUTE_BYTES * most
