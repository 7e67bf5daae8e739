"""The definitions read a second time, slowly and by the letter, to judge the engines by.

In come a library's tree, its types and a whole bounded stream; out go all outputs in order, and
the events that came too late. Here are the clock, keys, timers, rules over rules, transformers
and what an output looks like; what a filter matches is in `filters`, what an ECL expression does
is in `machines`. Predicates and values are CESQL's and are left to `ensue.lang.expressions`;
everything else shares no code with the engines.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from ensue.events.event import Event
from ensue.events.types import TypeSystem, ValueType
from ensue.lang.expressions import Expression, Name
from ensue.lang.syntax import (
    Case,
    Change,
    CommonKey,
    Constant,
    Correlation,
    EclCorrelation,
    EventPort,
    FilterCorrelation,
    Holds,
    LabelAnd,
    LabelExpression,
    LabelName,
    LabelNot,
    LabelTrue,
    LibraryTree,
    OutsideSource,
    PortRef,
    PortSource,
    PushNew,
    PushPort,
    RuleSource,
    Statement,
    TextSource,
    TimerPort,
)

from .derived import Deriving
from .filters import Filters, Firing, Trigger
from .machines import Leaf, Machine, MachineRun
from .predicates import predicate_holds, value_of
from .values_that_fit import fitted

Key = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Result:
    outputs: list[Event]
    late: list[Event]


def run(
    library: LibraryTree,
    types: TypeSystem,
    events: Iterable[Event],
    *,
    lateness: int | None = None,
    until: int | None = None,
) -> Result:
    """Run a bounded stream through a library. Times and lateness are in microseconds."""
    in_time, late = put_in_order(events, lateness)
    wire = {each.name: each.wire_name for each in library.types}
    deriving = Deriving(library, types)
    clock = Clock([Rule(each, types, wire, deriving) for each in library.correlations], deriving)
    for event in in_time:
        clock.advance(event.time)
        clock.deliver(event)
    if until is not None:
        clock.advance(until)
    return Result(clock.outputs, late)


def put_in_order(events: Iterable[Event], lateness: int | None) -> tuple[list[Event], list[Event]]:
    """By time, then by arrival, without those that come too late."""
    in_time: list[Event] = []
    late: list[Event] = []
    for event in events:
        latest = max((each.time for each in in_time), default=event.time)
        too_late = lateness is not None and event.time < latest - lateness
        (late if too_late else in_time).append(event)
    return sorted(in_time, key=lambda each: each.time), late


# --- the stream: one clock, all rules, and what they put out for each other -----------------------


class Clock:
    """One clock for the whole stream, and all that runs by it."""

    def __init__(self, rules: Sequence[Rule], deriving: Deriving) -> None:
        self.rules = rules
        self.deriving = deriving
        self.outputs: list[Event] = []
        self.waiting: deque[tuple[Event, Rule]] = deque()

    def advance(self, time: int) -> None:
        """Run the timers that are due at or before a time, in order."""
        while (due := self.next_timer()) is not None and due[0] <= time:
            moment, rule_number, last_read, timer_number = due
            rule = self.rules[rule_number]
            memory = next(m for m in rule.memories.values() if m.last_read == last_read)
            self.collect(rule, memory.ring(timer_number, moment))
            self.settle()

    def next_timer(self) -> tuple[int, int, int, int] | None:
        """Due time, correlation, key and timer of what is due next; this is also their order.

        Of keys that are due together the one whose last event is the oldest goes first (record 47).
        """
        dues = [
            (moment, rule_number, memory.last_read, timer_number)
            for rule_number, rule in enumerate(self.rules)
            for memory in rule.memories.values()
            for timer_number, moment in memory.dues()
        ]
        return min(dues, default=None)

    def deliver(self, event: Event, producer: Rule | None = None) -> None:
        """Every correlation that names the producer reads the event, then what they put out."""
        event = self.deriving.given(event)
        for rule in self.rules:
            self.collect(rule, rule.read(event, producer))
        if producer is None:
            self.settle()

    def settle(self) -> None:
        while self.waiting:
            event, producer = self.waiting.popleft()
            self.deliver(event, producer)

    def collect(self, rule: Rule, outputs: Sequence[Event]) -> None:
        if rule.correlation.role != "internal":
            self.outputs.extend(outputs)
        self.waiting.extend((each, rule) for each in outputs)


class Rule:
    """A correlation with the memories of its keys; it counts the events that they have read.

    `wire` has the name that events of a declared type carry; the type system knows those.
    """

    def __init__(
        self,
        correlation: Correlation,
        types: TypeSystem,
        wire: Mapping[str, str],
        deriving: Deriving,
    ) -> None:
        self.correlation = correlation
        self.deriving = deriving
        self.types = types
        self.wire = wire
        self.memories: dict[Key, Memory] = {}
        self.read_so_far = 0

    def read(self, event: Event, producer: Rule | None) -> list[Event]:
        by_key: dict[Key, set[str]] = {}
        for port in self.correlation.ports:
            if isinstance(port, EventPort) and self.accepts(port, event, producer):
                key = self.key_of(port, event)
                if key is not None:
                    by_key.setdefault(key, set()).add(port.name)
        outputs: list[Event] = []
        for key, ports in by_key.items():
            if key not in self.memories:
                self.memories[key] = memory_for(self, key, event.time)
                outputs += self.memories[key].start(event)
            self.read_so_far += 1
            self.memories[key].last_read = self.read_so_far
            outputs += self.memories[key].read(event, frozenset(ports), event.time)
        return outputs

    def accepts(self, port: EventPort, event: Event, producer: Rule | None) -> bool:
        return (
            self.types.is_subtype(event.type, self.wire[port.type])
            and any(
                stands_for(each, event, producer) for each in port.sources or (OutsideSource(),)
            )
            and (port.where is None or predicate_holds(port.where, event))
        )

    def key_of(self, port: EventPort, event: Event) -> Key | None:
        """The key under which a port reads an event; None if some part of it is missing."""
        values = []
        for key in self.correlation.clauses.by:
            name: str | None
            name = key.name if isinstance(key, CommonKey) else dict(key.parts).get(port.name)
            value = None if name is None else look_up(event, name)
            if value is None:
                return None
            # Both zeros are equal, and so they are one key.
            value = 0.0 if isinstance(value, float) and value == 0 else value
            values.append((as_text(value), value))
        return tuple(values)


def stands_for(source: PortSource, event: Event, producer: Rule | None) -> bool:
    """Whether what stands after `from` means an event of this producer, or of none."""
    match source:
        case RuleSource(name):
            return producer is not None and producer.correlation.name == name
        case TextSource(text):
            return producer is None and event.source == text
        case OutsideSource():
            return producer is None


def look_up(event: Event, name: str) -> Any:
    """A CloudEvents attribute, else data, else the attribute in lower case; or nested data."""
    if "." in name:
        inside: Any = event.attributes
        for part in name.split("."):
            inside = inside.get(part) if isinstance(inside, Mapping) else None
        return inside
    attributes: dict[str, Any] = {
        "id": event.id,
        "source": event.source,
        "type": event.type,
        "time": event.at,
        **event.extensions,
    }
    for place, spelling in (
        (attributes, name),
        (event.attributes, name),
        (attributes, name.lower()),
    ):
        if place.get(spelling) is not None:
            return place[spelling]
    return None


def as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return str(value)


# --- one correlation and key ----------------------------------------------------------------------


@dataclass
class Memory:
    """What a correlation knows under one key; the two bodies say what it does with it."""

    rule: Rule
    key: Key
    started: int
    last_read: int = 0
    last_trigger: int = 0
    put_out: Counter[tuple[str, int]] = field(default_factory=Counter)
    last_rings: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.last_trigger = self.started
        self.prepare()

    def prepare(self) -> None:
        raise NotImplementedError

    def start(self, event: Event) -> list[Event]:
        """What is put out before the first event is read: nothing, unless a body says otherwise."""
        assert event.time == self.started
        return []

    def read(self, what: Event | Firing, ports: frozenset[str], now: int) -> list[Event]:
        raise NotImplementedError

    def dues(self) -> list[tuple[int, int]]:
        """Each timer's number and when it is due: timer ports by their place, then timeouts."""
        dues = []
        for number, port in enumerate(self.rule.correlation.ports):
            if isinstance(port, TimerPort):
                since = self.last_rings.get(port.name, self.started)
                if port.kind == "deadline":
                    since = max(since, self.last_trigger)
                dues.append((number, since + port.period.microseconds))
        return dues

    def ring(self, number: int, now: int) -> list[Event]:
        port = self.rule.correlation.ports[number]
        self.last_rings[port.name] = now
        return self.read(Firing(now), frozenset({port.name}), now)

    @property
    def key_text(self) -> str:
        return ",".join(text for text, _ in self.key)

    def output(self, what: Event | Firing | None, now: int, event: Event, marks: Marks) -> Event:
        """An output: `event` (its id is made up where it is empty) with what every output has."""
        trigger = what.id if isinstance(what, Event) else "timer"
        self.put_out[trigger, now] += 1
        name = self.rule.correlation.name
        parts = [name, f"{trigger}@{now}"]
        extensions = {
            "correlation": name,
            "trigger": trigger,
            "labels": marks.labels,
            "causes": marks.causes,
        }
        if self.rule.correlation.clauses.by:
            parts.append(self.key_text)
            extensions["partitionkey"] = self.key_text
        made_up = ":".join([*parts, str(self.put_out[trigger, now])])
        return Event(
            id=event.id or made_up,
            source=event.source or f"ensue/{name}",
            type=event.type,
            time=now,
            data=event.data,
            extensions={**event.extensions, **extensions},
        )


@dataclass(frozen=True)
class Marks:
    labels: str = ""
    causes: str = ""


def memory_for(rule: Rule, key: Key, now: int) -> Memory:
    if isinstance(rule.correlation, EclCorrelation):
        return EclMemory(rule, key, now)
    return FilterMemory(rule, key, now)


class EclMemory(Memory):
    def prepare(self) -> None:
        correlation = self.rule.correlation
        assert isinstance(correlation, EclCorrelation)
        machine = Machine(correlation.output)
        machine.build(correlation.body)
        self.machine_run = MachineRun(machine, self.started)

    def read(self, what: Event | Firing, ports: frozenset[str], now: int) -> list[Event]:
        def takes(leaf: Leaf) -> bool:
            if isinstance(leaf, PortRef):
                return leaf.name in ports
            if isinstance(leaf, Holds):
                return predicate_holds(leaf.predicate, what)
            return isinstance(leaf, Constant) and leaf.value

        return self.put(what, self.machine_run.read(takes, now), now)

    def dues(self) -> list[tuple[int, int]]:
        timeout = None if self.machine_run.finished else self.machine_run.next_due()
        after_the_ports = len(self.rule.correlation.ports)
        return [*super().dues(), *([] if timeout is None else [(after_the_ports, timeout)])]

    def ring(self, number: int, now: int) -> list[Event]:
        if number < len(self.rule.correlation.ports):
            return super().ring(number, now)
        return self.put(None, self.machine_run.ring(now), now)

    def put(self, what: Event | Firing | None, types: Sequence[str], now: int) -> list[Event]:
        if types:
            self.last_trigger = now
        made = [self.rule.wire[each] for each in types]
        return [
            self.output(what, now, Event("", "", each, now, self.filled_with_key(each)), Marks())
            for each in made
        ]

    def filled_with_key(self, type_: str) -> Mapping[str, Any]:
        """The attributes that are named like a key, by any name that it goes by."""
        kinds = self.rule.types.attributes(type_)
        data: dict[str, Any] = {}
        for key, (_, value) in zip(self.rule.correlation.clauses.by, self.key, strict=True):
            names = [key.name] if isinstance(key, CommonKey) else [name for _, name in key.parts]
            data |= {name: fitted(value, kinds[name]) for name in names if name in kinds}
        return inside_each_other(data)


class FilterMemory(Memory):
    def prepare(self) -> None:
        correlation = self.rule.correlation
        assert isinstance(correlation, FilterCorrelation)
        self.body = correlation
        clauses = correlation.clauses
        within = clauses.within.microseconds if clauses.within else None
        self.filters = Filters(correlation.branches, within, clauses.bind or "last")

    def start(self, event: Event) -> list[Event]:
        nothing = Trigger(frozenset(), {})
        return [
            output
            for statement in self.body.initially
            for output in self.execute(statement, nothing, event, event.time)
        ]

    def read(self, what: Event | Firing, ports: frozenset[str], now: int) -> list[Event]:
        outputs: list[Event] = []
        self.filters.remember(what, ports)
        while triggers := self.filters.triggers(now):
            self.last_trigger = now
            for trigger in triggers:
                for case in self.body.cases:
                    outputs += self.take(case, trigger, what, now)
        return outputs

    def take(self, case: Case, trigger: Trigger, what: Event | Firing, now: int) -> list[Event]:
        if not self.truth(case.condition, trigger):
            return []
        return [
            output
            for statement in case.statements
            for output in self.execute(statement, trigger, what, now)
        ]

    def truth(self, condition: LabelExpression, trigger: Trigger) -> bool | None:
        """Whether a label expression is true; None where aborted labels leave nothing of it."""
        if isinstance(condition, LabelTrue):
            return True
        if isinstance(condition, LabelName):
            aborted = condition.name in self.filters.aborted
            return None if aborted else condition.name in trigger.active
        if isinstance(condition, LabelNot):
            inner = self.truth(condition.body, trigger)
            return None if inner is None else not inner
        truths = [self.truth(part, trigger) for part in condition.parts]
        left = [each for each in truths if each is not None]
        if not left:
            return None
        return all(left) if isinstance(condition, LabelAnd) else any(left)

    def execute(
        self, statement: Statement, trigger: Trigger, what: Event | Firing, now: int
    ) -> list[Event]:
        if isinstance(statement, Change):
            for label in statement.labels:
                self.filters.change(statement.kind, label.name)
            return []
        marks = Marks(",".join(sorted(trigger.active)), trigger.causes)
        if isinstance(statement, PushPort):
            bound = trigger.bound.get(statement.port)
            if bound is None or not isinstance(bound.what, Event):
                return []
            pushed = self.rule.deriving.as_it_came(bound.what)
        else:
            type_ = self.rule.wire[statement.type]
            pushed = Event(
                id="", source="", type=type_, time=now, data=self.new(statement, trigger)
            )
        return [self.output(what, now, self.beside(pushed, statement, trigger), marks)]

    def beside(self, pushed: Event, statement: PushPort | PushNew, trigger: Trigger) -> Event:
        """The event with what `with` sets; what is null is not there."""
        every = dict(pushed.extensions)
        bound = {port: each.what for port, each in trigger.bound.items()}
        for each in statement.extensions:
            value = value_of(each.value, bound)
            if each.name in ("subject", "partitionkey"):
                value = value if isinstance(value, str) else None
            elif each.name == "expirytime":
                value = value if isinstance(value, datetime) else None
            elif each.name == "priority":
                value = fitted(value, ValueType("long"))
            elif value is not None and self.is_untold(each.value):
                value = as_text(value)
            elif isinstance(value, int | float) and not isinstance(value, bool):
                value = fitted(value, ValueType("long"))
            if isinstance(value, datetime):
                second = f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}"
                value = f"{second.rstrip('0').rstrip('.')}Z"
            every[each.name] = value
        kept = {name: value for name, value in every.items() if value is not None}
        return replace(pushed, extensions=kept)

    def is_untold(self, value: Expression) -> bool:
        """Whether a value is a name that no type in reach declares."""
        if not isinstance(value, Name):
            return False
        ports = {each.name: each for each in self.rule.correlation.ports}
        port, name = ports[value.parts[0]], value.parts[1]
        if isinstance(port, TimerPort):
            return False
        below = self.rule.types.subtypes(port.type)
        every = {"id", "source", "type", "time", "subject"}
        return name not in every.union(*(self.rule.types.attributes(each) for each in below))

    def new(self, statement: PushNew, trigger: Trigger) -> Mapping[str, Any]:
        given = {each.name: each.value for each in statement.assignments}
        bound = {port: each.what for port, each in trigger.bound.items()}
        kinds = self.rule.types.attributes(self.rule.wire[statement.type])
        return inside_each_other(
            {name: fitted(value_of(each, bound), kinds[name]) for name, each in given.items()}
        )


def inside_each_other(values: Mapping[str, Any]) -> dict[str, Any]:
    """Data from values by names with dots: what stands before a dot holds what stands behind."""
    data: dict[str, Any] = {}
    for name, value in values.items():
        *outer, last = name.split(".")
        place = data
        for part in outer:
            place = place.setdefault(part, {})
        place[last] = value
    return data
