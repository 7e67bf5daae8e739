"""The keys of rules that are stepped in groups: one look-up for all groups that read by one key.

In comes an event with what it is to each group (`readings`); out come the outputs of all of them. A
key has what each group holds that has left its start there, and shares among all groups
what they all need: the last event of each *letter* (what a port asks for), and what was put out at
this moment. Who fires and what follows is for the groups: `cell_groups`, and `clocked_groups` where
there are timers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ensue.engine.counts import Counts
from ensue.engine.ports import key_text
from ensue.engine.step.firing import Noted
from ensue.engine.step.rules import KEYS_BEFORE_A_SWEEP, FastKey, whole_key
from ensue.engine.step.shapes import Letter
from ensue.engine.step.volleys import put_out
from ensue.events.event import Event

if TYPE_CHECKING:
    from ensue.engine.step.groups import Group
    from ensue.engine.step.readings import BoardReading


class KeyState:
    """A key: where the rules of each group stand, and what all groups share.

    `held` has, by the place of a group on the board, what it holds here, if it has left its start.
    `made` has, for each trigger at `time`, of which group who put something out, and how much.
    """

    __slots__ = ("held", "last", "made", "text", "time")

    def __init__(self, key: FastKey, groups: int, letters: int) -> None:
        self.held: list[Any] = [None] * groups
        self.last: list[Noted | None] = [None] * letters
        self.text = key_text(whole_key(key))
        self.time: int | None = None
        self.made: dict[str, list[tuple[int, int, int]]] = {}

    def made_by(self, group: int, bit: int) -> dict[str, int]:
        """How much one rule has put out at `time`, by trigger."""
        counted = {
            trigger: sum(number for at, mask, number in made if at == group and mask & bit)
            for trigger, made in self.made.items()
        }
        return {trigger: number for trigger, number in counted.items() if number}


class Board:
    """All keys of the groups whose rules have the same names of keys."""

    def __init__(self, key_names: tuple[str, ...]) -> None:
        self.key_names = key_names
        self.keys: dict[FastKey, KeyState] = {}
        self.groups: list[Group | None] = []
        self.letters: dict[Letter, int] = {}
        self.volleys: dict[object, Callable[..., None]] = {}
        self._sweep_at = KEYS_BEFORE_A_SWEEP

    # --- groups that come and go ----------------------------------------------------------------

    def join(self, group: Group) -> int:
        """A place for a group."""
        if None in self.groups:
            at = self.groups.index(None)
            self.groups[at] = group
            return at
        self.groups.append(group)
        for state in self.keys.values():
            state.held.append(None)
        return len(self.groups) - 1

    def leave(self, group: Group) -> None:
        self.groups[group.at] = None
        for state in self.keys.values():
            state.held[group.at] = None
            state.made = {
                trigger: [each for each in made if each[0] != group.at]
                for trigger, made in state.made.items()
            }

    def settle(self) -> None:
        """All groups have the rules that they go on with."""
        for state in self.keys.values():
            state.last += [None] * (len(self.letters) - len(state.last))

    def held_by(self, group: Group) -> Iterator[tuple[FastKey, KeyState, Any]]:
        """The keys, each with what a group holds there."""
        for key, state in self.keys.items():
            yield key, state, state.held[group.at]

    # --- reading --------------------------------------------------------------------------------

    def read(
        self,
        reading: BoardReading,
        key: FastKey | None,
        noted: tuple[int, Event],
        counts: Counts,
        made: list[Event],
    ) -> int:
        """Let all rules read an event; says how many times outputs were made, each in order."""
        if key is None:
            for part in reading.parts:
                part.group.count_without_key(part.wanted, counts)
            return 0
        state = self.keys.get(key)
        if state is None:
            if reading.is_nothing:
                return 0
            if len(self.keys) >= self._sweep_at:
                self.sweep(noted[1].time)
            state = self.begin(key)
        last = state.last
        for letter in reading.letters:
            last[letter] = noted
        firing: list[tuple[Group, Any]] = []
        lists = state.held
        for visited, at, visits, is_nothing in reading.visits:
            cells = lists[at]
            if cells is None:
                if is_nothing:
                    continue
                cells = lists[at] = visited.new_list(state)
            fired = visited.visit(cells, visits, noted[1].time)
            if fired:
                firing.append((visited, fired))
        return put_out(firing, self.groups, state, noted[1], made) if firing else 0

    # --- keys -----------------------------------------------------------------------------------

    def begin(self, key: FastKey) -> KeyState:
        state = self.keys[key] = KeyState(key, len(self.groups), len(self.letters))
        return state

    def sweep(self, now: int) -> None:
        """Let go of the keys under which every rule stands as before it started."""
        gone = [
            key
            for key, state in self.keys.items()
            if (state.time is None or state.time < now) and self._is_idle(state, now)
        ]
        for key in gone:
            del self.keys[key]
        self._sweep_at = max(KEYS_BEFORE_A_SWEEP, 2 * len(self.keys))

    def _is_idle(self, state: KeyState, now: int) -> bool:
        return all(
            group is None or held is None or group.is_idle(state, held, now)
            for group, held in zip(self.groups, state.held, strict=True)
        )
