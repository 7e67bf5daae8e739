"""Parts of a machine at a site, and which ports a machine waits for.

`WaitedFor` tells of an instance which ports any of its active states waits for: an event of other
ports changes nothing. `PartRun` runs the subexpressions of an `ecl` that run at a site
(`planning.ecl_needs`), under one key, so that of the events which wait there only those are kept
that a state waits for. The part begins anew where the home says that the rule has; what has been
read since is read once more, for it may have been sent already.
"""

from __future__ import annotations

from collections.abc import Iterable

from ensue.engine.core.instances.rows import SharedTables
from ensue.engine.core.instances.rules import Rule, Runner
from ensue.engine.core.saved_rules import active_states
from ensue.engine.instance import Instance
from ensue.engine.ports import Reading
from ensue.events.types import TypeSystem
from ensue.federation.placement.places import FIRST, Numbers, Place, Since
from ensue.lang.syntax import EclCorrelation
from ensue.machine.model import Machine, PortAtom

MOST_READ = 10_000
"""How many readings since the last reset a part remembers. With more, it waits for a later one."""
MOST_SETS = 1_000
"""Of how many sets of active states it is kept which ports they wait for."""


class WaitedFor:
    """Which ports any active state of a machine waits for."""

    def __init__(self, machine: Machine | None) -> None:
        self._machine = machine
        self._known: dict[frozenset[int], frozenset[str] | None] = {}

    def ports(self, instance: Instance) -> frozenset[str] | None:
        """None for every port, also where that cannot be told."""
        machine = self._machine
        if machine is None or not isinstance(instance, Runner):
            return None
        active = frozenset(active_states(instance, None))
        if active not in self._known:
            if len(self._known) >= MOST_SETS:
                self._known.clear()
            self._known[active] = _ports(machine, active)
        return self._known[active]


def _ports(machine: Machine, active: frozenset[int]) -> frozenset[str] | None:
    found: set[str] = set()
    for each in machine.transitions:
        if isinstance(each.input, int) and not any(map(active.isdisjoint, each.enabling)):
            atom = machine.atoms[each.input]
            if not isinstance(atom, PortAtom):
                return None
            found.add(atom.name)
    return frozenset(found)


class PartMachine:
    """The subexpressions that run at a site, for all keys."""

    def __init__(self, part: EclCorrelation, types: TypeSystem) -> None:
        self._rule = Rule(part, types, SharedTables(), Numbers())
        self._waited_for = WaitedFor(self._rule.machine)

    def begin(self) -> Runner:
        return self._rule.starter((), "", 0)

    def takes(self, instance: Runner, ports: frozenset[str]) -> bool:
        """Whether any state waits for an event of these ports, which is read now."""
        waited_for = self._waited_for.ports(instance)
        instance.read(Reading(0, ports))
        return waited_for is None or not waited_for.isdisjoint(ports)


class PartRun:
    """The part of one key. `read` has all readings from the place `floor` on."""

    def __init__(self, machine: PartMachine) -> None:
        self._machine = machine
        self._since: Since = (FIRST, 0)
        self.floor = FIRST
        self.read: list[tuple[Place, frozenset[str]]] = []
        self._instance = machine.begin()

    def takes(self, place: Place, ports: frozenset[str]) -> bool:
        """Whether an event, which is read now, may be of use at the home."""
        if len(self.read) >= MOST_READ:
            self.floor, self.read = place, []
        self.read.append((place, ports))
        return self._machine.takes(self._instance, ports) or (self.floor, 0) > self._since

    def reset(self, since: Since) -> None:
        """The rule has begun anew at a place."""
        self._since = since
        self._instance = self._machine.begin()
        self.read = [each for each in self.read if (each[0], 0) >= since]
        for _, ports in self.read:
            self._machine.takes(self._instance, ports)

    def restore(
        self, floor: Place, read: Iterable[tuple[Place, frozenset[str]]], since: Since
    ) -> None:
        self.floor, self.read = floor, list(read)
        self.reset(since)
