"""Text of rules and worked examples, read into the oracle's own data.

In comes a library as the worked examples write it; out goes a `Model`. This is a reader for text
that is known to be right, by the grammar of the design: it refuses nothing, and leaves out what
the oracle does not judge (`abort`, statements before the first case, nested types).
"""

from __future__ import annotations

import json
import re
from typing import Any

from .model import (
    AGGREGATES,
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
)

UNITS = {"ms": 1000, "s": SECOND, "min": 60 * SECOND, "h": 3600 * SECOND, "d": 86400 * SECOND}
TOKEN = re.compile(r"\s*(\d+\.\d+|\d+|\w+|'[^']*'|\"[^\"]*\"|\|\||!=|<=|>=|.)")


def read_model(text: str) -> Model:
    return Reader(re.sub(r"//.*", "", text)).model()


def read_scenario(case: dict[str, Any]) -> Scenario:
    """A worked example: its events are `time TYPE data`, numbered from 1."""
    events = []
    for number, line in enumerate(case["events"], 1):
        time, type_, data = line.split(" ", 2)
        moment = round(float(time) * SECOND)
        events.append(Moment(str(number), "here", type_, moment, json.loads(data)))
    until = case.get("until")
    end = None if until is None else round(until * SECOND)
    return Scenario(0, read_model(case["library"]), tuple(events), end)


class Reader:
    def __init__(self, text: str) -> None:
        self.tokens: list[str] = [*TOKEN.findall(text.strip()), ""]
        self.at = 0

    @property
    def next(self) -> str:
        return self.tokens[self.at]

    def take(self, *wanted: str) -> str:
        token = self.next
        assert not wanted or token in wanted, f"{token} for {wanted}"
        self.at += 1
        return token

    def skip(self, token: str) -> bool:
        found = self.next == token
        self.at += found
        return found

    def model(self) -> Model:
        types, rules = [], []
        while self.next:
            if self.skip("eventtype"):
                types.append(self.event_type())
            elif self.next != ";":
                rules.append(self.rule())
            else:
                self.take()
        return Model(tuple(types), tuple(rules))

    def event_type(self) -> EventType:
        name = self.take()
        parent = self.take() if self.skip(":") else None
        attributes = []
        self.take("{")
        while not self.skip("}"):
            self.take("attribute", "public")
            words = []
            while self.next != ";":
                words.append(self.take())
            self.take(";")
            # What is worked out has been given to the events before they come here.
            words = words[: words.index("=")] if "=" in words else words
            attributes.append((words[-1], " ".join(words[:-1])))
        return EventType(name, tuple(attributes), parent)

    def rule(self) -> Rule:
        output, _, name = self.take(), self.take("correlation"), self.take()
        self.take("(")
        ports = [self.port()]
        while self.skip(","):
            ports.append(self.port())
        self.take(")")
        branches = [self.filter()]
        while self.skip("||"):
            branches.append(self.filter())
        clauses = self.clauses()
        cases = []
        self.take("{")
        while not self.skip("}"):
            self.take("case")
            labels = self.labels()
            self.take(":")
            push = self.push()
            beside = self.values() if self.skip("with") else ()
            cases.append(Case(labels, push, beside))
            self.skip(";")
        return Rule(output, name, tuple(ports), tuple(branches), clauses, tuple(cases))

    def port(self) -> Port | Timer:
        if self.next in ("every", "deadline"):
            kind = self.take()
            return Timer("every" if kind == "every" else "deadline", self.duration(), self.take())
        type_, name = self.take(), self.take()
        sources = [self.take()] if self.skip("from") else []
        # A comma is followed by another source, or by the type and the name of the next port.
        while sources and self.next == "," and self.tokens[self.at + 2] in (",", ")", "where"):
            self.take()
            sources.append(self.take())
        written = tuple(each.replace("'", '"') for each in sources)
        return Port(type_, name, written, self.value() if self.skip("where") else None)

    def duration(self) -> int:
        number = float(self.take())
        return round(number * UNITS[self.take()])

    def clauses(self) -> Clauses:
        found: dict[str, Any] = {}
        while (word := self.next) != "{":
            self.take()
            if word == "within":
                found[word] = self.duration()
            elif word == "having":
                found[word] = self.value()
            elif word == "unless":
                names = [self.take()]
                while self.skip(","):
                    names.append(self.take())
                found[word] = tuple(names)
            elif word == "by":
                keys = [self.key()]
                while self.skip(","):
                    keys.append(self.key())
                found[word] = tuple(keys)
            else:
                assert word in ("bind", "keep"), word
                found[word] = self.take()
        return Clauses(**found)

    def key(self) -> tuple[tuple[str, str], ...]:
        parts = []
        while True:
            name = self.take()
            parts.append((name, self.take()) if self.skip(".") else ("", name))
            if not self.skip("="):
                return tuple(parts)

    # --- filters: tightest first label, +, ;, | -----------------------------------------------

    def filter(self, signs: str = "|;+") -> Node:
        if not signs:
            return self.labelled()
        sign, tighter = signs[0], signs[1:]
        node = self.filter(tighter)
        while self.skip(sign):
            right = self.timeout() if self.next == "timeout" else self.filter(tighter)
            node = Pair("|" if sign == "|" else "+" if sign == "+" else ";", node, right)
        return node

    def timeout(self) -> Timeout:
        self.take("timeout")
        self.take("(")
        duration = self.duration()
        self.take(")")
        return Timeout(duration)

    def labelled(self) -> Node:
        if self.skip("("):
            node = self.filter()
            self.take(")")
        else:
            name = self.take()
            if self.skip(":"):
                return Label(name, self.labelled())
            node = Place(name)
        # A `{` after a filter opens the body, unless it holds a number and is closed.
        while self.next == "{" and self.tokens[self.at + 1].isdigit():
            self.take()
            node = Times(node, int(self.take()))
            self.take("}")
        return node

    # --- cases ----------------------------------------------------------------------------------

    def labels(self) -> tuple[tuple[str, ...], ...]:
        """A disjunction of conjunctions, each with or without its brackets."""
        if self.skip("true"):
            return ()
        every = []
        while True:
            bracket = self.skip("(")
            literals = [self.literal()]
            while self.skip("&"):
                literals.append(self.literal())
            if bracket:
                self.take(")")
            every.append(tuple(literals))
            if not self.skip("|"):
                return tuple(every)

    def literal(self) -> str:
        return ("!" if self.skip("!") else "") + self.take()

    def push(self) -> str | New:
        self.take("push")
        if not self.skip("new"):
            return self.take()
        return New(self.take(), self.values())

    def values(self) -> tuple[tuple[str, Value], ...]:
        values = []
        self.take("{")
        while not self.skip("}"):
            name, _ = self.take(), self.take("=")
            values.append((name, self.value()))
            self.skip(",")
        return tuple(values)

    # --- values: tightest last ------------------------------------------------------------------

    LEVELS = (("OR",), ("AND",), ("=", "!=", "<", "<=", ">", ">="), ("+", "-"), ("*", "/", "%"))

    def value(self, level: int = 0) -> Value:
        if level == len(self.LEVELS):
            return self.operand()
        found = self.value(level + 1)
        while self.next in self.LEVELS[level]:
            found = Binary(self.take(), found, self.value(level + 1))
        return found

    def operand(self) -> Value:
        if self.skip("("):
            inner = self.value()
            if self.skip("IS"):
                inner = IsNull(inner, self.skip("NOT"))
                self.take("NULL")
            self.take(")")
            return inner
        if self.skip("EXISTS"):
            body = self.operand()
            assert isinstance(body, Read), "`EXISTS` asks of a name"
            return Exists(body)
        if self.skip("NOT"):
            return Not(self.operand())
        sign = -1 if self.skip("-") else 1
        token = self.take()
        if token[0] in "'\"":
            return Const(token[1:-1])
        if token[0].isdigit():
            return Const(sign * (float(token) if "." in token else int(token)))
        if token in ("TRUE", "FALSE"):
            return Const(token == "TRUE")
        if token == "COALESCE":
            self.take("(")
            parts = [self.value()]
            while self.skip(","):
                parts.append(self.value())
            self.take(")")
            return Coalesce(tuple(parts))
        if token.lower() in AGGREGATES and self.skip("("):
            port = self.take()
            name = self.take() if self.skip(".") else None
            self.take(")")
            return Aggregate(token.lower(), port, name)
        return Read(token, self.take()) if self.skip(".") else Read(None, token)
