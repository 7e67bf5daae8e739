"""Rules of one shape with a window, stepped together: first without times, then those that count.

In comes what `groups` has: the rules of one shape, whose windows may differ in length. Their
machine is run without times. What is active so is never less than the truth, for an event that has
left the window is not forgotten: where a rule would fire, it is a *candidate*. A candidate that has
last fired inside its window fires, for all that it has seen since is inside. For the others, the
few events of the key that lie in the window are taken through the machine once more, all rules
together: what is active then is the truth, for a rule that has not fired in between.

Where a window holds many events, or there are several branches, candidates are looked at one by
one: a rule's machine is taken, with times, through the moments at which its letters came, from
where it was last known to stand. Either way bits are put to what is true, so that what has aged is
paid for once. A rule goes through a moment once at most, and mostly never; a key that keeps too
many moments has all its rules brought to the present, and keeps none.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Sequence
from operator import itemgetter

from ensue.engine.counts import Counts
from ensue.engine.step.filters import QuickWindow
from ensue.engine.step.groups import Group, KeyState, Runner, bits_of
from ensue.engine.step.readings import GroupReading
from ensue.engine.step.rules import FastKey, Rule
from ensue.engine.step.sliced import Fires, changed_states
from ensue.engine.step.windows import ALWAYS, NEVER, HeldStarts, WindowSteps
from ensue.events.event import Event
from ensue.events.types import TypeSystem
from ensue.machine.model import Fire

MOST_MOMENTS = 1024
"""How many moments of a letter a key keeps before its rules are brought to the present."""

FEW_EVENTS = 32
"""Up to how many events in the window are taken once more through the machine of all rules."""

KNOWN_BEFORE_A_LOOK = 64
"""Of how many rules a key knows where they stood before it looks for what has aged."""

Moment = tuple[int, int]
"""The number of an event, which grows, and its time."""

Known = tuple[int, int, HeldStarts]
"""After which event a rule stood so, until which time that can matter, and the starts it had."""


class TimedKey(KeyState):
    """A key of a group with a window.

    `came` has when each letter came, and `known` where rules were known to stand, by the numbers of
    their bits. `recent` has the last events, as they were read: all that came after the time
    `recent_since`; `fired` who has fired, and when. `latest` is the time of the last event.
    """

    __slots__ = ("came", "fired", "known", "latest", "look_at", "recent", "recent_since")

    def __init__(self, key: FastKey, states: int, letters: int) -> None:
        super().__init__(key, states, letters)
        self.came: dict[int, list[Moment]] = {}
        self.known: dict[int, Known] = {}
        self.look_at = KNOWN_BEFORE_A_LOOK
        self.recent: deque[tuple[int, GroupReading]] = deque()
        self.recent_since = NEVER
        self.fired: deque[tuple[int, int]] = deque()
        self.latest = NEVER

    def forget(self, gone: Sequence[int]) -> None:
        super().forget(gone)
        for number in gone:
            self.known.pop(number, None)

    def shift(self, more: int) -> None:
        super().shift(more)
        self.known = {number + more: known for number, known in self.known.items()}
        # What was read is in the old bits: only `known` and `came` go on.
        self.recent.clear()
        self.fired.clear()
        self.recent_since = self.latest

    def drop_older(self, oldest: int) -> None:
        recent, fired = self.recent, self.fired
        while recent and recent[0][0] < oldest:
            recent.popleft()
        while fired and fired[0][0] < oldest:
            fired.popleft()


class TimedMember:
    """What a replay has to know of a rule: its machine, and by which letter each atom comes.

    `since` is the number after which the rule was there.
    """

    __slots__ = ("letters", "since", "steps")

    def __init__(
        self, steps: WindowSteps, letters: tuple[tuple[int, int], ...], since: int
    ) -> None:
        self.steps = steps
        self.letters = letters
        self.since = since


class WindowedGroup(Group):
    """Rules of one shape with a window."""

    is_timed = True

    keys: dict[FastKey, TimedKey]

    def __init__(self, first: Rule, types: TypeSystem, numbers: Iterator[int]) -> None:
        super().__init__(first, types, numbers)
        self._since: dict[int, int] = {}
        self._timed: dict[int, TimedMember] = {}
        self._longest = 0
        self._by_window: dict[int, int] = {}
        machine = self.sliced.machine
        clears = [each.clear for each in machine.transitions if isinstance(each.effect, Fire)]
        self._forgets_all = clears == [changed_states(machine)]

    # --- who belongs to it ----------------------------------------------------------------------

    def _forget(self, gone: Sequence[int]) -> None:
        super()._forget(gone)
        for number in gone:
            del self._since[number]

    def _make_room(self, more: int) -> None:
        super()._make_room(more)
        self._since = {number + more: since for number, since in self._since.items()}

    def _welcome(self, number: int) -> None:
        self._since[number] = next(self.numbers)

    def _look_at_members(self) -> None:
        self._timed = {}
        for number, rule in self.members.items():
            assert rule.steps is not None, "a rule of a group with a window is written out"
            letters = tuple((1 << a, at) for a, at in self.letters_by_atom(rule).items())
            self._timed[number] = TimedMember(rule.steps, letters, self._since[number])
        self._by_window = {}
        for number, each in self._timed.items():
            window = each.steps.window
            self._by_window[window] = self._by_window.get(window, 0) | self._bits[number]
        self._longest = max(self._by_window)

    def _place(self, state: KeyState, instance: Runner, number: int) -> None:
        assert isinstance(state, TimedKey)
        assert isinstance(instance, QuickWindow)
        starts = instance.starts
        dated = [start for start in starts if start not in (NEVER, ALWAYS)]
        state.known[number] = (self._since[number], max(dated, default=NEVER), starts)
        state.latest = max([state.latest, *dated])
        state.recent_since = max([state.recent_since, *dated])
        bit = self._bits[number]
        for at, start in enumerate(starts):
            if start != NEVER:
                state.held[at] |= bit

    def _stand(self, state: KeyState, instance: Runner, number: int) -> None:
        assert isinstance(state, TimedKey)
        assert isinstance(instance, QuickWindow)
        instance.starts = self._replayed(state, number, state.latest)[0]

    # --- reading --------------------------------------------------------------------------------

    def read(
        self,
        reading: GroupReading,
        key: FastKey | None,
        noted: tuple[int, Event],
        counts: Counts,
        made: list[Event],
    ) -> int:
        if key is None:
            return self._count_without_key(reading, counts)
        number, event = noted
        now = event.time
        state = self.keys.get(key)
        if state is None:
            if reading.is_nothing:
                return 0
            state = self._begin_at(key, now)
        oldest = now - self._longest
        state.latest = now
        recent = state.recent
        if len(recent) >= FEW_EVENTS:
            state.recent_since = recent.popleft()[0]
        recent.append((now, reading))
        is_crowded = self._note(state, reading, noted, oldest)
        candidates = reading.take(state.held, *reading.masks)
        times = 0
        if candidates:
            state.drop_older(oldest)
            if self._forgets_all and state.recent_since < oldest:
                fired = self._judged_together(state, candidates, number, now)
            else:
                fired = self._judged_singly(state, candidates, number, now)
            times = self._put_out(fired, state, event, made) if fired else 0
        if is_crowded:
            self._settle(state, number)
        return times

    def _note(
        self, state: TimedKey, reading: GroupReading, noted: tuple[int, Event], oldest: int
    ) -> bool:
        """Note when letters came; says whether there are too many moments."""
        last, came = state.last, state.came
        number, event = noted
        moment = (number, event.time)
        is_crowded = False
        for letter in reading.letters:
            last[letter] = noted
            moments = came.get(letter)
            if moments is None:
                came[letter] = [moment]
                continue
            moments.append(moment)
            if moments[0][1] < oldest:
                del moments[: bisect_left(moments, oldest, key=_time)]
            elif len(moments) > MOST_MOMENTS:
                is_crowded = True
        return is_crowded

    def _judged_together(
        self, state: TimedKey, candidates: int, number: int, now: int
    ) -> list[Fires]:
        """Which candidates fire, where all events of the window are there; with what counts."""
        held, sliced = state.held, self.sliced
        found: list[Fires] = []
        fired = 0
        for window, members in self._by_window.items():
            asked = candidates & members
            if not asked:
                continue
            oldest = now - window
            sure = 0
            for time, who in state.fired:
                if time >= oldest:
                    sure |= asked & who
            if asked != sure:
                again = [0] * len(held)
                fires = 0
                for time, reading in state.recent:
                    if time >= oldest:
                        fires = reading.take(again, *reading.masks)
                others = ~members
                for at, mask in enumerate(again):
                    held[at] &= mask | others
                fires &= asked ^ sure
                if fires:
                    found += [(0, what, who) for who, what in sliced.split(0, fires, again)]
                    fired |= fires
            if sure:
                found += [(0, what, who) for who, what in sliced.split(0, sure, held)]
                fired |= sure
        if fired:
            others = ~fired
            for at, mask in enumerate(held):
                held[at] = mask & others
            state.fired.append((now, fired))
            for each in bits_of(fired):
                state.known[each] = (number, now, self._timed[each].steps.first)
            if len(state.known) > state.look_at:
                self._drop_aged(state, now)
        return found

    def _judged_singly(
        self, state: TimedKey, candidates: int, number: int, now: int
    ) -> list[Fires]:
        """Which candidates fire, each looked at by itself; with what counts."""
        fired: dict[tuple[int, int], int] = {}
        who = 0
        for each, fires in self._bring(state, candidates, number, now):
            bit = self._bits[each]
            who |= bit
            for what in fires:
                fired[what] = fired.get(what, 0) | bit
        if who:
            state.fired.append((now, who))
        return [(*what, fired[what]) for what in sorted(fired)]

    def _bring(
        self, state: TimedKey, who: int, number: int, now: int
    ) -> list[tuple[int, Sequence[tuple[int, int]]]]:
        """Find out where rules stand, put their bits there, and say which of them fire."""
        held, known = state.held, state.known
        live = [0] * len(held)
        found: list[tuple[int, Sequence[tuple[int, int]]]] = []
        for each in bits_of(who):
            starts, fires = self._replayed(state, each, now)
            known[each] = (number, now, starts)
            if fires:
                found.append((each, fires))
            bit, oldest = self._bits[each], now - self._timed[each].steps.window
            for at, start in enumerate(starts):
                if start >= oldest:
                    live[at] |= bit
        others = ~who
        state.held[:] = [mask & others | alive for mask, alive in zip(held, live, strict=True)]
        if len(known) > state.look_at:
            self._drop_aged(state, now)
        return found

    def _replayed(
        self, state: TimedKey, number: int, now: int
    ) -> tuple[HeldStarts, Sequence[tuple[int, int]]]:
        """Where a rule stands, exactly, and what fires at the last event that it has read."""
        member = self._timed[number]
        steps, since = member.steps, member.since
        window = steps.window
        oldest = now - window
        starts = steps.first
        known = state.known.get(number)
        if known is not None and known[1] >= oldest:
            since, _, starts = known
        elif known is not None:
            since = known[0]
        atoms: dict[Moment, int] = {}
        for atom, letter in member.letters:
            for moment in reversed(state.came.get(letter, ())):
                if moment[0] <= since or moment[1] < oldest:
                    break
                atoms[moment] = atoms.get(moment, 0) | atom
        fires = None
        held = steps.held(starts)
        for moment in sorted(atoms):
            time = moment[1]
            fires = steps.take(atoms[moment])(held, (0, 0), time, time - window)
        return tuple(held[steps.place_count :]), fires or ()

    def _settle(self, state: TimedKey, number: int) -> None:
        """Bring every rule to the present, so that no earlier moment is needed."""
        started = 0
        for mask in state.held:
            started |= mask
        state.known = {
            each: known for each, known in state.known.items() if started >> each - 1 & 1
        }
        self._bring(state, started, number, state.latest)
        state.came.clear()

    # --- keys -----------------------------------------------------------------------------------

    def _begin(self, key: FastKey) -> TimedKey:
        state = self.keys[key] = TimedKey(key, len(self.sliced.held), len(self._letters))
        return state

    def _drop_aged(self, state: TimedKey, now: int) -> None:
        oldest = now - self._longest
        state.known = {each: known for each, known in state.known.items() if known[1] >= oldest}
        state.look_at = max(KNOWN_BEFORE_A_LOOK, 2 * len(state.known))

    def _is_idle(self, state: KeyState, now: int) -> bool:
        assert isinstance(state, TimedKey)
        return not any(state.held) or state.latest < now - self._longest


_time = itemgetter(1)


def group_for(first: Rule, types: TypeSystem, numbers: Iterator[int]) -> Group:
    """An empty group for rules of the shape of this one."""
    return (Group if first.steps is None else WindowedGroup)(first, types, numbers)
