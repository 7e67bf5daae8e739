"""Why an output came, and why one did not: runs that can be asked.

A run that explains goes by the definitions (`ensue.engine.reference`), which remember events and
know what each part of an expression stands for. For each output it keeps the trigger: what was
bound or, in ECL, what completed the parts of the pushed expression since that was started. How near
a rule is to its next output is computed from what it remembers, when it is asked (`progress`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from types import MappingProxyType
from typing import Any

from ensue.engine.counts import Counts
from ensue.engine.explain.conditions import why_true
from ensue.engine.explain.progress import (
    CLOCK,
    Done,
    Progress,
    ecl_progress,
    filter_progress,
    in_words,
    matched_by,
)
from ensue.engine.instance import Instance
from ensue.engine.outputs import TIMER, Outputs, Trigger, port_scope
from ensue.engine.ports import Key, Reading, key_text
from ensue.engine.reference.ecl import EclInstance
from ensue.engine.reference.filters import FilterInstance
from ensue.engine.reference.memory import BranchMemory, Place
from ensue.engine.stream import InstanceStart, RunningCorrelation, Stream
from ensue.errors import UsageError
from ensue.events.event import Event
from ensue.events.times import format_time
from ensue.events.types import TypeSystem
from ensue.lang.checked import CheckedLibrary
from ensue.lang.diagnostics import did_you_mean
from ensue.lang.expressions.scopes import PortScope
from ensue.lang.syntax import Correlation, FilterCorrelation, PushPort, TimerPort

OUTPUTS_REMEMBERED = 100_000
"""The most outputs whose reasons are kept; the oldest are dropped first."""


LINES_SHOWN = 10
"""The most causes that are listed; of more, the first and the last are."""


def shortened(lines: list[str]) -> list[str]:
    if len(lines) <= LINES_SHOWN:
        return lines
    half = LINES_SHOWN // 2
    return [*lines[:half], f"  ... {len(lines) - LINES_SHOWN:,} more ...", *lines[-half:]]


@dataclass(frozen=True)
class WhyOutput:
    """Why an output came.

    `causes` are what completed the parts of the rule, and `bound` what its ports stand for besides,
    both in the order in which they were read. `having` says what the clause found, and `keep` what
    the rule remembers afterwards.
    """

    output: Event
    correlation: str
    key: str | None
    trigger: str
    time: int
    labels: tuple[str, ...]
    causes: tuple[Done, ...]
    bound: tuple[Done, ...] = ()
    having: str | None = None
    keep: str | None = None

    def __str__(self) -> str:
        key = "" if self.key is None else f" for key `{self.key}`"
        by = "the clock" if self.trigger == TIMER else f"`{self.trigger}`"
        labels = f", label {', '.join(f'`{each}`' for each in self.labels)}" if self.labels else ""
        head = (
            f"`{self.output.type}` from `{self.correlation}`{key}: "
            f"completed by {by} at {format_time(self.time)}{labels}"
        )
        lines = shortened([f"  because {each}" for each in self.causes])
        lines += [f"  and {each}" for each in self.bound]
        lines += [f"  {each}" for each in (self.having, self.keep) if each is not None]
        return "\n".join([head, *lines])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


@dataclass(frozen=True)
class WhyNot:
    """How near a correlation is to its next output, under the key that was asked for.

    `done` are the parts that are complete, `waits_for` says what is missing, in the rule's own
    words, and `before` is the last moment at which that can still come, where a window sets one.
    `left` are parts that were complete and have left the window, and `aborted` the labels that are
    left out now. `having` says what the clause finds in the events that are there, and `forgotten`
    which event has made the rule forget the ones before it (`unless`).
    """

    correlation: str
    key: str | None
    started: bool
    done: tuple[Done, ...] = ()
    waits_for: str | None = None
    before: int | None = None
    left: tuple[Done, ...] = ()
    left_before: int | None = None
    aborted: tuple[str, ...] = ()
    having: str | None = None
    forgotten: Done | None = None

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def __str__(self) -> str:
        key = "" if self.key is None else f" for key `{self.key}`"
        if not self.started:
            return f"`{self.correlation}`{key}: no event that it reads has come"
        if self.waits_for is None:
            return f"`{self.correlation}`{key}: it is finished, and puts nothing out any more"
        before = "" if self.before is None else f", no later than {format_time(self.before)}"
        lines = [f"`{self.correlation}`{key}: waits for {self.waits_for}{before}"]
        lines += shortened([f"  {each}" for each in self.done])
        if self.having is not None:
            lines.append(f"  {self.having}")
        if self.forgotten is not None and not self.done:
            lines.append(f"  {self.forgotten}: `unless` made it forget all that came before")
        lines += [f"  label `{each}` is aborted" for each in self.aborted]
        if self.left and self.left_before is not None:
            lines += shortened([f"  {each}, and has left the window" for each in self.left])
            lines += [f"    the rest had to come no later than {format_time(self.left_before)}"]
        return "\n".join(lines)


class Explainer:
    """An engine that goes by the definitions and keeps its reasons."""

    def __init__(self, library: CheckedLibrary, counts: Counts) -> None:
        self._reasons: dict[tuple[object, ...], WhyOutput] = {}
        self._now: int | None = None
        self._stream = Stream(library, counts, _starter, self._outputs)

    def may_be_due(self, time: int) -> bool:
        return self._stream.may_be_due(time)

    def next_due(self) -> int | None:
        return self._stream.next_due()

    def read_in_parts(self, event: Event) -> Iterator[list[Event]]:
        yield from self._stream.read_in_parts(event)
        self._now = event.time

    def advance_in_parts(self, time: int) -> Iterator[list[Event]]:
        yield from self._stream.advance_in_parts(time)
        self._now = time if self._now is None else max(time, self._now)

    def change(self, library: CheckedLibrary) -> None:
        self._stream.change(library)

    def _outputs(self, name: str, key: Key, keyed: bool, types: TypeSystem) -> Outputs:
        return _RecordingOutputs(self, name, key, keyed, types)

    def remember(self, output: Event, trigger: Trigger, name: str, key: str | None) -> None:
        matched = [Done(f"`{port}`", reading) for port, reading in trigger.matched]
        because = [
            Done(", ".join(f"`{port}`" for port in sorted(each.ports)) or CLOCK, each)
            for each in trigger.because
        ]
        # A port may also stand for an event of an alternative that is not complete.
        bound = [Done(f"`{port}`", reading) for port, reading in trigger.bound.items()]
        known = {(each.part, id(each.reading)) for each in matched}
        if len(self._reasons) >= OUTPUTS_REMEMBERED:
            del self._reasons[next(iter(self._reasons))]
        self._reasons[_identity(output)] = WhyOutput(
            output,
            name,
            key,
            trigger.name,
            trigger.time,
            tuple(sorted(trigger.labels)),
            (*matched, *because),
            tuple(each for each in bound if (each.part, id(each.reading)) not in known),
            self._having(trigger, name),
            self._kept(trigger, name),
        )

    def _having(self, trigger: Trigger, name: str) -> str | None:
        having = self._running(name).correlation.clauses.having
        if having is None:
            return None
        return (
            f"`having` was true: {why_true(having, port_scope(trigger.bound, trigger.stretches))}"
        )

    def _kept(self, trigger: Trigger, name: str) -> str | None:
        match self._running(name).correlation.clauses.keep:
            case "last":
                event = "that moment" if trigger.event_id is None else f"event `{trigger.event_id}`"
                return f"`keep last`: of all that it has read it remembers only {event}"
            case "all":
                return "`keep all`: it still remembers all that it has read"
            case _:
                return None

    def why_output(self, output: Event) -> WhyOutput:
        found = self._reasons.get(_identity(output))
        if found is None:
            raise UsageError(
                f"`{output.id}` is no output of this run (or one from very long ago): "
                "ask with an event that the run has put out, or with the name of a correlation"
            )
        return found

    def why_not(self, name: str, key: object = None) -> WhyNot:
        """The nearest that a correlation has come, under a key or under any."""
        running = self._running(name)
        keyed = bool(running.correlation.clauses.by)
        if key is not None and not keyed:
            raise UsageError(
                f"`{name}` has no `by`, and the key `{key}` was asked for: ask without a key"
            )
        if key is not None:
            values = key if isinstance(key, tuple) else (key,)
            wanted = [
                (each, instance)
                for each, instance in running.instances.items()
                if tuple(value for _, value in each) == values or key_text(each) == key
            ]
            if not wanted:
                asked = ",".join(str(value) for value in values)
                return WhyNot(name, asked, started=False)
            return self._why_not(running, *wanted[0])
        nearest = self.nearest(name, 1)
        return nearest[0] if nearest else WhyNot(name, None, started=False)

    def nearest(self, name: str, count: int) -> list[WhyNot]:
        """The keys that came nearest, the nearest first."""
        running = self._running(name)
        all_of_them = [self._why_not(running, *each) for each in running.instances.items()]
        return sorted(all_of_them, key=lambda each: -len(each.done))[:count]

    def _running(self, name: str) -> RunningCorrelation:
        if not isinstance(name, str):
            names = ", ".join(f"`{each.correlation.name}`" for each in self._stream.running)
            raise UsageError(
                f"`why` was asked of `{name!r}`: ask it of an output of this run, "
                f"or of the name of a correlation; there is {names or 'none'}"
            )
        for each in self._stream.running:
            if each.correlation.name == name:
                return each
        hint = did_you_mean(name, [each.correlation.name for each in self._stream.running])
        raise UsageError(f"there is no correlation `{name}` in the library that runs; {hint}")

    def _why_not(self, running: RunningCorrelation, key: Key, instance: Instance) -> WhyNot:
        correlation = running.correlation
        text = key_text(key) if correlation.clauses.by else None
        progress: Progress | None
        if isinstance(instance, FilterInstance):
            assert isinstance(correlation, FilterCorrelation)
            progress = filter_progress(correlation, instance, self._now or 0)
        else:
            assert isinstance(instance, EclInstance)
            progress = ecl_progress(instance)
        if progress is None:
            return WhyNot(correlation.name, text, started=True)
        return WhyNot(
            correlation.name,
            text,
            True,
            progress.done,
            in_words(progress.waits, correlation),
            progress.before,
            progress.left,
            progress.left_before,
            progress.aborted,
            progress.having,
            instance.voided if isinstance(instance, _ExplainedFilter) else None,
        )


class _RecordingOutputs(Outputs):
    __slots__ = ("_explainer",)

    def __init__(
        self, explainer: Explainer, name: str, key: Key, keyed: bool, types: TypeSystem
    ) -> None:
        super().__init__(name, key, keyed, types)
        self._explainer = explainer

    def forward(
        self, trigger: Trigger, event: Event, statement: PushPort, scope: PortScope | None = None
    ) -> Event:
        return self._kept(super().forward(trigger, event, statement, scope), trigger)

    def create(
        self,
        trigger: Trigger,
        type_name: str,
        data: Mapping[str, Any],
        own: Mapping[str, Any] = MappingProxyType({}),
    ) -> Event:
        return self._kept(super().create(trigger, type_name, data, own), trigger)

    def _kept(self, output: Event, trigger: Trigger) -> Event:
        key = self.key_text if self._keyed else None
        self._explainer.remember(output, trigger, self._correlation, key)
        return output


class _ExplainedFilter(FilterInstance):
    """A filter that notes for each trigger the events that completed it, and the last `unless`."""

    voided: Done | None = None
    """The last event after `unless` before which something was remembered."""

    def read(self, reading: Reading) -> list[Event]:
        remembered = any(branch.readings for branch in self.branches)
        made = super().read(reading)
        void = [each.name for each in self.clauses.unless if each.name in reading.ports]
        if void and remembered:
            self.voided = Done(f"`{void[0]}`", reading)
        return made

    def _trigger(self, branch: BranchMemory, start: Place, reading: Reading) -> Trigger | None:
        trigger = super()._trigger(branch, start, reading)
        if trigger is None:
            return None
        if self.clauses.bind == "latest":
            # What is bound is a match by itself, but for the moment that completed it.
            by_clock = [] if reading.ports else [reading]
            return replace(trigger, matched=list(trigger.bound.items()), because=by_clock)
        return replace(trigger, matched=matched_by(branch, start, self.clauses.bind == "first"))


def _starter(correlation: Correlation) -> InstanceStart:
    def start(timers: Sequence[TimerPort], outputs: Outputs, started: int) -> Instance:
        if isinstance(correlation, FilterCorrelation):
            return _ExplainedFilter(correlation, timers, outputs, started)
        instance = EclInstance(correlation, timers, outputs, started)
        instance.explains = True
        return instance

    return start


def _identity(output: Event) -> tuple[object, ...]:
    names = ("correlation", "trigger", "labels", "causes", "partitionkey")
    return output.id, output.type, output.time, *(output.extensions.get(name) for name in names)
