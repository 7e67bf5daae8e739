"""Rules of one shape with a window, stepped together: first without times, then those that count.

In comes what `groups` has: the rules of one shape, whose windows may differ in length. Their
machine is run without times. What is active so is never less than the truth, for an event that has
left the window is not forgotten: where a rule would fire, it is a *candidate*. Only then is it
found out where it really stands: its machine is taken, with times, through the moments at which its
letters came, from where it was last known to stand. Out comes whether it fires, with which labels
and places; and its bits are put to what is true, so that what has aged is paid for once.

So each key keeps, for each letter, when it came in the window; each moment is there once, however
many rules read it. A rule goes through a moment once at most, and mostly never. A key that keeps
too many moments has all its rules brought to the present, and keeps none.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from ensue.engine.counts import Counts
from ensue.engine.step.filters import QuickWindow
from ensue.engine.step.groups import Group, KeyState, Runner, bits_of
from ensue.engine.step.readings import GroupReading
from ensue.engine.step.rules import FastKey, Rule
from ensue.engine.step.windows import ALWAYS, NEVER, HeldStarts, WindowSteps
from ensue.events.event import Event
from ensue.events.types import TypeSystem

MOST_MOMENTS = 1024
"""How many moments of a letter a key keeps before its rules are brought to the present."""

KNOWN_BEFORE_A_LOOK = 64
"""Of how many rules a key knows where they stood before it looks for what has aged."""

Moment = tuple[int, int]
"""The number of an event, which grows, and its time."""

Known = tuple[int, int, HeldStarts]
"""After which event a rule stood so, until which time that can matter, and the starts it had."""


class TimedKey(KeyState):
    """A key of a group with a window: when each letter came, and where rules were known to stand.

    `latest` is the time of the last event that was read.
    """

    __slots__ = ("came", "known", "latest", "look_at")

    def __init__(self, key: FastKey, states: int, letters: int) -> None:
        super().__init__(key, states, letters)
        self.came: list[deque[Moment]] = [deque() for _ in range(letters)]
        self.known: dict[int, Known] = {}
        self.latest = NEVER
        self.look_at = KNOWN_BEFORE_A_LOOK

    def forget(self, gone: Sequence[int]) -> None:
        super().forget(gone)
        for number in gone:
            self.known.pop(number, None)

    def shift(self, more: int) -> None:
        super().shift(more)
        self.known = {number + more: known for number, known in self.known.items()}


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

    keys: dict[FastKey, TimedKey]  # type: ignore[assignment]

    def __init__(self, first: Rule, types: TypeSystem, numbers: Iterator[int]) -> None:
        super().__init__(first, types, numbers)
        self._since: dict[int, int] = {}
        self._timed: dict[int, TimedMember] = {}
        self._longest = 0

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
        self._longest = max(each.steps.window for each in self._timed.values())
        for state in self.keys.values():
            state.came += [deque() for _ in range(len(state.last) - len(state.came))]

    def _place(self, state: KeyState, instance: Runner, number: int) -> None:
        assert isinstance(state, TimedKey)
        assert isinstance(instance, QuickWindow)
        starts = instance.starts
        dated = [start for start in starts if start not in (NEVER, ALWAYS)]
        state.known[number] = (self._since[number], max(dated, default=NEVER), starts)
        state.latest = max([state.latest, *dated])
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
        event: Event,
        counts: Counts,
        made: list[Event],
    ) -> int:
        if key is None:
            return self._count_without_key(reading, counts)
        now = event.time
        state = self.keys.get(key)
        if state is None:
            if reading.is_nothing:
                return 0
            state = self._begin_at(key, now)
        number = next(self.numbers)
        noted, moment, oldest = (number, event), (number, now), now - self._longest
        last, came = state.last, state.came
        state.latest = now
        is_crowded = False
        for letter in reading.letters:
            last[letter] = noted
            moments = came[letter]
            moments.append(moment)
            while moments[0][1] < oldest:
                moments.popleft()
            if len(moments) > MOST_MOMENTS:
                is_crowded = True
        candidates = reading.take(state.held, *reading.masks)
        times = self._decide(state, candidates, number, event, made) if candidates else 0
        if is_crowded:
            self._settle(state, number)
        return times

    def _decide(
        self, state: TimedKey, candidates: int, number: int, event: Event, made: list[Event]
    ) -> int:
        """Find out which candidates fire, and let them."""
        fired: dict[tuple[int, int], int] = {}
        for each, fires in self._bring(state, candidates, number, event.time):
            for what in fires:
                fired[what] = fired.get(what, 0) | self._bits[each]
        if not fired:
            return 0
        found = [(*what, fired[what]) for what in sorted(fired)]
        return self._put_out(found, state, event, made)

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
            for moment in reversed(state.came[letter]):
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
        for moments in state.came:
            moments.clear()

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


def group_for(first: Rule, types: TypeSystem, numbers: Iterator[int]) -> Group:
    """An empty group for rules of the shape of this one."""
    return (Group if first.steps is None else WindowedGroup)(first, types, numbers)
