"""Covering, and the index over many filters, answer as brute force does.

Covering is compared with every pair of a pool of publications, and the index, event by event and in
columns, with a plain loop while filters come and go.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

from ensue.errors import LibraryError, UsageError
from ensue.events.event import Event
from ensue.lang.expressions import (
    Arithmetic,
    Call,
    Comparison,
    Exists,
    In,
    Like,
    Literal,
    Logic,
    Name,
    Negate,
    Not,
)
from ensue.lang.expressions.evaluation import holds
from ensue.lang.expressions.tree import Has
from ensue.subscriptions import Filter, Index, covers
from ensue.subscriptions.covering import counterexample
from tests.subscriptions.strategies import CONSTANTS, PATTERNS, VALUES

NAMES = ["x", "y", "type"]
SIGNS = ["=", "=", "!=", "<", "<=", ">", ">="]
SHORT = range(2)


def hunt(seed: int) -> Mapping[str, int]:
    maker, tried = Maker(seed), Counter[str]()
    events = [maker.event() for _ in range(200)]
    for _ in range(10):
        try_covering(maker, events, tried)
    try_index(maker, events, tried)
    return tried


class Maker:
    """Filters and events from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def atom(self) -> Any:
        choose = self.random.choice
        name = Name((choose(NAMES),))
        if self.random.random() < 0.2:
            return self.computed(name)
        match self.random.randrange(8):
            case 0:
                bounds = Literal(choose(CONSTANTS)), Literal(choose(CONSTANTS))
                kinds = [Exists(name), Call("IS_NULL", (name,)), Call("BETWEEN", (name, *bounds))]
                return choose(kinds)
            case 1 | 2:
                return Like(name, choose(PATTERNS), self.random.random() < 0.3)
            case 3:
                options = tuple(Literal(choose(CONSTANTS)) for _ in range(choose([1, 2, 3])))
                return In(name, options, self.random.random() < 0.3)
            case 4:
                options = tuple(Literal(choose(CONSTANTS)) for _ in range(choose([1, 2])))
                return Has(name, choose(["ANY", "ALL", "ONLY"]), options)
            case _:
                return Comparison(name, ((choose(SIGNS), Literal(choose(CONSTANTS))),))

    def computed(self, name: Name) -> Any:
        """An atom that asks a value computed of a name."""
        choose = self.random.choice
        other = Literal(choose([1, 2, -1, 0.5]))
        value: Any = choose(
            [
                Call(choose(["LENGTH", "UPPER", "ABS", "STRING", "INT", "TRIM"]), (name,)),
                Call("COALESCE", (name, Literal(choose(CONSTANTS)))),
                Call("LENGTH", (Call("CONCAT", (name, Name(("y",)))),)),
                Arithmetic(name, ((choose(["+", "-", "*", "/", "%"]), other),)),
                Arithmetic(other, ((choose(["+", "-"]), name),)),
                Negate(name),
            ]
        )
        constant = Literal(choose(CONSTANTS))
        match self.random.randrange(5):
            case 0:
                return Like(value, choose(PATTERNS), self.random.random() < 0.3)
            case 1:
                return In(value, (constant, Literal(2)), self.random.random() < 0.3)
            case 2:
                return Comparison(constant, ((choose(SIGNS), value),))
            case _:
                return Comparison(value, ((choose(SIGNS), constant),))

    def predicate(self, depth: int = 2) -> Any:
        kind = self.random.random()
        if depth == 0 or kind < 0.3:
            return self.atom()
        if kind < 0.45:
            return Not(self.predicate(depth - 1))
        count = self.random.choice([2, 2, 3])
        operands = tuple(self.predicate(depth - 1) for _ in range(count))
        if kind < 0.95:
            sign = self.random.choice(["AND", "AND", "OR"])
            return Logic(operands, (sign,) * (count - 1))
        return Logic(operands, tuple(self.random.choices(["AND", "OR", "XOR"], k=count - 1)))

    def filter(self) -> Filter:
        while True:
            try:
                return Filter(self.predicate())
            except (LibraryError, UsageError):
                continue

    def event(self) -> Event:
        data = {
            name: self.random.choice(VALUES) for name in ("x", "y") if self.random.random() < 0.8
        }
        return Event("1", "s", self.random.choice(["a", "ab", "1", "T"]), 0, data)


def try_covering(maker: Maker, events: list[Event], tried: Counter[str]) -> None:
    general, special = maker.filter(), maker.filter()
    if maker.random.random() < 0.4:
        special = Filter(Logic((general.expression, special.expression), ("AND",)))
    answer = covers(general, special)
    tried[f"answers {answer}"] += 1
    shown = [e for e in events if special.matches(e) and not general.matches(e)]
    if answer is True and shown:
        raise AssertionError(f"covers({general!r}, {special!r}) is True, but see {shown[0]!r}")
    if answer is False:
        event = counterexample(general, special)
        if event is None or not special.matches(event) or general.matches(event):
            raise AssertionError(f"covers({general!r}, {special!r}) is False by {event!r}")
    if answer is None and shown:
        tried["answers None where a publication shows that it does not"] += 1


def try_index(maker: Maker, events: list[Event], tried: Counter[str]) -> None:
    index, live = Index(), dict[int, Filter]()
    for number in range(maker.random.randrange(1, 60)):
        live[number] = maker.filter()
        index.add(number, live[number])
        if maker.random.random() < 0.3:
            gone = maker.random.choice(list(live))
            index.remove(gone)
            del live[gone]
    chosen = maker.random.sample(events, 20)
    expected = [[n for n, f in live.items() if holds(f.expression, e)] for e in chosen]
    for way, found in (
        ("match", [index.match(event) for event in chosen]),
        ("match_columns", index.match_columns(chosen)),
    ):
        for event, wanted, got in zip(chosen, expected, found, strict=True):
            if wanted != got:
                wrong = [str(live[each]) for each in set(wanted) ^ set(got)]
                raise AssertionError(f"{way} of {event!r} differs for {wrong}")
    tried["matches"] += sum(map(len, expected))
