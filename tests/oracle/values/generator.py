"""Random rules that relate several events, and random streams: from a seed, always the same ones.

In comes a number; out goes a `Scenario`. All clauses of section 10 are drawn in combination, with
ports that share event types, small trees, short times with many ties, and data with nulls, so that
most rules fire and many events compete for one match. Nothing that `check` refuses is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any, Literal

from .model import (
    EXTENSIONS,
    SECOND,
    Aggregate,
    Binary,
    Case,
    Clauses,
    Coalesce,
    Const,
    EventType,
    Exists,
    IsNull,
    Label,
    Model,
    Moment,
    New,
    Node,
    Not,
    Pair,
    Place,
    Port,
    Read,
    Rule,
    Scenario,
    Timeout,
    Timer,
    Times,
    Value,
    labels_of,
    parts_of,
)

HALF = SECOND // 2
# The same name has the same type wherever it is declared.
KINDS = {
    "k": "long",
    "v": "long",
    "f": "double",
    "s": "string",
    "ok": "boolean",
    "n": "long",
    "z": "double",
    "t": "string",
    "o": "boolean",
}


def declared(name: str, attributes: str, parent: str | None = None) -> EventType:
    return EventType(name, tuple((each, KINDS[each]) for each in attributes.split()), parent)


TYPES = (
    declared("Base", "k v"),
    declared("A", "f s ok", "Base"),
    declared("B", "f s", "Base"),
    declared("C", "", "Base"),
    declared("D", "", "A"),
    declared("Out", "n z t o", "Base"),
    declared("Out2", "", "Out"),
    declared("Other", ""),
)
DATA = {
    "A": "k v f s ok",
    "B": "k v f s",
    "C": "k v",
    "D": "k v f s ok",
    "Other": "",
    "Out": "k v n z t o",
    "Out2": "k v n z t o",
}
INPUTS = ("A", "A", "B", "B", "C", "D")
SOURCES = ("s1", "s2")


def only_events(ports: Sequence[Port | Timer]) -> list[Port]:
    return [port for port in ports if isinstance(port, Port)]


def scenario(seed: int) -> Scenario:
    return Drawing(seed).scenario()


class Drawing:
    """One scenario while it is drawn."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.of_extensions = Random(f"{seed} extensions")
        # How the rules of this scenario lean.
        self.depth = self.random.choice([1, 2, 2, 3, 3])
        self.bushy = self.chance(0.4)
        self.timeouts = self.random.choice([0.0, 0.1, 0.35])
        self.timers = self.random.choice([0.0, 0.0, 0.0, 0.2])
        self.nulls = self.random.choice([0.0, 0.05, 0.3])
        # One type for all ports, told apart by predicates: events match any set of the ports.
        self.types = self.random.choice([INPUTS, ("A", "D"), ("A", "B"), ("C",), ("A",), ("A",)])
        self.wheres = self.random.choice([0.1, 0.3, 0.8])
        self.signs: Sequence[Literal["+", "|", ";"]] = self.random.choice(
            [(";", ";", "+", "|"), ("+", "|", ";"), (";", "|"), ("+", "|", "|", ";")]
        )
        self.labels = 0
        self.clocks: list[str] = []
        self.fed: Sequence[str] = ()

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def scenario(self) -> Scenario:
        count = 2 if self.chance(0.2) else 1
        rules = [self.rule("Rule1", count)]
        if count == 2:
            # The second reads, among others, what the first puts out; never the other way round.
            if self.chance(0.7):
                self.fed = ("Rule1",)
                self.types = (*self.types, "Out", "Out", "Out2")
            rules.append(self.rule("Rule2", count))
        events = self.stream(rules)
        until = None
        if self.chance(0.6):
            last = events[-1].time if events else 0
            until = last + self.random.choice([0, HALF, SECOND, 3 * SECOND, 10 * SECOND])
        return Scenario(self.seed, Model(TYPES, tuple(rules)), events, until)

    # --- rules ------------------------------------------------------------------------------------

    def rule(self, name: str, rules: int) -> Rule:
        self.labels = 0
        ports = tuple(self.ports())
        # Two rules whose outputs the other could read would be a circle.
        output = "Base" if rules == 1 and self.chance(0.3) else "Out"
        branches = tuple(
            self.node(
                ports,
                self.depth if self.bushy else self.random.choice([*range(self.depth + 1)]),
            )
            for _ in range(self.random.choice([1, 1, 1, 2, 3]))
        )
        # Mostly the ports of the branches are asked for, since the others stand for nothing.
        used = {
            each.port for node in branches for each in parts_of(node) if isinstance(each, Place)
        }
        asked = [each for each in ports if each.name in used or self.chance(0.15)]
        asked = [*only_events(asked)] or [ports[0]]
        self.clocks = [each.name for each in ports if isinstance(each, Timer)]
        clauses = self.clauses(ports, asked)
        cases = tuple(self.cases(output, asked, branches))
        return Rule(output, name, ports, branches, clauses, cases)

    def ports(self) -> list[Port | Timer]:
        ports: list[Port | Timer] = []
        for name in "abcd"[: self.random.choice([1, 2, 2, 3, 3, 4])]:
            if ports and self.chance(self.timers):
                kind: Literal["every", "deadline"] = "every" if self.chance(0.5) else "deadline"
                ports.append(Timer(kind, self.random.choice([2, 3, 4, 6]) * HALF, name))
                continue
            type_ = self.random.choice(self.types)
            sources = self.sources(type_)
            where = self.where(type_) if self.chance(self.wheres) else None
            ports.append(Port(type_, name, sources, where))
        return ports

    def sources(self, type_: str) -> tuple[str, ...]:
        """What a port reads: mostly everything from outside, or what rules before it put out."""
        if type_.startswith("Out") and self.fed and self.chance(0.8):
            rules = self.random.sample(self.fed, self.random.randint(1, min(3, len(self.fed))))
            return (*rules, "outside") if self.chance(0.2) else tuple(rules)
        return (f'"{self.random.choice(SOURCES)}"',) if self.chance(0.08) else ()

    def where(self, type_: str) -> Value:
        name = self.random.choice(DATA[type_].split())
        kind = KINDS[name]
        signs = ["=", "!="] if kind in ("string", "boolean") else ["=", "<", "<=", ">", ">="]
        found: Value = Binary(self.random.choice(signs), Read(None, name), self.const(kind))
        if self.chance(0.2):
            found = Binary(self.random.choice(["AND", "OR"]), found, self.where(type_))
        return found

    def const(self, kind: str) -> Const:
        if kind == "long":
            return Const(self.random.randint(0, 4))
        if kind == "double":
            return Const(self.random.choice([0.5, 1.0, 1.5, 2.5]))
        return Const(self.random.choice(["x", "y"]) if kind == "string" else self.chance(0.5))

    def node(self, ports: Sequence[Port | Timer], depth: int, labels: bool = True) -> Node:
        if labels and self.labels < 5 and self.chance(0.15):
            self.labels += 1
            name = f"l{self.labels}"
            return Label(name, self.node(ports, depth))
        if depth == 0:
            return Place(self.random.choice(ports).name)
        if self.chance(0.1):
            return Times(self.node(ports, depth - 1, labels=False), self.random.choice([1, 2, 3]))
        if depth > 1 and self.chance(0.12):
            return self.rivals(ports)
        left = self.node(ports, depth - 1, labels)
        if self.chance(self.timeouts):
            waiting = Pair(";", left, Timeout(self.random.choice([1, 2, 3, 4, 6]) * HALF))
            if self.chance(0.6):
                return waiting
            left = waiting
        right = self.node(ports, depth - 1 if self.bushy else self.random.randrange(depth), labels)
        return Pair(self.random.choice(self.signs), left, right)

    def rivals(self, ports: Sequence[Port | Timer]) -> Node:
        """Sides of `|` of which one starts later, and the other is completed by the event."""
        first, second, third = (Place(self.random.choice(ports).name) for _ in range(3))
        last: Node | Timeout = second
        if self.chance(self.timeouts):
            last = Timeout(self.random.choice([1, 2, 3]) * HALF)
        either = Pair("|", *self.shuffled(Pair(";", first, last), third))
        again = second if self.chance(0.7) else Place(self.random.choice(ports).name)
        return Pair(self.random.choice(self.signs), *self.shuffled(either, again))

    def shuffled(self, one: Node, other: Node) -> tuple[Node, Node]:
        return (one, other) if self.chance(0.5) else (other, one)

    def clauses(self, ports: Sequence[Port | Timer], asked: Sequence[Port | Timer]) -> Clauses:
        events = only_events(ports)
        by: list[tuple[tuple[str, str], ...]] = []
        if self.chance(0.3):
            if len(events) > 1 and self.chance(0.3):
                by.append(tuple((each.name, self.random.choice("kv")) for each in events))
            else:
                by.append((("", self.random.choice("kkv")),))
        unless: tuple[str, ...] = ()
        if self.chance(0.3):
            names = [each.name for each in (ports if self.chance(0.2) else events)]
            unless = tuple(
                self.random.sample(names, 2 if len(names) > 1 and self.chance(0.2) else 1)
            )
        return Clauses(
            within=self.random.randint(1, 10) * HALF if self.chance(0.6) else None,
            by=tuple(by),
            bind=self.random.choice([None, "first", "last", "latest", "latest", "latest"]),
            keep=self.random.choice([None, "none", "last", "last", "all", "all", "all"]),
            unless=unless,
            having=self.condition(only_events(asked), 2) if self.chance(0.45) else None,
        )

    # --- conditions and values --------------------------------------------------------------------

    def condition(self, ports: Sequence[Port], depth: int) -> Value:
        if depth > 0 and self.chance(0.3):
            sign = self.random.choice(["AND", "OR"])
            both = [self.condition(ports, depth - 1) for _ in range(2)]
            return Binary(sign, *both)
        if self.chance(0.1):
            return Not(self.condition(ports, depth))
        if self.chance(0.1):
            kind = self.random.choice(["long", "double", "string"])
            return IsNull(self.sum_of_values(ports, kind), self.chance(0.5))
        if self.chance(0.07):
            port = self.random.choice(ports)
            return Exists(Read(port.name, self.random.choice(DATA[port.type].split())))
        kind = self.random.choice(["long", "long", "long", "double", "string"])
        left = self.value(ports, kind)
        if kind == "string":
            right = self.value(ports, kind)
            return Binary(self.random.choice(["=", "!="]), left, right)
        if kind == "long" and self.chance(0.15):
            left = self.value(ports, "double")
        right = self.value(ports, kind) if self.chance(0.5) else self.const(kind)
        return Binary(self.random.choice(["=", "!=", "<", "<=", ">", ">=", ">="]), left, right)

    def value(self, ports: Sequence[Port], kind: str) -> Value:
        if self.chance(0.08):
            parts = [self.sum_of_values(ports, kind) for _ in range(self.random.choice([1, 2, 2]))]
            return Coalesce((*parts, self.const(kind)) if self.chance(0.7) else tuple(parts))
        if kind == "boolean" and self.chance(0.4):
            return IsNull(self.simple_value(ports, self.random.choice(["long", "string"])))
        found = self.simple_value(ports, kind)
        if kind in ("long", "double") and self.chance(0.25):
            sign = self.random.choice("+-*/%")
            other = self.simple_value(ports, kind) if self.chance(0.5) else self.const(kind)
            return Binary(sign, found, other)
        return found

    def sum_of_values(self, ports: Sequence[Port], kind: str) -> Value:
        """A value that may be null, but never an error."""
        found = self.simple_value(ports, kind)
        if kind in ("long", "double") and self.chance(0.3):
            return Binary("+", found, self.simple_value(ports, kind))
        return found

    def simple_value(self, ports: Sequence[Port], kind: str) -> Value:
        """`a.Name` or an aggregate of a kind; a constant where no port has an attribute for it."""
        port = self.random.choice(ports)
        names = [each for each in DATA[port.type].split() if KINDS[each] == kind]
        if kind == "long" and self.clocks and self.chance(0.3):
            return Aggregate("count", self.random.choice(self.clocks))
        if kind == "long" and self.chance(0.3):
            if self.chance(0.5):
                return Aggregate("count", port.name)
            return Aggregate("distinct", port.name, self.random.choice(DATA[port.type].split()))
        if kind == "double" and self.chance(0.15):
            times = [Read(self.random.choice(ports).name, "time") for _ in range(2)]
            return Binary("-", *times)
        if kind == "double" and self.chance(0.3):
            numbers = [each for each in DATA[port.type].split() if KINDS[each] in ("long", kind)]
            return Aggregate("avg", port.name, self.random.choice(numbers))
        if not names:
            return self.const(kind)
        name = self.random.choice(names)
        if self.chance(0.5):
            return Read(port.name, name)
        some = ["first", "last"] + (["sum", "min", "max"] if kind in ("long", "double") else [])
        return Aggregate(self.random.choice(some), port.name, name)

    def cases(
        self, output: str, ports: Sequence[Port | Timer], branches: Sequence[Node]
    ) -> list[Case]:
        events = only_events(ports)
        labels = [name for branch in branches for name in labels_of(branch)]
        cases = [Case((), self.new(events))]
        for _ in range(self.random.choice([0, 0, 1, 2])):
            condition: tuple[tuple[str, ...], ...] = ()
            if labels and self.chance(0.8):
                condition = tuple(
                    self.conjunction(labels) for _ in range(self.random.choice([1, 1, 2]))
                )
            push: str | New = self.new(events)
            if output == "Base" and self.chance(0.7):
                push = self.random.choice(events).name
            cases.append(Case(condition, push))
        return [replace(each, beside=self.beside(events)) for each in cases]

    def beside(self, ports: Sequence[Port]) -> tuple[tuple[str, Value], ...]:
        """What `with` sets, if anything; it has numbers of its own to be drawn from."""
        self.random, usual = self.of_extensions, self.random
        given = [name for name in EXTENSIONS if self.chance(0.5)] if self.chance(0.3) else []
        values = tuple((name, self.value(ports, EXTENSIONS[name])) for name in given)
        self.random = usual
        return values

    def conjunction(self, labels: Sequence[str]) -> tuple[str, ...]:
        chosen = self.random.sample(labels, self.random.randint(1, min(2, len(labels))))
        return tuple(self.random.choice(["", "", "!"]) + each for each in chosen)

    def new(self, ports: Sequence[Port]) -> New:
        given = [name for name in ("k", "v", "n", "z", "t", "o") if self.chance(0.6)]
        values = tuple((name, self.value(ports, KINDS[name])) for name in given)
        return New(self.random.choice(["Out", "Out", "Out2"]), values)

    # --- the stream -------------------------------------------------------------------------------

    def stream(self, rules: Sequence[Rule]) -> tuple[Moment, ...]:
        types = [port.type for rule in rules for port in rule.ports if isinstance(port, Port)]
        paces: list[Sequence[int]] = [(0, 1), (0, 1, 2), (1,), (1, 1, 1, 2, 12), (0, 0, 3)]
        pace = self.random.choice(paces)
        now = 0
        events = []
        for number in range(1, self.random.choice([3, 6, 9, 12, 15]) + 1):
            now += self.random.choice(pace) * HALF
            type_ = self.random.choice(types)
            if self.chance(0.1):
                type_ = self.random.choice(list(DATA))
            data = {name: self.datum(KINDS[name]) for name in DATA[type_].split()}
            source = self.random.choice(SOURCES)
            events.append(Moment(f"e{number}", source, type_, now, data))
        return tuple(events)

    def datum(self, kind: str) -> Any:
        if self.chance(self.nulls):
            return None
        if kind == "long":
            return 2**31 - 1 if self.chance(0.01) else self.random.choice([0, 1, 1, 2, 2, 3, 5])
        if kind == "double":
            return self.random.choice([0.5, 1.0, 1.5, 2.5, -1.5])
        return self.random.choice(["x", "y", "z"]) if kind == "string" else self.chance(0.5)
