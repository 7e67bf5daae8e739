"""The keys of rules that are stepped in groups: one look-up for all groups that read by one key.

In comes an event with what it is to each group (`readings`); out come the outputs of all of them. A
key has what each group holds that has left its start there, and shares among all groups
what they all need: the last event of each *letter* (what a port asks for), when letters came, the
last events as they were read, and what was put out at this moment. Who fires and what follows is
for the groups: `sliced_groups`, `candidates` where there is a window, `cell_groups`, and
`clocked_groups` where there are timers.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from ensue.engine.counts import Counts
from ensue.engine.ports import key_text
from ensue.engine.step.firing import Noted
from ensue.engine.step.rules import KEYS_BEFORE_A_SWEEP, FastKey, whole_key
from ensue.engine.step.shapes import Letter
from ensue.engine.step.volleys import put_out
from ensue.engine.step.window_text import NEVER
from ensue.events.event import Event

if TYPE_CHECKING:
    from ensue.engine.step.groups import Group
    from ensue.engine.step.readings import BoardReading

MOST_MOMENTS = 1024
"""How many moments of a letter a key keeps before its rules are brought to the present."""

FEW_EVENTS = 32
"""How many of its last events a key keeps as they were read."""

Moment = tuple[int, int]
"""The number of an event, which grows, and its time."""


class KeyState:
    """A key: where the rules of each group stand, and what all groups share.

    `held` has, by the place of a group on the board, what it holds here, if it has left its start.
    `made` has, for each trigger at `time`, of which group who put something out, and how much. With
    candidates, `came` has when each letter came, and `recent` (with their times) the last events as
    they were read: all that came after the time `recent_since`; `latest` is the time of the last.
    """

    __slots__ = (
        "came",
        "held",
        "last",
        "latest",
        "made",
        "recent",
        "recent_since",
        "recent_times",
        "text",
        "time",
    )

    def __init__(self, key: FastKey, groups: int, letters: int) -> None:
        self.held: list[Any] = [None] * groups
        self.last: list[Noted | None] = [None] * letters
        self.text = key_text(whole_key(key))
        self.time: int | None = None
        self.made: dict[str, list[tuple[int, int, int]]] = {}
        self.came: dict[int, list[Moment]] = {}
        self.recent: list[BoardReading] = []
        self.recent_times: list[int] = []
        self.recent_since = NEVER
        self.latest = NEVER

    def made_by(self, group: int, bit: int) -> dict[str, int]:
        """How much one rule has put out at `time`, by trigger."""
        counted = {
            trigger: sum(number for at, mask, number in made if at == group and mask & bit)
            for trigger, made in self.made.items()
        }
        return {trigger: number for trigger, number in counted.items() if number}

    def note(self, letters: Sequence[int], noted: Moment, oldest: int) -> bool:
        """Note when letters came; says whether there are too many moments."""
        came = self.came
        is_crowded = False
        for letter in letters:
            moments = came.get(letter)
            if moments is None:
                came[letter] = [noted]
                continue
            moments.append(noted)
            if moments[0][1] < oldest:
                del moments[: bisect_left(moments, oldest, key=_time)]
            elif len(moments) > MOST_MOMENTS:
                is_crowded = True
        return is_crowded

    def remember(self, time: int, reading: BoardReading, oldest: int) -> None:
        """Keep an event as it was read."""
        recent, times = self.recent, self.recent_times
        while times and times[0] < oldest:
            del recent[0], times[0]
        if len(recent) >= FEW_EVENTS:
            del recent[0]
            self.recent_since = times.pop(0)
        recent.append(reading)
        times.append(time)
        self.latest = time

    def forget_recent(self) -> None:
        """What was read is no longer to be relied on."""
        self.recent.clear()
        self.recent_times.clear()
        self.recent_since = self.latest


_time = itemgetter(1)


class Board:
    """All keys of the groups whose rules have the same names of keys."""

    def __init__(self, key_names: tuple[str, ...]) -> None:
        self.key_names = key_names
        self.keys: dict[FastKey, KeyState] = {}
        self.groups: list[Group | None] = []
        self.letters: dict[Letter, int] = {}
        self.volleys: dict[object, Callable[..., None]] = {}
        self.longest = 0
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
        self.longest = max((group.longest for group in self.groups if group), default=0)
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
        is_crowded = False
        if reading.timed_letters:
            number, event = noted
            now = event.time
            oldest = now - self.longest
            state.remember(now, reading, oldest)
            is_crowded = state.note(reading.timed_letters, (number, now), oldest)
        firing: list[tuple[Group, Any]] = []
        lists = state.held
        for group, at, take, masks, is_nothing in reading.steps:
            held = lists[at]
            if held is None:
                if is_nothing:
                    continue
                held = lists[at] = group.new_list(state)
            fired = take(held, *masks)
            if fired:
                found = group.judged(fired, state, held, noted[0], noted[1].time)
                if found:
                    firing.append((group, found))
        for visited, at, visits, is_nothing in reading.visits:
            cells = lists[at]
            if cells is None:
                if is_nothing:
                    continue
                cells = lists[at] = visited.new_list(state)
            fired = visited.visit(cells, visits, noted[1].time)
            if fired:
                firing.append((visited, fired))
        if is_crowded:
            self._bring_all(state, noted[0])
        return put_out(firing, self.groups, state, noted[1], made) if firing else 0

    def _bring_all(self, state: KeyState, number: int) -> None:
        """Bring every rule with a window to the present, so that no earlier moment is needed."""
        for group in self.groups:
            if group is not None:
                group.bring_all(state, number)
        state.came.clear()

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
