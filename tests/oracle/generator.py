"""Random libraries and streams: from a seed, always the same ones.

In comes a number; out goes a `Scenario`: the text of a valid library, a list of CloudEvents, and
how to run them. All parts of the language are drawn from, weighted so that most rules fire: few
ports, small trees, short times with many ties. What a checker must refuse is never written here;
the gallery of wrong libraries is for that.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from ensue.events.times import datetime_of, parse_time

# The same name has the same type wherever it is declared, so that any two types may share keys.
ATTRIBUTES = {"K": "short", "V": "long", "F": "float", "S": "string", "B": "boolean", "L": "long"}
# Only outputs have this one: what an event says of its own time would have to fit it.
MOMENT = {"T": "timestamp"}
KINDS = {**ATTRIBUTES, **MOMENT}
EXTENSIONS = {
    "priority": "long",
    "expirytime": "timestamp",
    "subject": "string",
    "level": "short",
    "moment": "timestamp",
    "good": "boolean",
}
SOURCES = ("s1", "s2", "s3")
DURATIONS = {"500 ms": 0.5, "1 s": 1.0, "1.5 s": 1.5, "2 s": 2.0, "3 s": 3.0, "5 s": 5.0}
SECOND = 1_000_000


@dataclass
class Scenario:
    """A library and a stream. Times are in microseconds, `lateness` is None for sorted input."""

    seed: int
    library: str
    events: list[dict[str, Any]]
    lateness: int | None = None
    until: int | None = None

    def __str__(self) -> str:
        lines = [json.dumps(event) for event in self.events]
        how = f"// seed {self.seed}, lateness {self.lateness}, until {self.until}"
        return "\n".join([how, self.library, *lines])


@dataclass
class TypeDraft:
    name: str
    parent: TypeDraft | None
    own: list[str]

    @property
    def attributes(self) -> list[str]:
        return [*(self.parent.attributes if self.parent else []), *self.own]

    def is_under(self, other: TypeDraft) -> bool:
        return self is other or (self.parent is not None and self.parent.is_under(other))


@dataclass
class PortDraft:
    name: str
    type: TypeDraft | None  # None: a timer
    text: str


@dataclass
class RuleDraft:
    """What one correlation is written from."""

    name: str
    output: TypeDraft
    ports: list[PortDraft]
    labels: list[str] = field(default_factory=list)

    @property
    def event_ports(self) -> list[PortDraft]:
        return [port for port in self.ports if port.type is not None]

    @property
    def types(self) -> list[TypeDraft]:
        return [port.type for port in self.ports if port.type is not None]


def scenario(seed: int) -> Scenario:
    """The scenario of a seed."""
    return Drawing(seed).scenario()


class Drawing:
    """One scenario while it is drawn.

    All of its types and rules end with `suffix`: so scenarios can be put into one library.
    """

    def __init__(self, seed: int, suffix: str = "") -> None:
        self.seed = seed
        self.suffix = suffix
        self.random = Random(seed)
        self.of_extensions = Random(f"{seed} extensions")
        self.types: list[TypeDraft] = []
        self.rules: list[RuleDraft] = []
        # How the rules of this scenario lean: timers, changes of labels and size differ most.
        self.timers = self.random.choice([0.05, 0.15, 0.4])
        self.changes = self.random.choice([0.2, 0.5, 0.7])
        self.depth = self.random.choice([2, 3, 4])

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def scenario(self) -> Scenario:
        self.draw_types()
        texts = [self.type_text(each) for each in self.types]
        wanted = self.random.choice([1, 1, 2, 2, 3])
        for _ in range(wanted):
            rule = self.draw_rule()
            self.rules.append(rule)
            if self.chance(0.45):
                # ECL carries no data, so it puts out types without attributes.
                bare = f"Bare{self.suffix}"
                rule.output = next(each for each in self.types if each.name == bare)
                texts.append(self.ecl_text(rule))
            else:
                texts.append(self.filter_text(rule))
        if self.chance(0.3):
            # A rule may be read by one above it.
            self.random.shuffle(texts)
        events = self.draw_events()
        lateness = None
        if self.chance(0.25):
            lateness = self.random.choice([0, SECOND // 2, SECOND, 3 * SECOND])
        until = None
        if self.chance(0.3):
            last = max((self.time_of(each) for each in events), default=0)
            until = last + self.random.choice([-SECOND, 0, SECOND, 4 * SECOND, 10 * SECOND])
            until = max(until, 0)
        return Scenario(self.seed, "\n".join(texts), events, lateness, until)

    def time_of(self, event: dict[str, Any]) -> int:
        return parse_time(event["time"])

    # --- types -----------------------------------------------------------------------------------

    def draw_types(self) -> None:
        for number in range(self.random.randint(2, 5)):
            parent = self.random.choice(self.types) if self.types and self.chance(0.4) else None
            have = parent.attributes if parent else []
            free = [name for name in ATTRIBUTES if name not in have]
            own = self.random.sample(free, min(len(free), self.random.randint(0, 3)))
            if "K" not in have and "K" not in own and self.chance(0.8):
                own.insert(0, "K")
            self.types.append(TypeDraft("ABCDE"[number] + self.suffix, parent, own))
        for number in range(self.random.randint(1, 3)):
            # Outputs of several types are what shows the order in which they are put out.
            parent = self.types[-1] if number > 0 and self.chance(0.6) else None
            parent = self.random.choice(self.types) if self.chance(0.1) else parent
            have = parent.attributes if parent else []
            free = [name for name in ATTRIBUTES if name not in have]
            own = self.random.sample(free, min(len(free), self.random.randint(0, 4)))
            own += ["T"] if "T" not in have and self.chance(0.3) else []
            self.types.append(TypeDraft(f"Out{number + 1}{self.suffix}", parent, own))
        # ECL carries no data, so it puts out types without attributes.
        self.types.append(TypeDraft(f"Bare{self.suffix}", None, []))
        self.types.append(TypeDraft(f"Barer{self.suffix}", self.types[-1], []))

    def type_text(self, draft: TypeDraft) -> str:
        parent = f" : {draft.parent.name}" if draft.parent else ""
        own = "".join(f" attribute {KINDS[name]} {name};" for name in draft.own)
        return f"eventtype {draft.name}{parent} {{{own} }};"

    # --- rules -----------------------------------------------------------------------------------

    def draw_rule(self) -> RuleDraft:
        inputs = [each for each in self.types if not each.name.startswith("Out")]
        outputs = [each for each in self.types if each.name.startswith("Out")]
        inputs = [each for each in inputs if each.attributes or self.chance(0.3)] or inputs
        output = self.random.choice(outputs if self.chance(0.8) else inputs)
        ports = []
        for number in range(self.random.randint(2, 5)):
            name = "abcde"[number]
            if number > 0 and self.chance(self.timers):
                kind = self.random.choice(["every", "deadline"])
                duration = self.random.choice(list(DURATIONS))
                ports.append(PortDraft(name, None, f"{kind} {duration} {name}"))
                continue
            type_ = self.random.choice(self.types if self.chance(0.3) else inputs)
            sources = self.sources()
            fed = [rule.output for rule in self.rules if rule.name in sources]
            if fed and self.chance(0.8):
                type_ = self.random.choice([each for each in self.types if fed[0].is_under(each)])
            text = f"{type_.name} {name}"
            if sources:
                text += f" from {', '.join(sources)}"
            if self.chance(0.25):
                text += f" where {self.predicate(type_.attributes, 2)}"
            ports.append(PortDraft(name, type_, text))
        return RuleDraft(f"Rule{len(self.rules) + 1}{self.suffix}", output, ports)

    def sources(self) -> list[str]:
        """What a port reads: rules that were drawn before, sources, everything from outside."""
        sources = []
        if self.rules and self.chance(0.5):
            drawn = self.random.choice(self.rules).name
            sources += list(dict.fromkeys([drawn, self.random.choice(self.rules).name]))
        if self.chance(0.1):
            rules = [f"ensue/{rule.name}" for rule in self.rules]
            sources.append(f'"{self.random.choice([*SOURCES, *rules])}"')
        if self.chance(0.2):
            sources.append("outside")
        self.random.shuffle(sources)
        return sources

    def head(self, rule: RuleDraft, word: str) -> str:
        ports = ", ".join(port.text for port in rule.ports)
        role = "internal " if self.chance(0.1) else ""
        return f"{role}{rule.output.name} {word} {rule.name} ({ports})"

    def by_clause(self, rule: RuleDraft) -> str:
        if not self.chance(0.35):
            return ""
        keys = [self.key(rule) for _ in range(1 if self.chance(0.75) else 2)]
        good = list(dict.fromkeys(key for key in keys if key))
        return f" by {', '.join(good)}" if good else ""

    def key(self, rule: RuleDraft) -> str | None:
        kinds = {
            alike: [
                [name for name in port.type.attributes if KINDS[name] in alike]
                for port in rule.event_ports
                if port.type
            ]
            for alike in (("short", "long"), ("string",), ("boolean",), ("float",))
        }
        possible = [alike for alike, names in kinds.items() if all(names)]
        if not possible:
            return self.random.choice(["source", "subject", None])
        names = kinds[self.random.choice(possible)]
        common = sorted(set(names[0]).intersection(*names))
        if common and self.chance(0.6):
            return self.random.choice(common)
        if len(names) < 2:
            return common[0] if common else None
        chosen = zip(rule.event_ports, names, strict=True)
        return " = ".join(f"{port.name}.{self.random.choice(each)}" for port, each in chosen)

    # --- predicates and values -------------------------------------------------------------------

    def predicate(self, attributes: Sequence[str], depth: int) -> str:
        if depth > 0 and self.chance(0.3):
            form = self.random.choice(["({} AND {})", "({} OR {})", "NOT ({})", "({} XOR {})"])
            parts = [self.predicate(attributes, depth - 1) for _ in range(form.count("{}"))]
            return form.format(*parts)
        attributes = [name for name in attributes if name not in MOMENT]
        if not attributes or self.chance(0.1):
            source = f"source = '{self.random.choice(SOURCES)}'"
            return self.random.choice([source, "type != 'A'", "subject = 'x'", "EXISTS subject"])
        name = self.random.choice(attributes)
        kind = ATTRIBUTES[name]
        if self.chance(0.1):
            return f"EXISTS {name}"
        if kind == "boolean":
            return f"{name} = {self.literal(kind)}"
        if kind == "string":
            return f"{name} {self.random.choice(['=', '!='])} {self.literal(kind)}"
        if self.chance(0.15):
            return f"{name} IN (1, 2)" if kind in ("short", "long") else f"{name} IN (1.5, 2.0)"
        sign = self.random.choice(["=", "!=", "<", "<=", ">", ">="])
        return f"{name} {sign} {self.literal(kind)}"

    def literal(self, kind: str) -> str:
        if kind == "boolean":
            return self.random.choice(["TRUE", "FALSE"])
        if kind == "string":
            return self.random.choice(["'x'", "'y'", '"x"'])
        if kind == "float":
            return self.random.choice(["0.5", "1.5", "2.0", "2.5"])
        return str(self.random.randint(0, 3))

    def value(self, rule: RuleDraft, kind: str) -> str:
        if kind == "timestamp":
            return f"{self.random.choice(rule.ports).name}.time"
        readable = [
            f"{port.name}.{name}"
            for port in rule.event_ports
            if port.type
            for name in port.type.attributes
            if KINDS[name] == kind
        ]
        if not readable or self.chance(0.2):
            return self.literal(kind)
        first = self.random.choice(readable)
        if kind in ("short", "long") and self.chance(0.2):
            return f"{first} {self.random.choice('+-*')} {self.random.choice(readable)}"
        return first

    # --- filters ---------------------------------------------------------------------------------

    def filter_text(self, rule: RuleDraft) -> str:
        count = self.random.choice([1, 1, 1, 2, 2, 3])
        branches = " || ".join(
            self.filter(rule, self.random.randint(1, self.depth)) for _ in range(count)
        )
        clauses = [self.by_clause(rule)]
        if self.chance(0.3):
            clauses.append(f" within {self.random.choice(list(DURATIONS))}")
        if self.chance(0.3):
            clauses.append(f" bind {self.random.choice(['first', 'last'])}")
        self.random.shuffle(clauses)
        body = [*self.initially(rule), *self.cases(rule)]
        lines = "".join(f"\n    {line}" for line in body)
        head = self.head(rule, "correlation")
        return f"{head}\n    {branches}\n   {''.join(clauses)}\n{{{lines}\n}}"

    def filter(self, rule: RuleDraft, depth: int, labels: bool = True) -> str:
        if labels and len(rule.labels) < 6 and self.chance(0.25):
            label = f"l{len(rule.labels) + 1}"
            rule.labels.append(label)
            return f"{label}:({self.filter(rule, depth)})"
        if depth == 0 or self.chance(0.15):
            return self.random.choice(rule.ports).name
        if self.chance(0.12):
            repeated = self.filter(rule, depth - 1, labels=False)
            return f"({repeated}){{{self.random.randint(1, 3)}}}"
        sign = self.random.choice([" + ", " ; ", " | "])
        parts = [
            self.filter(rule, depth - 1 - self.random.randint(0, 1) if depth > 1 else 0, labels)
            for _ in range(self.random.choice([2, 2, 2, 3]))
        ]
        # Brackets only now and then, so that precedence is used too.
        return sign.join(f"({part})" if self.chance(0.7) else part for part in parts)

    def initially(self, rule: RuleDraft) -> list[str]:
        if not self.chance(self.changes / 2):
            return []
        statements = [self.change(rule, ("abort", "abort", "toggle"))] if rule.labels else []
        if self.chance(0.4):
            statements.append(self.push_new(rule))
        if rule.labels and self.chance(0.2):
            statements.append(self.change(rule, ("revive", "toggle")))
        return statements

    def cases(self, rule: RuleDraft) -> list[str]:
        lines = []
        for _ in range(self.random.randint(1, 4)):
            statements = [self.statement(rule) for _ in range(self.random.choice([1, 1, 1, 2, 3]))]
            lines.append(f"case {self.condition(rule, 2)}: {' '.join(statements)}")
        if self.chance(0.85):
            lines.append(f"case true: {self.push_new(rule)}")
        return lines

    def condition(self, rule: RuleDraft, depth: int) -> str:
        if not rule.labels or self.chance(0.15):
            return "true"
        if depth > 0 and self.chance(0.35):
            form = self.random.choice(["({} & {})", "({} | {})", "!({})", "({} & {} & {})"])
            parts = [self.condition(rule, depth - 1) for _ in range(form.count("{}"))]
            return form.format(*parts)
        return self.random.choice(["", "", "!"]) + self.random.choice(rule.labels)

    def statement(self, rule: RuleDraft) -> str:
        if rule.labels and self.chance(self.changes):
            return self.change(rule, ("abort", "revive", "revive", "toggle"))
        pushable = [p for p in rule.event_ports if p.type and p.type.is_under(rule.output)]
        if pushable and self.chance(0.6):
            return f"push {self.random.choice(pushable).name}{self.beside(rule)};"
        return self.push_new(rule)

    def change(self, rule: RuleDraft, kinds: Sequence[str]) -> str:
        labels = self.random.sample(rule.labels, 1 if self.chance(0.8) else len(rule.labels))
        return f"{self.random.choice(kinds)}({', '.join(labels)});"

    def push_new(self, rule: RuleDraft) -> str:
        type_ = self.output_type(rule)
        given = [name for name in type_.attributes if self.chance(0.8)]
        values = [f"{name} = {self.value(rule, KINDS[name])}" for name in given]
        return f"push new {type_.name} {{ {', '.join(values)} }}{self.beside(rule)};"

    def beside(self, rule: RuleDraft) -> str:
        """What `with` sets, if anything; it has numbers of its own to be drawn from."""
        self.random, usual = self.of_extensions, self.random
        given = {name: kind for name, kind in EXTENSIONS.items() if self.chance(0.5)}
        values = [f"{name} = {self.value(rule, kind)}" for name, kind in given.items()]
        is_there = bool(values) and self.chance(0.4)
        self.random = usual
        return f" with {{ {', '.join(values)} }}" if is_there else ""

    def output_type(self, rule: RuleDraft) -> TypeDraft:
        below = [each for each in self.types if each.is_under(rule.output)]
        return rule.output if self.chance(0.4) else self.random.choice(below)

    # --- ECL -------------------------------------------------------------------------------------

    def ecl_text(self, rule: RuleDraft) -> str:
        body = self.ecl(rule, self.random.randint(1, self.depth))
        if not any(word in body for word in ("push(", "notify")) or self.chance(0.4):
            body = f"{self.ecl_push(rule)} {{ {body} }}"
        if self.chance(0.7):
            body = f"repeat {{ {body} }}"
        return f"{self.head(rule, 'ecl')}\n   {self.by_clause(rule)}\n{{\n    {body}\n}}"

    def ecl_push(self, rule: RuleDraft) -> str:
        return "notify" if self.chance(0.5) else f"push({self.output_type(rule).name})"

    def ecl(self, rule: RuleDraft, depth: int) -> str:
        if depth == 0 or self.chance(0.12):
            return self.ecl_leaf(rule)
        form = self.random.choice(
            [
                "accumulate",
                "accumulate",
                "select",
                "select*",
                "sequential",
                "sequential",
                "parallel",
                "unless",
                "unless",
                "unless",
                "fail",
                "repeat",
                "persist",
                "loop",
                "push",
                "push",
                "push",
                "modes",
            ]
        )
        if form == "unless":
            return f"do {{ {self.ecl(rule, depth - 1)} }} unless {{ {self.ecl(rule, depth - 1)} }}"
        if form == "fail":
            return f"fail {{ {self.ecl(rule, depth - 1)} }}"
        if form == "push":
            return f"{self.ecl_push(rule)} {{ {self.ecl(rule, depth - 1)} }}"
        if form in ("repeat", "persist", "loop"):
            bound = f"({self.random.randint(1, 3)})" if self.chance(0.6) else ""
            return f"{form}{bound} {{ {self.ecl(rule, depth - 1)} }}"
        if form == "modes":
            modes = " ".join(
                f"in ({self.ecl(rule, self.random.choice([0, 0, 0, 1, 2]) if depth > 2 else 0)})"
                f" do {{ {self.ecl(rule, depth - 1)} }}"
                for _ in range(self.random.randint(1, 3))
            )
            return f"modes {{ {modes} }}"
        parts = [self.ecl(rule, depth - 1) for _ in range(self.random.choice([1, 2, 2, 2, 3]))]
        return f"{form} {{ {', '.join(parts)} }}"

    def ecl_leaf(self, rule: RuleDraft) -> str:
        if self.chance(self.timers / 2):
            return f"timeout({self.random.choice(list(DURATIONS))})"
        if self.chance(0.8):
            return self.random.choice(rule.ports).name
        attributes = sorted({name for type_ in rule.types for name in type_.attributes})
        return self.random.choice(
            [
                f"timeout({self.random.choice(list(DURATIONS))})",
                f"timeout({self.random.choice(list(DURATIONS))})",
                f"< {self.predicate(attributes, 1)} >",
                f"< {self.predicate(attributes, 1)} >",
                "true",
                "true",
                "false",
            ]
        )

    # --- the stream ------------------------------------------------------------------------------

    def draw_events(self) -> list[dict[str, Any]]:
        count = self.random.choice([0, 4, 12, 25, 40, 60, 60])
        inputs = [each for each in self.types if not each.name.startswith("Out")]
        paces = [(0.0, 1.0), (0.0, 0.5, 1.0, 1.5), (1.0,), (0.0, 0.0, 0.25, 3.0)]
        # A long and slow stream would be mostly timers, and the oracle takes its time with them.
        steps = self.random.choice([*paces, (0.5, 2.0, 5.0)] if count < 20 else paces)
        disorder = self.chance(0.3)
        now = 0.0
        events = []
        for number in range(1, count + 1):
            now += self.random.choice(steps)
            time = now
            if disorder and self.chance(0.3):
                time = max(0.0, now - self.random.choice([0.5, 1.0, 2.0, 4.0]))
            type_ = self.random.choice(self.types if self.chance(0.1) else inputs)
            data = {name: self.datum(KINDS[name]) for name in type_.attributes}
            event: dict[str, Any] = {
                "id": f"e{number if self.chance(0.98) else number // 2}",
                "source": self.random.choice(SOURCES),
                "type": type_.name if self.chance(0.95) else "Unknown",
                "time": datetime_of(round(time * SECOND)).isoformat().replace("+00:00", "Z"),
                "data": data,
            }
            if self.chance(0.2):
                event["subject"] = self.random.choice(["x", "y"])
            if self.of_extensions.random() < 0.2:
                event["priority"] = self.of_extensions.choice([0, 4, 9])
            events.append(event)
        return events

    def datum(self, kind: str) -> Any:
        if kind == "timestamp" or self.chance(0.06):
            return None
        if kind == "boolean":
            return self.chance(0.5)
        if kind == "string":
            return self.random.choice(["x", "y", "x", "y", ""])
        if kind == "float":
            return self.random.choice([0.5, 1.5, 2.0, 2.5, 3.0])
        if kind == "long" and self.chance(0.03):
            return self.random.choice([2**31 - 1, -(2**31)])
        return self.random.choice([0, 1, 1, 2, 2, 3])
