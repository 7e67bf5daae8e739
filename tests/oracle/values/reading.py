"""Section 10 of the definitions read a second time, to judge the engines by.

In come a model and a bounded stream; out go all outputs in order, as plain dictionaries. Here are
the clock, keys, timers, what a branch remembers and forgets, conditions and aggregates, and what an
output looks like; what a sequence matches is in `matches`. Nothing is shared with the
engines, CESQL included: the few operators that the generator draws are evaluated here.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

from .matches import Match, Read, Stretch
from .model import (
    EXTENSIONS,
    Aggregate,
    Binary,
    Case,
    Coalesce,
    Const,
    Exists,
    IsNull,
    Label,
    Model,
    Moment,
    New,
    Node,
    Not,
    Pair,
    Port,
    Rule,
    Scenario,
    Timeout,
    Timer,
    Value,
    expanded,
    parts_of,
)
from .model import Read as ReadOf

Output = dict[str, Any]
Key = tuple[Any, ...]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
INTEGERS = {"short": 2**15, "long": 2**31, "long long": 2**63}


def judge(scenario: Scenario) -> list[Output]:
    """All outputs of a scenario, by the definitions."""
    memories = [Memories(scenario.model, rule) for rule in scenario.model.rules]
    outputs: list[Output] = []
    for event in scenario.events:
        outputs += advance(memories, event.time)
        outputs += spread(memories, [(event, None)])
    if scenario.until is not None:
        outputs += advance(memories, scenario.until)
    return outputs


def spread(
    rules: Sequence[Memories], waiting: Sequence[tuple[Moment, Memories | None]]
) -> list[Output]:
    """Let every rule read each event, then what they put out, first in first out."""
    outputs: list[Output] = []
    queue = list(waiting)
    while queue:
        event, author = queue.pop(0)
        for rule in rules:
            made = rule.read(event, author)
            outputs += made
            queue += [(as_moment(each), rule) for each in made]
    return outputs


def as_moment(output: Output) -> Moment:
    """An output as other rules read it."""
    own = {name: each for name, each in output.items() if name in EXTENSIONS}
    given = {name: output[name] for name in ("id", "source", "type", "time", "data")}
    return Moment(**given, extensions=own)


def advance(rules: Sequence[Memories], time: int) -> list[Output]:
    """Run what is due at or before a time: by moment, then rule, then key, then timer.

    Of keys that are due together the one whose last event is the oldest goes first (record 47).
    """
    outputs: list[Output] = []
    while True:
        dues = [
            (moment, rule_number, memory.last_read, timer)
            for rule_number, rule in enumerate(rules)
            for memory in rule.by_key.values()
            for timer, moment in memory.dues()
            if moment <= time
        ]
        if not dues:
            return outputs
        moment, rule_number, last_read, timer = min(dues)
        keys = rules[rule_number].by_key.values()
        memory = next(each for each in keys if each.last_read == last_read)
        made = memory.ring(timer, moment)
        author = rules[rule_number]
        outputs += [*made, *spread(rules, [(as_moment(each), author) for each in made])]


class Memories:
    """A rule with the memories of its keys; it counts the events that they have read."""

    def __init__(self, model: Model, rule: Rule) -> None:
        self.model = model
        self.rule = rule
        self.by_key: dict[Key, Memory] = {}
        self.read_so_far = 0

    def read(self, event: Moment, author: Memories | None) -> list[Output]:
        ports: dict[Key, set[str]] = {}
        for port in self.rule.ports:
            if isinstance(port, Port) and self.accepts(port, event, author):
                key = self.key_of(port.name, event)
                if None not in key:
                    ports.setdefault(key, set()).add(port.name)
        outputs: list[Output] = []
        for key, names in ports.items():
            if key not in self.by_key:
                self.by_key[key] = Memory(self.model, self.rule, key, event.time)
            self.read_so_far += 1
            self.by_key[key].last_read = self.read_so_far
            outputs += self.by_key[key].read(event.time, frozenset(names), event)
        return outputs

    def accepts(self, port: Port, event: Moment, author: Memories | None) -> bool:
        meant = {author.rule.name} if author else {"outside", f'"{event.source}"'}
        return (
            self.model.is_under(event.type, port.type)
            and not meant.isdisjoint(port.sources or ("outside",))
            and (port.where is None or holds(port.where, lambda read: event.data.get(read.name)))
        )

    def key_of(self, port: str, event: Moment) -> Key:
        names = [dict(key) for key in self.rule.clauses.by]
        return tuple(event.data.get(each.get("", each.get(port, ""))) for each in names)


@dataclass
class Memory:
    """What a rule knows under one key: what each branch remembers, and its timers."""

    model: Model
    rule: Rule
    key: Key
    started: int
    last_read: int = 0
    last_trigger: int = 0
    count: int = 0
    branches: list[Branch] = field(default_factory=list)
    rings: dict[str, int] = field(default_factory=dict)
    timed_out: set[int] = field(default_factory=set)
    put_out: Counter[tuple[str, int]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.last_trigger = self.started
        self.branches = [Branch(self.rule, expanded(each)) for each in self.rule.branches]

    def dues(self) -> list[tuple[int, int]]:
        """Each timer and when it is due: timer ports by their place, after them all timeouts."""
        dues = []
        for number, port in enumerate(self.rule.ports):
            if isinstance(port, Timer):
                since = self.rings.get(port.name, self.started)
                since = since if port.kind == "every" else max(since, self.last_trigger)
                dues.append((number, since + port.period))
        moments = {moment for each in self.branches for moment in each.timeouts()}
        return dues + [(len(self.rule.ports), each) for each in moments - self.timed_out]

    def ring(self, timer: int, now: int) -> list[Output]:
        if timer == len(self.rule.ports):
            self.timed_out.add(now)
            return self.read(now, frozenset(), None)
        name = self.rule.ports[timer].name
        self.rings[name] = now
        return self.read(now, frozenset({name}), None)

    def read(self, now: int, ports: frozenset[str], event: Moment | None) -> list[Output]:
        """Every branch reads; then the transformer runs for each that triggered."""
        read = Read(self.count, now, ports, event)
        self.count += 1
        triggers = [each.read(read) for each in self.branches]
        outputs: list[Output] = []
        for trigger in triggers:
            if trigger is not None:
                self.last_trigger = now
                for case in self.rule.cases:
                    outputs += self.take(case, trigger)
        return outputs

    def take(self, case: Case, trigger: Trigger) -> list[Output]:
        def is_true(literal: str) -> bool:
            return (literal.lstrip("!") in trigger.active) != literal.startswith("!")

        if case.labels and not any(all(map(is_true, every)) for every in case.labels):
            return []
        if isinstance(case.push, New):
            kinds = self.model.attributes(case.push.type)
            data = {
                name: fitted(value_or_null(value, trigger.value), kinds[name])
                for name, value in case.push.values
            }
            made = self.output(trigger, None, case.push.type, data)
        else:
            bound = trigger.bound.get(case.push)
            if bound is None or bound.event is None:
                return []
            made = self.output(trigger, bound.event, bound.event.type, bound.event.data)
            made |= bound.event.extensions
        for name, value in case.beside:
            made[name] = fitted(value_or_null(value, trigger.value), EXTENSIONS[name])
        return [{name: each for name, each in made.items() if each is not None}]

    def output(
        self, trigger: Trigger, event: Moment | None, type_: str, data: dict[str, Any]
    ) -> Output:
        name = self.rule.name
        by = trigger.read.event.id if trigger.read.event else "timer"
        self.put_out[by, trigger.read.time] += 1
        key = {"partitionkey": ",".join(map(str, self.key))} if self.rule.clauses.by else {}
        numbered = self.put_out[by, trigger.read.time]
        made_up = [name, f"{by}@{trigger.read.time}", *key.values(), str(numbered)]
        return {
            "id": event.id if event else ":".join(made_up),
            "source": event.source if event else f"ensue/{name}",
            "type": type_,
            "time": trigger.read.time,
            "data": data,
            "correlation": name,
            "trigger": by,
            "labels": ",".join(sorted(trigger.active)),
            "causes": trigger.causes,
            **key,
        }


class Branch:
    """One branch of one key: what it remembers."""

    def __init__(self, rule: Rule, node: Node) -> None:
        self.rule = rule
        self.clauses = rule.clauses
        self.node = node
        self.remembered: list[Read] = []

    def inside(self, now: int) -> Stretch:
        """What is remembered and inside the window that ends now."""
        within = self.clauses.within
        return Stretch([e for e in self.remembered if within is None or e.time >= now - within])

    def timeouts(self) -> set[int]:
        """Section 10.5: each moment at which the clock reaches D after a read that took part.

        Its match has to be inside the window still when the moment comes.
        """
        moments = set()
        for node in parts_of(self.node):
            if isinstance(node, Pair) and isinstance(node.right, Timeout):
                for read in self.remembered:
                    moment = read.time + node.right.duration
                    left = self.inside(moment)
                    ends = [e for e, other in enumerate(left.reads, 1) if other is read]
                    if any(left.takes_part(node.left, 0, end) for end in ends):
                        moments.add(moment)
        return moments

    def read(self, read: Read) -> Trigger | None:
        """Remember, trigger (section 10.2), and forget (10.3 and 10.4)."""
        self.remembered.append(read)
        stretch = self.inside(read.time)
        trigger = None
        if stretch.takes_part(self.node, 0, len(stretch.reads)):
            trigger = Trigger(self, stretch)
            having = self.clauses.having
            trigger = trigger if having is None or holds(having, trigger.value) else None
        if read.ports & {*self.clauses.unless}:
            self.remembered = [read]
        if trigger is not None:
            keep = self.clauses.keep or "none"
            kept: dict[str, list[Read]] = {"none": [], "last": [read], "all": self.remembered}
            self.remembered = kept[keep]
        return trigger


class Trigger:
    """A branch that triggers, or would if its condition held: labels, bound events, aggregates."""

    def __init__(self, branch: Branch, stretch: Stretch) -> None:
        self.rule = branch.rule
        self.stretch = stretch
        end = len(stretch.reads)
        self.read = stretch.reads[-1]
        self.active = {
            each.name
            for each in parts_of(branch.node)
            if isinstance(each, Label) and stretch.matches(each, 0, end)
        }
        self.found: dict[str, list[Read]] = {}
        for port, start in stretch.stretches(branch.node, 0):
            events = [each for each in stretch.reads[start:] if port in each.ports]
            # The stretches of all places end here, so the longest one has all events of the others.
            self.found[port] = max(events, self.found.get(port, []), key=len)
        if (branch.clauses.bind or "last") == "latest":
            match = stretch.latest_with(branch.node, 0, end)
            assert isinstance(match, Match)
            self.bound = {port: stretch.reads[place] for port, place in match.bound.items()}
        else:
            place = 0 if branch.clauses.bind == "first" else -1
            self.bound = {port: found[place] for port, found in self.found.items() if found}

    @property
    def causes(self) -> str:
        bound = {each.index: each.event for each in self.bound.values() if each.event}
        return ",".join(dict.fromkeys(bound[index].id for index in sorted(bound)))

    def value(self, read: ReadOf | Aggregate) -> Any:
        """What `a.Name` or an aggregate stands for; None for null."""
        port = read.port or ""
        if isinstance(read, ReadOf):
            bound = self.bound.get(port)
            return None if bound is None or not bound.event else attribute(bound.event, read.name)
        events = self.found.get(port, [])
        if read.kind == "count":
            return len(events)
        data = [attribute(each.event, read.name or "") for each in events if each.event]
        return AGGREGATION[read.kind]([each for each in data if each is not None])


def attribute(event: Moment, name: str) -> Any:
    if name == "time":
        return EPOCH + timedelta(microseconds=event.time)
    return event.data.get(name)


def total(values: list[Any]) -> Any:
    """The exact sum: an integer of 64 bits, or rounded once where there is a double among them."""
    if any(isinstance(each, float) for each in values):
        return float(sum(map(Fraction, values)))
    whole = sum(values)
    return whole if values and -(2**63) <= whole < 2**63 else None


AGGREGATION: Mapping[str, Callable[[list[Any]], Any]] = {
    "distinct": lambda values: len({(isinstance(each, bool), each) for each in values}),
    "sum": total,
    "avg": lambda values: float(total(values)) / len(values) if values else None,
    "min": lambda values: min(values, default=None),
    "max": lambda values: max(values, default=None),
    "first": lambda values: values[0] if values else None,
    "last": lambda values: values[-1] if values else None,
}


# --- conditions and values ------------------------------------------------------------------------


class MetNullError(Exception):
    """An evaluation met a null."""


class FaultError(Exception):
    """An evaluation met something worse: an overflow, a division by zero."""


Lookup = Callable[[Any], Any]
SIGNS: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda x, y: divided(x, y),
    "%": lambda x, y: remainder(x, y),
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def divided(x: float, y: float) -> float:
    if y == 0:
        raise FaultError
    if isinstance(x, int) and isinstance(y, int):
        whole = abs(x) // abs(y)
        return whole if (x < 0) == (y < 0) else -whole
    return x / y


def remainder(x: float, y: float) -> float:
    """With the sign of the left side."""
    if y == 0:
        raise FaultError
    if isinstance(x, int) and isinstance(y, int):
        return abs(x) % abs(y) * (-1 if x < 0 else 1)
    return math.fmod(x, y)


def is_null(value: Value, look_up: Lookup) -> bool:
    try:
        return evaluate(value, look_up) is None
    except MetNullError:
        return True


def evaluate(value: Value, look_up: Lookup) -> Any:
    """The value, with `AND` and `OR` read from the left up to what decides them."""
    if isinstance(value, Const):
        return value.value
    if isinstance(value, Not):
        return not evaluate(value.body, look_up)
    if isinstance(value, IsNull):
        return is_null(value.body, look_up) != value.is_not
    if isinstance(value, Exists):
        return look_up(value.body) is not None
    if isinstance(value, Coalesce):
        found = [None if is_null(e, look_up) else evaluate(e, look_up) for e in value.parts]
        present = [each for each in found if each is not None]
        if not present:
            raise MetNullError
        return present[0]
    if isinstance(value, Binary):
        left = evaluate(value.left, look_up)
        if value.sign in ("AND", "OR"):
            decided = left is (value.sign == "OR")
            return left if decided else evaluate(value.right, look_up)
        result = SIGNS[value.sign](left, evaluate(value.right, look_up))
        if isinstance(result, int) and not -(2**63) <= result < 2**63:
            raise FaultError
        return result.total_seconds() if isinstance(result, timedelta) else result
    found = look_up(value)
    if found is None:
        raise MetNullError
    return found


def holds(condition: Value, look_up: Lookup) -> bool:
    """Section 10.8: true, and no null was met on the way."""
    return value_or_null(condition, look_up) is True


def value_or_null(value: Value, look_up: Lookup) -> Any:
    try:
        return evaluate(value, look_up)
    except (MetNullError, FaultError):
        return None


def fitted(value: Any, kind: str) -> Any:
    """The value as an attribute of its type holds it, or None where it does not fit."""
    if value is None:
        return None
    if kind in INTEGERS:
        return value if -INTEGERS[kind] <= value < INTEGERS[kind] else None
    return float(value) if kind == "double" else value
