"""A library that runs in the server: its run, what each rule has put out, and what it refused.

In come events in the order of the journal; out go outputs, and events that came too late. An event
that does not fit the type that this library declares for it is not read by it; it is counted here,
with its problems, and other libraries read it all the same. Only the thread of the line calls this.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

import msgspec

from ensue.engine.run import Run
from ensue.engine.running.snapshots import read_snapshot
from ensue.engine.timing.alarms import advance_in_steps
from ensue.engine.timing.jumps import shortest_period
from ensue.errors import EventError
from ensue.events.event import Event
from ensue.history import History
from ensue.history.asking.prepared import asks_history
from ensue.lang.expressions.tree import TemporalTerm
from ensue.library import Library
from ensue.server.station.rules.fullness import Fullness

REFUSED_SHOWN: Final = 20
ROUNDS_AT_ONCE: Final = 2
"""How often timers of one key may fire at one event; more firings are read in steps."""


class RuleCount(msgspec.Struct):
    """What a rule has put out: how often, and the latest of it."""

    outputs: int = 0
    last_seq: int | None = None
    last_time: int | None = None
    last_key: str | None = None
    last_id: str | None = None


class Counted(msgspec.Struct):
    """What is kept of a library's counts with its state."""

    rules: dict[str, RuleCount]
    refused: int = 0
    late: int = 0
    full: int = 0
    """Refused events whose key was one too many."""


class Refusal(msgspec.Struct, frozen=True):
    """An event that a library could not read."""

    id: str
    type: str
    time: int
    problems: tuple[str, ...]


class SharedHistory:
    """The history of the server as runs ask it. The line keeps each event there once, for all."""

    def __init__(self, history: History) -> None:
        self._history = history

    def check(self, event: Event) -> None:
        self._history.check(event)

    def add(self, event: Event) -> None:
        """Does nothing: the line adds each event to the history, once for all libraries."""

    def holds(self, term: TemporalTerm, publication: Event) -> bool | None:
        return self._history.holds(term, publication)


def _asked(library: Library, history: History | None) -> SharedHistory | None:
    return (
        SharedHistory(history)
        if history is not None and asks_history(library.checked.tree.definitions)
        else None
    )


class Hosted:
    """One library in force, and its run."""

    def __init__(self, name: str, version: int, library: Library, run: Run) -> None:
        self.name = name
        self.version = version
        self.library = library
        self.run = run
        self.asks = asks_history(library.checked.tree.definitions)
        self.counted = Counted({})
        self.refusals: deque[Refusal] = deque(maxlen=REFUSED_SHOWN)
        self.saved_seq = 0
        self._gap = _gap_of(library)
        self._fullness = Fullness(run, library)
        self.saved_at = time.monotonic()

    @classmethod
    def started(
        cls, name: str, version: int, library: Library, lateness: int, history: History | None
    ) -> Hosted:
        """A library that starts afresh."""
        run = library.start(
            lateness=timedelta(microseconds=lateness), history=_asked(library, history)
        )
        return cls(name, version, library, run)

    @classmethod
    def resumed(
        cls,
        name: str,
        version: int,
        library: Library,
        state: bytes,
        counts: bytes,
        history: History | None,
    ) -> Hosted:
        """A library that goes on from what was saved of it."""
        run = library.resume(state, history=_asked(library, history))
        hosted = cls(name, version, library, run)
        hosted.counted = msgspec.msgpack.decode(counts, type=Counted)
        return hosted

    def is_behind(self, event: Event) -> bool:
        """Whether timers would fire again and again on the way to an event."""
        if self._gap is None:
            return False
        due = self.run.next_due()
        return due is not None and event.time - due >= self._gap and self.run.takes(event)

    def steps_to(self, event: Event) -> Iterator[tuple[int, list[Event]]]:
        """Times on the way to an event, and what timers put out up to each of them."""
        times: list[int] = []

        def advance(time: int) -> list[Event]:
            times.append(time)
            return self.run.advance(time)

        for outputs in advance_in_steps(event.time, self.run.next_due, advance):
            yield times[-1], outputs

    def push(self, event: Event) -> list[Event]:
        try:
            return self.run.push(event)
        except EventError as error:
            self.refuse(event, error.problems)
            return []

    def refuse(self, event: Event, problems: tuple[str, ...]) -> None:
        """Count an event that does not fit its type."""
        self.counted.refused += 1
        self.refusals.append(Refusal(event.id, event.type, event.time, problems))

    def has_room_for(self, count: int, most: int) -> bool:
        """Whether so many events may be read without a look at keys, or at timers that repeat."""
        return self._gap is None and self._fullness.has_room_for(count, most)

    def lets_in(self, event: Event, most: int, no_more: bool) -> bool:
        """Whether its rules have room for the keys of an event. If not, it is told as refused."""
        rule = self._fullness.full_rule(event, most, no_more)
        if rule is None:
            return True
        bound = (
            "the rules of the channel hold as many keys as limit `keys_in_all` allows"
            if no_more
            else f"rule `{rule}` holds as many keys as limit `keys` allows ({most:,})"
        )
        problem = f"{bound}, and this event may begin another: raise the limit, or send it later"
        self.counted.refused += 1
        self.counted.full += 1
        self.refusals.append(Refusal(event.id, event.type, event.time, (problem,)))
        return False

    def take_late(self) -> list[Event]:
        """The events that came too late since this was last asked."""
        late = self.run.late
        if not late:
            return []
        self.run.late = []
        self.counted.late += len(late)
        return late

    def count(self, output: Event, seq: int, outputs: int = 1) -> None:
        """Count an output; of several of its rule, the last."""
        extensions = output.extensions
        name = extensions["correlation"]
        rule = self.counted.rules.get(name)
        if rule is None:
            rule = self.counted.rules[name] = RuleCount()
        rule.outputs += outputs
        rule.last_seq, rule.last_time = seq, output.time
        rule.last_key, rule.last_id = extensions.get("partitionkey"), output.id

    def change(self, version: int, library: Library, history: History | None) -> None:
        """Run another version from now on; rules that mean the same keep their state."""
        asks = asks_history(library.checked.tree.definitions)
        if asks != self.asks:
            self.run = self.library.resume(self.run.snapshot(), history=_asked(library, history))
        self.run.change(library)
        self.version, self.library, self.asks = version, library, asks
        self._gap = _gap_of(library)
        self._fullness = Fullness(self.run, library)
        names = set(library.correlations.names)
        rules = {name: rule for name, rule in self.counted.rules.items() if name in names}
        self.counted.rules = rules

    def state(self) -> tuple[bytes, bytes]:
        """What is needed to go on from here: the run, and the counts."""
        return self.run.snapshot(), msgspec.msgpack.encode(self.counted)

    def occupancy(self) -> Mapping[str, RuleState]:
        """How many keys of each rule stand in each state of its machine."""
        snapshot = read_snapshot(self.run.snapshot(), self.library.checked)
        found: dict[str, RuleState] = {}
        for rule in snapshot.state.rules if snapshot.state is not None else ():
            states: dict[int, int] = {}
            for _, number, _ in rule.keys:
                for each in rule.states[number]:
                    states[each] = states.get(each, 0) + 1
            keys: list[Any] = [each for each, _, _ in rule.keys[:KEYS_SHOWN]]
            found[rule.name] = RuleState(len(rule.keys), states, [key_words(each) for each in keys])
        return found


def _gap_of(library: Library) -> int | None:
    """How far behind an event timers may be due; None where none fires again by itself."""
    shortest = shortest_period(library.checked)
    return None if shortest is None else ROUNDS_AT_ONCE * shortest


KEYS_SHOWN: Final = 200


class RuleState(msgspec.Struct, frozen=True):
    """The keys that hold state: how many, how many in each state of the machine, and examples."""

    keys: int
    states: dict[int, int]
    shown: Sequence[str]


def key_words(key: Any) -> str:
    """A key as `partitionkey` says it."""
    if isinstance(key, list | tuple):
        return ",".join(str(each[1]) for each in key)
    return str(key)
