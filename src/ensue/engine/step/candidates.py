"""Rules with a window, stepped together: first without times, then those that count.

In comes what `sliced_groups` has: rules of a few shapes, whose windows may differ in length. Their
machines are run without times. What is active so is never less than the truth, for an event that
has left the window is not forgotten: where a rule would fire, it is a *candidate*. A candidate that
has last fired inside its window fires, for all that it has seen since is inside. For the others,
the few events of the key that lie in the window are taken through the machines once more, all rules
together: what is active then is the truth, for a rule that has not fired in between.

Where a window holds many events, or there are several branches, candidates are looked at one by
one: a rule's machine is taken, with times, through the moments at which its letters came, from
where it was last known to stand. Either way bits are put to what is true, so that what has aged is
paid for once. A rule goes through a moment once at most, and mostly never; a key that keeps too
many moments has all its rules brought to the present, and keeps none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ensue.engine.step.boards import Board, KeyState, Moment
from ensue.engine.step.filters import QuickWindow
from ensue.engine.step.groups import Runner
from ensue.engine.step.sliced import Fires, What, bits_of, changed_states
from ensue.engine.step.sliced_groups import SlicedGroup
from ensue.engine.step.windows import ALWAYS, NEVER, HeldStarts, WindowSteps
from ensue.events.types import TypeSystem
from ensue.machine.model import Fire

FIRED_KEPT = 32
"""How many times at which some rules of a group have fired a key keeps."""

KNOWN_BEFORE_A_LOOK = 64
"""Of how many rules a key knows where they stood before it looks for what has aged."""

Known = tuple[int, int, HeldStarts]
"""After which event a rule stood so, until which time that can matter, and the starts it had."""


class TimedList(list[int]):
    """What a group with a window holds under a key: an integer for each state, and more.

    `known` has where rules were known to stand, by the numbers of their bits, and `fired` when some
    have fired, and who: all that did after the time `fired_since`.
    """

    __slots__ = ("fired", "fired_since", "known", "look_at")

    def __init__(self, states: int) -> None:
        super().__init__([0] * states)
        self.known: dict[int, Known] = {}
        self.look_at = KNOWN_BEFORE_A_LOOK
        self.fired: list[tuple[int, int]] = []
        self.fired_since = NEVER

    def note_fired(self, now: int, who: int) -> None:
        if len(self.fired) >= FIRED_KEPT:
            self.fired_since = self.fired.pop(0)[0]
        self.fired.append((now, who))


class TimedMember:
    """What a replay has to know of a rule: its machine, and by which letter each atom comes.

    `slots` says where its states are held, in the order of its starts, and `since` is the number
    after which the rule was there.
    """

    __slots__ = ("letters", "since", "slots", "steps")

    def __init__(
        self,
        steps: WindowSteps,
        slots: list[int],
        letters: tuple[tuple[int, int], ...],
        since: int,
    ) -> None:
        self.steps = steps
        self.slots = slots
        self.letters = letters
        self.since = since


class WindowedGroup(SlicedGroup):
    """Rules with a window. Of those in `_together` a rule has one branch, which forgets all."""

    is_timed = True

    def __init__(self, board: Board, types: TypeSystem, numbers: Iterator[int]) -> None:
        super().__init__(board, types, numbers)
        self._since: dict[int, int] = {}
        self._timed: dict[int, TimedMember] = {}
        self._by_window: dict[int, int] = {}
        self._together = 0

    def new_list(self, state: KeyState) -> TimedList:  # noqa: ARG002
        return TimedList(self.sliced.size)

    # --- who belongs to it ----------------------------------------------------------------------

    def _forget(self, gone: Sequence[int]) -> None:
        super()._forget(gone)
        for number in gone:
            del self._since[number]
        for _, _, held in self.board.held_by(self):
            if isinstance(held, TimedList):
                for number in gone:
                    held.known.pop(number, None)

    def _make_room(self, more: int) -> None:
        super()._make_room(more)
        self._since = {number + more: since for number, since in self._since.items()}
        for _, state, held in self.board.held_by(self):
            if isinstance(held, TimedList):
                held.known = {number + more: known for number, known in held.known.items()}
                # What was read is in the old bits: only what is known goes on, and what came.
                held.fired.clear()
            state.forget_recent()

    def _welcome(self, number: int) -> None:
        self._since[number] = next(self.numbers)

    def _look_at_members(self) -> None:
        super()._look_at_members()
        self._timed = {}
        for number, rule in self.members.items():
            assert rule.steps is not None, "a rule of a group with a window is written out"
            letters = tuple((1 << a, at) for a, at in self.letters_by_atom(rule).items())
            self._timed[number] = TimedMember(
                rule.steps, self._slots(number), letters, self._since[number]
            )
        self._together = 0
        for structure, mask in zip(self.sliced.structures, self.sliced.masks, strict=True):
            transitions = structure.machine.transitions
            clears = [each.clear for each in transitions if isinstance(each.effect, Fire)]
            if clears == [changed_states(structure.machine)]:
                self._together |= mask
        self._by_window = {}
        for number, each in self._timed.items():
            window = each.steps.window
            self._by_window[window] = self._by_window.get(window, 0) | self._bits[number]
        self.longest = max(self._by_window)
        self._by_window = {window: who & self._together for window, who in self._by_window.items()}

    def _place(self, state: KeyState, held: list[int], instance: Runner, number: int) -> None:
        assert isinstance(held, TimedList)
        assert isinstance(instance, QuickWindow)
        starts = instance.starts
        dated = [start for start in starts if start not in (NEVER, ALWAYS)]
        held.known[number] = (self._since[number], max(dated, default=NEVER), starts)
        state.latest = max([state.latest, *dated])
        state.recent_since = max([state.recent_since, *dated])
        bit = self._bits[number]
        for slot, start in zip(self._slots(number), starts, strict=True):
            if start != NEVER:
                held[slot] |= bit

    def _slots(self, number: int) -> list[int]:
        """Where the states of a rule are held, in the order of its starts."""
        structure = self._structure(number)
        return [structure.slots[state] for state in structure.held]

    def _stand(self, state: KeyState, held: list[int], instance: Runner, number: int) -> None:
        assert isinstance(held, TimedList)
        assert isinstance(instance, QuickWindow)
        instance.starts = self._replayed(state, held, number, state.latest)[0]

    # --- reading --------------------------------------------------------------------------------

    def judged(
        self, fired: Any, state: KeyState, held: list[int], number: int, now: int
    ) -> Sequence[Fires]:
        """Which candidates fire, and how."""
        assert isinstance(held, TimedList)
        if held.fired and held.fired[0][0] < now - self.longest:
            held.fired = [each for each in held.fired if each[0] >= now - self.longest]
        found: list[Fires] = []
        if fired & self._together:
            found += self._judged_together(state, held, fired & self._together, number, now)
        if fired & ~self._together:
            found += self._judged_singly(state, held, fired & ~self._together, number, now)
        return found

    def _judged_together(
        self, state: KeyState, held: TimedList, candidates: int, number: int, now: int
    ) -> list[Fires]:
        """Which candidates fire, of rules with one branch; with what counts."""
        sliced = self.sliced
        # What came at the time after which all is there may be missing.
        has_all = max(state.recent_since, held.fired_since) < now - self.longest
        found: list[Fires] = []
        fired = singly = 0
        for window, members in self._by_window.items():
            asked = candidates & members
            if not asked:
                continue
            oldest = now - window
            sure = 0
            for time, who in held.fired:
                if time >= oldest:
                    sure |= asked & who
            unsure = asked ^ sure
            if not has_all:
                singly |= unsure
            elif unsure:
                again = [0] * len(held)
                fires = 0
                for time, reading in zip(state.recent_times, state.recent, strict=True):
                    part = reading.timed.get(self) if time >= oldest else None
                    if part is not None:
                        fires = part.take(again, *part.masks)
                others = ~members
                for at, mask in enumerate(again):
                    held[at] &= mask | others
                fires &= unsure
                if fires:
                    found += sliced.split(0, fires, again)
                    fired |= fires
            if sure:
                found += sliced.split(0, sure, held)
                fired |= sure
        if fired:
            others = ~fired
            for at, mask in enumerate(held):
                held[at] = mask & others
            held.note_fired(now, fired)
            for each in bits_of(fired):
                held.known[each] = (number, now, self._timed[each].steps.first)
            if len(held.known) > held.look_at:
                self._drop_aged(held, now)
        if singly:
            found += self._judged_singly(state, held, singly, number, now)
        return found

    def _judged_singly(
        self, state: KeyState, held: TimedList, candidates: int, number: int, now: int
    ) -> list[Fires]:
        """Which candidates fire, each looked at by itself; with what counts."""
        fired: dict[What, int] = {}
        who = 0
        for each, fires in self._bring(state, held, candidates, number, now):
            bit, kind = self._bits[each], self.kind_of(self.members[each])
            who |= bit
            for branch, counting in fires:
                what = (kind, branch, counting)
                fired[what] = fired.get(what, 0) | bit
        if who:
            held.note_fired(now, who)
        return [(what, fired[what]) for what in sorted(fired)]

    def _bring(
        self, state: KeyState, held: TimedList, who: int, number: int, now: int
    ) -> list[tuple[int, Sequence[tuple[int, int]]]]:
        """Find out where rules stand, put their bits there, and say which of them fire."""
        known = held.known
        live = [0] * len(held)
        found: list[tuple[int, Sequence[tuple[int, int]]]] = []
        for each in bits_of(who):
            starts, fires = self._replayed(state, held, each, now)
            known[each] = (number, now, starts)
            if fires:
                found.append((each, fires))
            bit, oldest = self._bits[each], now - self._timed[each].steps.window
            for slot, start in zip(self._timed[each].slots, starts, strict=True):
                if start >= oldest:
                    live[slot] |= bit
        others = ~who
        held[:] = [mask & others | alive for mask, alive in zip(held, live, strict=True)]
        if len(known) > held.look_at:
            self._drop_aged(held, now)
        return found

    def _replayed(
        self, state: KeyState, held: TimedList, number: int, now: int
    ) -> tuple[HeldStarts, Sequence[tuple[int, int]]]:
        """Where a rule stands, exactly, and what fires at the last event that it has read."""
        member = self._timed[number]
        steps, since = member.steps, member.since
        window = steps.window
        oldest = now - window
        starts = steps.first
        known = held.known.get(number)
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
        taken, functions = steps.held(starts), steps.known
        for moment in sorted(atoms):
            time, mask = moment[1], atoms[moment]
            take = functions.get(mask) or steps.take(mask)
            fires = take(taken, (0, 0), time, time - window)
        return tuple(taken[steps.place_count :]), fires or ()

    def bring_all(self, state: KeyState, number: int) -> None:
        held = state.held[self.at]
        if not isinstance(held, TimedList):
            return
        started = 0
        for mask in held:
            started |= mask
        held.known = {
            each: known for each, known in held.known.items() if started >> (each - 1) & 1
        }
        self._bring(state, held, started, number, state.latest)

    def _drop_aged(self, held: TimedList, now: int) -> None:
        oldest = now - self.longest
        held.known = {each: known for each, known in held.known.items() if known[1] >= oldest}
        held.look_at = max(KNOWN_BEFORE_A_LOOK, 2 * len(held.known))

    def is_idle(self, state: KeyState, held: list[int], now: int) -> bool:
        return not any(held) or state.latest < now - self.longest


def group_for(
    is_timed: bool, board: Board, types: TypeSystem, numbers: Iterator[int]
) -> SlicedGroup:
    """An empty group, for rules with windows or for those without."""
    return (WindowedGroup if is_timed else SlicedGroup)(board, types, numbers)
