"""A home: a rule where it triggers, fed with what outposts send.

In come readings in the order of their places; out come outputs with theirs. A rule that no site
holds events back for runs as on one machine. For the others, each key has a *gate*, open while what
the rule needs is matched at every such site, over the events that have come. While it is closed no
branch can match, so readings only gather behind it, in their order, and readings that a site lets
go late take their places among them. When it opens, the rule reads them all; only the last of them
can trigger.

A rule whose only branch has put something out has forgotten what came before, and so has an `ecl`
that stands as at its start. Where a site would therefore hold events back again, it is told so by a
reset. Ports that a rule without gates has no use for at the moment sleep (`sleeping`).

A clock that jumps can make timers fire without an end in sight. So a home goes on in steps, and
stops when the readings that it was given are used up; it goes on from there when it is given more.
"""

from __future__ import annotations

import heapq
import sys
from bisect import insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import NamedTuple, cast, get_args

from ensue.engine.core.instances.keys import fast_key, whole_key
from ensue.engine.core.instances.rows import SharedTables
from ensue.engine.core.instances.rules import Rule, Runner, SavedForm
from ensue.engine.core.saved_rules import (
    damaged,
    restore_machine,
    restore_rule,
    save_machine,
    save_rule,
)
from ensue.engine.instance import Instance
from ensue.engine.outputs import Outputs
from ensue.engine.ports import Key, Ports, Reading, key_of
from ensue.engine.reference import instance_starter
from ensue.engine.stream import InstanceStart
from ensue.errors import UsageError
from ensue.events.event import Event
from ensue.events.types import TypeSystem
from ensue.federation.placement.places import (
    Numbers,
    Place,
    Since,
    last_timers_before,
    output_place,
    timer_place,
)
from ensue.federation.placement.planning.placement import PlacedRule
from ensue.federation.placement.running.gates import KeyGate
from ensue.federation.placement.running.outposts import (
    FEWEST_TO_SWEEP,
    Following,
    key_name,
)
from ensue.federation.placement.running.sleeping import KeySleep, SendHold, Sleepers
from ensue.federation.placement.snapshots.saved import SavedArrived, SavedHome
from ensue.lang.syntax import EclCorrelation
from ensue.machine.plan import Form

PlacedOutputs = list[tuple[Place, Event]]
SendReset = Callable[[str, str, Since], None]
"""Tells a site, under the name of a key, from where on matches count."""


class HomeWords(NamedTuple):
    """What a home tells other sites."""

    reset: SendReset
    hold: SendHold


@dataclass
class StepBudget:
    """How many readings and firings may still be done now."""

    left: int = sys.maxsize


@dataclass(frozen=True, slots=True)
class Arrived:
    """A reading for a rule: where it comes from, and the place of the event that let it go."""

    site: str
    place: Place
    releases: Place
    ports: frozenset[str]
    event: Event


@dataclass
class HomeKey:
    """One key of a rule at its home."""

    name: str
    instance: Instance
    gate: KeyGate | None
    fired: tuple[int, int] = (0, 0)
    sleep: KeySleep = field(default_factory=KeySleep)

    def is_idle(self, now: int) -> bool:
        """Whether it stands as at its start, and can count no output of this moment."""
        instance = self.instance
        if not isinstance(instance, Runner) or not instance.is_idle(now):
            return False
        if self.sleep.is_any:
            return False
        last_outputs = instance.made_outputs
        return (last_outputs is None or last_outputs.time is None or last_outputs.time < now) and (
            self.gate is None or self.gate.is_idle(now)
        )


class Home:
    """One rule at the site where it triggers."""

    def __init__(
        self, rule: PlacedRule, types: TypeSystem, words: HomeWords, engine: str = "step"
    ) -> None:
        self.rule = rule
        self._ports = Ports(rule.correlation, types)
        self._types = types
        self._tables = None if engine == "reference" else self._made_tables(None)
        self._start: InstanceStart = (
            instance_starter(rule.correlation) if self._tables is None else self._tables.starter
        )
        self._words = words
        self.sleepers = self._made_sleepers()
        self._keys: dict[Key, HomeKey] = {}
        self._alarms: list[tuple[int, int, int, HomeKey]] = []
        self._arrived: list[tuple[Place, int, Place, Arrived]] = []
        self._count = Numbers()
        self._window = rule.correlation.clauses.within
        self._voids = frozenset(port.name for port in rule.correlation.clauses.unless)
        self._last: tuple[Place | None, int] = (None, 0)
        self._sweep_at = FEWEST_TO_SWEEP

    @property
    def is_waiting(self) -> bool:
        """Whether anything may happen here without another reading: one waits, or a timer does."""
        return bool(self._arrived or self._alarms)

    @property
    def behind_gates(self) -> int:
        """How many readings wait behind gates."""
        return sum(len(state.gate.waiting) for state in self._keys.values() if state.gate)

    def arrive(self, arrived: Arrived) -> None:
        heapq.heappush(self._arrived, (arrived.releases, next(self._count), arrived.place, arrived))

    def advance(self, mark: Place, steps: StepBudget) -> tuple[PlacedOutputs, Place]:
        """Read all that lies before a mark, behind which nothing more comes, while steps are left;
        and say before which place everything is read."""
        outputs: PlacedOutputs = []
        while True:
            limit = self.sleepers.limit(mark)
            reading = self._arrived[0][0] if self._arrived else None
            alarm = self._next_alarm()
            is_alarm = alarm is not None and (reading is None or alarm < reading)
            following = alarm if is_alarm else reading
            if following is None or following >= limit:
                return outputs, limit
            if steps.left <= 0:
                return outputs, following
            steps.left -= 1
            if is_alarm:
                outputs += self._fire(limit if reading is None else min(limit, reading))
            else:
                outputs += self._read(heapq.heappop(self._arrived)[3])

    # --- readings -------------------------------------------------------------------------------

    def _read(self, arrived: Arrived) -> PlacedOutputs:
        event = arrived.event
        key = key_of(event, self._ports.key_names[next(iter(arrived.ports))])
        assert key is not None, "what has no key is read nowhere"
        reading = Reading(event.time, arrived.ports, event)
        state = self._keys.get(key)
        outputs: list[Event] = []
        if state is None:
            state = self._begin(key, reading)
            outputs += state.instance.start(reading)
        state.instance.last_read = next(self._count)
        if state.gate is None:
            self.sleepers.note(state.sleep, state.instance, arrived.site, reading.ports)
            outputs += state.instance.read(reading)
            self.sleepers.tell(state.sleep, state.name, state.instance, arrived.place)
        else:
            outputs += self._read_at_gate(state, state.gate, arrived, reading)
        self._arm(state)
        return self._placed(arrived.place, outputs)

    def _begin(self, key: Key, reading: Reading) -> HomeKey:
        clauses = self.rule.correlation.clauses
        outputs = Outputs(self.rule.correlation.name, key, bool(clauses.by), self._types)
        self._sweep(reading.time)
        instance = self._start(self._ports.timers, outputs, reading.time)
        state = self._keys[key] = HomeKey(key_name(key), instance, self._gate())
        return state

    def _made_sleepers(self) -> Sleepers:
        machine = None if self._tables is None else self._tables.machine
        return Sleepers(self.rule.sleeps, machine, self._words.hold)

    def begun_anew(self, site: str) -> None:
        """Another site has begun anew, and holds nothing back because it was told to."""
        self.sleepers.forget(site, [state.sleep for state in self._keys.values()])

    def _made_tables(self, form: SavedForm | None) -> Rule:
        return Rule(self.rule.correlation, self._types, SharedTables(), Numbers(), form)

    def _gate(self) -> KeyGate | None:
        followings = {
            site: Following.of(part, self.rule)
            for site, part in self.rule.parts.items()
            if part.needed is not None
        }
        return KeyGate(followings) if followings else None

    def _read_at_gate(
        self, state: HomeKey, gate: KeyGate, arrived: Arrived, reading: Reading
    ) -> list[Event]:
        following = gate.followings.get(arrived.site)
        if following is not None:
            following.starts.take(arrived.place, reading.ports)
        insort(gate.waiting, (arrived.place, reading), key=itemgetter(0))
        outputs: list[Event] = []
        # What was let go together is read together: the last of it says whether the gate opens.
        if arrived.place == arrived.releases and gate.is_open(reading.time):
            outputs = self._let_through(state.instance, gate)
            self._reset_if_over(state, gate, arrived.place, bool(outputs))
        if reading.ports & self._voids:
            if following is not None:
                following.starts.forget_before(arrived.place)
            self._reset(state, gate, (arrived.place, 0), reading.time)
        if gate.waiting and self._window is not None:
            oldest = reading.time - self._window.microseconds
            gate.waiting = [each for each in gate.waiting if each[1].time >= oldest]
        return outputs

    def _let_through(self, instance: Instance, gate: KeyGate) -> list[Event]:
        outputs: list[Event] = []
        for place, reading in gate.waiting:
            assert not outputs, "nothing can trigger before its gate opens"
            while (due := instance.next_due()) is not None and (
                timer_place(due, self.rule.number, instance.last_read, 0) < place
            ):
                early = instance.fire(due)
                assert not early, "no timer can trigger before its gate opens"
            outputs += instance.read(reading)
        gate.waiting.clear()
        return outputs

    # --- snapshots ------------------------------------------------------------------------------

    def saved(self) -> SavedHome:
        tables = self._tables
        if tables is None:
            raise UsageError("only a site that runs on tables can be saved")
        tables.instances = {
            fast_key(key): cast(Runner, state.instance) for key, state in self._keys.items()
        }
        rule = save_rule(tables, None, None)
        tables.instances = {}
        gates = [
            None if state.gate is None else state.gate.saved() for state in self._keys.values()
        ]
        arrived = [
            SavedArrived(each.site, each.place, releases, number, each.ports, each.event)
            for releases, number, _, each in self._arrived
        ]
        return SavedHome(
            machine=None if tables.machine is None else save_machine(tables.machine),
            rule=rule,
            gates=gates,
            sleeps=[state.sleep.saved() for state in self._keys.values()],
            unanswered=self.sleepers.unanswered,
            patience=self.sleepers.patience,
            fired=[state.fired for state in self._keys.values()],
            arrived=arrived,
            last=self._last,
            count=self._count.following,
        )

    def restore(self, saved: SavedHome) -> None:
        """Raises `SnapshotError` if it is of another rule, or damaged."""
        rule = self.rule.correlation
        machine = None if saved.machine is None else restore_machine(saved.machine, rule)
        if saved.rule.form not in get_args(Form) or (machine is None) != (
            saved.rule.form == "memory"
        ):
            raise damaged(f"`{self.rule.name}` has a form that there is none of")
        form = cast(Form, saved.rule.form)
        tables = self._tables = self._made_tables((form, machine))
        self._start = tables.starter
        self.sleepers = self._made_sleepers()
        self.sleepers.unanswered.update(saved.unanswered)
        self.sleepers.patience.update(saved.patience)
        restore_rule(tables, saved.rule)
        self._count = Numbers(saved.count)
        self._last = saved.last
        instances, tables.instances = tables.instances, {}
        if not len(instances) == len(saved.gates) == len(saved.sleeps) == len(saved.fired):
            raise damaged(f"`{self.rule.name}` has other keys")
        for (fast, instance), gate, sleep, fired in zip(
            instances.items(), saved.gates, saved.sleeps, saved.fired, strict=True
        ):
            key = whole_key(fast)
            state = HomeKey(key_name(key), instance, self._gate(), fired, KeySleep.restored(sleep))
            if (state.gate is None) != (gate is None):
                raise damaged(f"`{self.rule.name}` is placed in another way")
            if state.gate is not None and gate is not None:
                state.gate.restore(gate)
            self._keys[key] = state
            self.sleepers.count(state.sleep)
            self._arm(state)
        for each in saved.arrived:
            arrived = Arrived(each.site, each.place, each.releases, each.ports, each.event)
            entry = (each.releases, each.number, each.place, arrived)
            heapq.heappush(self._arrived, entry)

    # --- what was forgotten ---------------------------------------------------------------------

    def _reset_if_over(
        self, state: HomeKey, gate: KeyGate, place: Place, has_put_out: bool
    ) -> None:
        """Reset where nothing counts any more of what was read up to a place."""
        rule, instance = self.rule, state.instance
        if rule.resets and has_put_out:
            keeps_last = rule.correlation.clauses.keep == "last"
            self._reset(state, gate, (place, 0 if keeps_last else 1), place[0])
        elif (
            isinstance(rule.correlation, EclCorrelation)
            and isinstance(instance, Runner)
            and instance.is_idle(place[0])
        ):
            self._reset(state, gate, (place, 1), place[0])

    def _reset(self, state: HomeKey, gate: KeyGate, since: Since, now: int) -> None:
        for site, following in gate.followings.items():
            was_matched = following.is_matched(now)
            following.reset(since)
            if was_matched and not following.is_matched(now):
                self._words.reset(site, state.name, since)

    # --- the clock ------------------------------------------------------------------------------

    def _due(self, state: HomeKey) -> int | None:
        """When a key has to be told of the time next. Behind a closed gate no timer matters."""
        due = state.instance.next_due()
        if due is None or state.gate is None:
            return due
        end = state.gate.open_until()
        is_open = state.gate.is_open(due) and (end is None or due <= end)
        return due if is_open else None

    def _arm(self, state: HomeKey) -> None:
        due = self._due(state)
        if due is not None and due != state.instance.armed_for:
            heapq.heappush(self._alarms, (due, state.instance.last_read, next(self._count), state))
        state.instance.armed_for = due

    def _next_alarm(self) -> Place | None:
        while self._alarms:
            due, number, _, state = self._alarms[0]
            if due == self._due(state):
                last_read = state.instance.last_read
                if number != last_read:
                    # It has read since the alarm was set, so that others go before it.
                    alarm = (due, last_read, next(self._count), state)
                    heapq.heapreplace(self._alarms, alarm)
                    continue
                firing = state.fired[1] + 1 if state.fired[0] == due else 0
                return timer_place(due, self.rule.number, number, firing)
            heapq.heappop(self._alarms)
        return None

    def _fire(self, before: Place) -> PlacedOutputs:
        """Fire the first alarm, or pass over firings that change nothing: no reading comes before
        a place."""
        place = self._next_alarm()
        assert place is not None
        due, _, _, state = heapq.heappop(self._alarms)
        state.instance.armed_for = None
        # What a closed gate has held back may still be read at an earlier time.
        if state.gate is None and state.instance.skip_idle(last_timers_before(before)):
            self._arm(state)
            return []
        state.fired = (due, place[4])
        outputs = state.instance.fire(due)
        if state.gate is not None:
            self._reset_if_over(state, state.gate, place, bool(outputs))
        self.sleepers.tell(state.sleep, state.name, state.instance, place)
        self._arm(state)
        return self._placed(place, outputs)

    def _sweep(self, now: int) -> None:
        """Drop the keys that stand as before they started."""
        if len(self._keys) < self._sweep_at:
            return
        if self.rule.forgets_idle_keys:
            self._keys = {key: state for key, state in self._keys.items() if not state.is_idle(now)}
        self._sweep_at = max(FEWEST_TO_SWEEP, 2 * len(self._keys))

    def _placed(self, cause: Place, outputs: Sequence[Event]) -> PlacedOutputs:
        """Outputs with their places; what is read under several keys counts on."""
        last, already = self._last
        first = already if last == cause else 0
        self._last = (cause, first + len(outputs))
        return [
            (output_place(cause, self.rule.number, first + number), output)
            for number, output in enumerate(outputs)
        ]
