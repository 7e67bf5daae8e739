"""Random histories and filters: small numbers of everything, so that much falls together."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from ensue.events.event import Event
from ensue.events.times import format_time

ORIGIN = 1_704_067_200_000_000
VALUES: tuple[Any, ...] = (
    *(0, 1, 2, 3, 7, 7.5, -1, 2.0, True, False, None, 2**60, 2**60 + 1),
    *("1", "02", "7.5", "true", "TRUE", "abc", "abd", "ab", "", "x_y", "2024-01-01T00:00:00Z"),
    *([1, 2], {"p": 1}, {"p": "abc", "q": {"r": 7}}),
)
LITERALS = (
    *("0", "1", "2", "7", "7.5", "-1", "'1'", "'02'", "'true'", "'abc'", "'ab'", "TRUE", "FALSE"),
    *("''", "1152921504606846976", "2024-01-01T00:00:00Z"),
)
NAMES = (
    "a",
    "b",
    "c",
    "A",
    "tag",
    "type",
    "source",
    "a.p",
    "b.q.r",
    "missing",
    "id",
    "rank",
    "Rank",
)
RELATIONS = (
    *("BEFORE", "AFTER", "MEETS", "MET_BY", "OVERLAPS", "OVERLAPPED_BY", "STARTS", "STARTED_BY"),
    *("DURING", "CONTAINS", "FINISHES", "FINISHED_BY", "EQUALS"),
)
PATTERNS = ("ab%", "a_c", "%c", "1%", "x\\_%", "")
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")


@dataclass
class Generator:
    random: Random
    ticks: int = 12
    uncertain: bool = False

    def event(self, number: int) -> Event:
        random = self.random
        extensions: dict[str, Any] = {}
        start = random.randrange(self.ticks)
        last = start + random.randrange(3) if self.uncertain and random.random() < 0.4 else start
        if last > start:
            extensions["timeuntil"] = _time(last)
        kind = random.random()
        if kind < 0.15:
            extensions["phase"] = "start"
        elif kind < 0.75:
            end = start + random.randrange(6)
            extensions["endtime"] = _time(end)
            if self.uncertain and (random.random() < 0.4 or end < last):
                extensions["endtimeuntil"] = _time(max(last, end) + random.randrange(3))
        if random.random() < 0.3:
            extensions["tag"] = random.choice(("x", "1", "2.0", "true"))
        if random.random() < 0.2:
            extensions["rank"] = random.randrange(3)
        names = random.sample(("a", "b", "c", "A", "tag"), random.randrange(4))
        data = {name: random.choice(VALUES) for name in names}
        type_ = random.choice(("T", "U"))
        return Event(f"e{number}", "s", type_, ORIGIN + start, data or None, extensions)

    def filter(self, depth: int) -> str:
        random = self.random
        roll = random.random()
        if roll < 0.25:
            sign = random.choice(("AND", "AND", "OR", "XOR"))
            return f"({self.filter(depth)}) {sign} ({self.filter(depth)})"
        if roll < 0.33:
            return f"NOT ({self.filter(depth)})"
        return self.term(depth - 1) if depth and roll < 0.75 else self.leaf()

    def term(self, depth: int) -> str:
        random = self.random
        reference = random.choice(("start", "end"))
        inner = self.filter(depth)
        times = random.choice(("", "", "2 TIMES", "3 TIMES"))
        match random.randrange(5):
            case 0 | 1:
                word = random.choice(("AFTER", "AFTER", "BEFORE"))
                limit = random.choice(("", f"{random.randrange(1, 9) / 1000} ms"))
                given = ", ".join(each for each in (limit, times) if each)
                return f"{reference} {word}{f'({given})' if given else ''} ({inner})"
            case 2:
                return f"{reference} DURING{f'({times})' if times else ''} ({inner})"
            case 3:
                relation = random.choice(RELATIONS)
                if relation in ("AFTER", "BEFORE", "DURING") or random.random() < 0.6:
                    return f"{relation} ({inner})"
                return f"{reference} {relation} ({inner})"
            case _:
                name = random.choice((*NAMES, "start", "end", "a", "b"))
                limit = random.choice(("", ", 1", ", 2", ", 5"))
                return f"{name} FILTER({random.choice(COMPARISONS)}{limit}) ({inner})"

    def leaf(self) -> str:
        random = self.random
        name = random.choice(NAMES)
        literal = random.choice(LITERALS)
        match random.randrange(8):
            case 0:
                return f"EXISTS {name.split('.')[0]}"
            case 1:
                return f"{name} IN ({literal}, {random.choice(LITERALS)})"
            case 2:
                return f"{name} LIKE '{random.choice(PATTERNS)}'"
            case 3:
                return f"{literal} {random.choice(COMPARISONS)} {name}"
            case 4:
                return f"{name} HAS {random.choice(('ANY', 'ALL', 'ONLY'))} (1, 2)"
            case 5:
                return "TRUE"
            case _:
                return f"{name} {random.choice(COMPARISONS)} {literal}"


def _time(ticks: int) -> str:
    return format_time(ORIGIN + ticks)
