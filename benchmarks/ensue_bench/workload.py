"""The rules and events that are measured: made from a seed, the same in every run.

*Leak* is the rule of the batch measurements: `a ; b ; c` under a string key, reset by `d`, with a
numeric predicate on `a`; a fifth of the events is of a type that no port wants. *Logins* is the one
of the step engine: predicates, a key, a reset and a transformer. *Readings* are for many rules
that share fifty predicates.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ensue.events.event import Event

FIRST_TIME = 1_700_000_000_000_000
EVENT_GAP = 10
"""Microseconds between two events of the stream."""

# --- one rule in batches -------------------------------------------------------------------------

STEP_TYPES = ("Login", "Open", "Copy", "Logout", "Ping")
LEAK_TYPES = (
    "eventtype Step { attribute string user; attribute double size; };\n"
    + "".join(f"eventtype {name} : Step {{}};\n" for name in STEP_TYPES)
    + "eventtype Alert { attribute string user; attribute double first; attribute double last; };\n"
)


def leak(within: str = "") -> str:
    """`a ; b ; c` by user, reset by `d`."""
    return f"""{LEAK_TYPES}
Alert correlation Leak (Login a where size > 0.1, Open b, Copy c, Logout d)
    l1:(a ; b ; c) | l2:d
    {within} by user
{{
    case l1: push new Alert {{ user = a.user, first = a.size, last = c.size }};
}}
"""


def both(within: str) -> str:
    """`a + b` in any order, in a window, by user."""
    return f"""{LEAK_TYPES}
Alert correlation Both (Login a where size > 0.1, Open b) a + b {within} by user
{{
    case true: push new Alert {{ user = a.user, first = a.size, last = b.size }};
}}
"""


def window_of(keys: int, events_of_a_key: float = 10) -> str:
    """A window in which a key has about so many events."""
    return f"within {max(1, round(keys * EVENT_GAP * events_of_a_key / 1000))} ms"


class UserSteps:
    """Steps of many users, as plain columns."""

    def __init__(self, count: int, keys: int, seed: int = 1) -> None:
        draw = np.random.default_rng(seed)
        self.keys = keys
        self.types: npt.NDArray[np.int64] = draw.integers(0, len(STEP_TYPES), count)
        self.users: npt.NDArray[np.int64] = draw.integers(0, keys, count)
        self.sizes: npt.NDArray[np.float64] = draw.random(count)
        self.times: npt.NDArray[np.int64] = FIRST_TIME + np.arange(count) * EVENT_GAP

    def __len__(self) -> int:
        return len(self.types)

    def table(self) -> pa.Table:
        """With types and users as strings, as they come from files."""
        count = len(self)
        users = pa.array([user_name(number) for number in range(self.keys)])
        return pa.table(
            {
                "id": pa.array(np.arange(count)).cast(pa.string()),
                "source": pa.repeat(pa.scalar("bench"), count),
                "type": pa.array(STEP_TYPES).take(pa.array(self.types)),
                "time": pa.array(self.times).cast(pa.timestamp("us", "UTC")),
                "user": users.take(pa.array(self.users)),
                "size": self.sizes,
            }
        )

    def events(self) -> list[Event]:
        columns = (each.tolist() for each in (self.types, self.users, self.sizes, self.times))
        return [
            Event(
                str(number),
                "bench",
                STEP_TYPES[kind],
                time,
                {"user": user_name(user), "size": size},
            )
            for number, (kind, user, size, time) in enumerate(zip(*columns, strict=True))
        ]


def user_name(number: int) -> str:
    return f"user-{number:08d}"


def mid_match(keys: int) -> pa.Table:
    """Two events for each key, in shuffled order, after which it waits for its last one."""
    draw = np.random.default_rng(2)
    rows = 2 * keys
    who = np.r_[draw.permutation(keys), draw.permutation(keys)]
    users = pa.array([user_name(number) for number in range(keys)])
    return pa.table(
        {
            "id": pa.array(np.arange(rows)).cast(pa.string()),
            "type": pa.array(["Login", "Open"]).take(pa.array(np.repeat([0, 1], keys))),
            "time": pa.array(FIRST_TIME + np.arange(rows)).cast(pa.timestamp("us", "UTC")),
            "user": users.take(pa.array(who)),
            "size": draw.random(rows) * 0.8 + 0.2,
        }
    )


# --- one rule, event by event --------------------------------------------------------------------

_LOGIN_TYPES = """
eventtype Login { attribute string user; attribute boolean ok; };
eventtype Reset { attribute string user; };
eventtype Alarm { attribute string user; };
"""
_LOGIN_PORTS = "(Login bad where ok = false, Login good where ok = true, Reset r)"


def _guessed(clauses: str) -> str:
    return f"""{_LOGIN_TYPES}Alarm correlation Guessed {_LOGIN_PORTS}
        l1:(bad ; bad ; good) | l2:r {clauses}
        {{ case l1: push new Alarm {{ user = good.user }}; }}"""


LOGIN_RULES = {
    "by key": _guessed("by user"),
    "no key": _guessed(""),
    "by key, within 10 s": _guessed("within 10 s by user"),
    "ECL, by key": f"""{_LOGIN_TYPES}Alarm ecl Guessed {_LOGIN_PORTS} by user
        {{ repeat {{ notify {{ do {{ sequential {{ bad, bad, good }} }} unless {{ r }} }} }} }}""",
}


def logins(count: int, users: int, failing: float = 0.3, seed: int = 1) -> list[Event]:
    """Logins of many users, some of which fail, and now and then a reset."""
    draw = random.Random(seed)
    events = []
    for number in range(count):
        data: dict[str, Any] = {"user": f"user{draw.randrange(users)}"}
        kind = "Reset" if draw.random() < 0.05 else "Login"
        if kind == "Login":
            data["ok"] = draw.random() >= failing
        events.append(Event(f"e{number}", "app", kind, FIRST_TIME + number * 1000, data))
    return events


# --- many rules ----------------------------------------------------------------------------------

READING_TYPES = """
eventtype Reading { attribute string device; attribute string kind; attribute long level; };
eventtype Found { attribute string device; };
"""
VOCABULARIES = {
    "kinds": [f"kind = 'k{number}'" for number in range(50)],
    "high kinds": [f"kind = 'k{number}' AND level > 40" for number in range(50)],
    "thresholds": [f"level > {number}" for number in range(50)],
}
"""Of fifty kinds an event is one, and every sixth is high; of fifty thresholds it passes half.

So a rule over kinds fires some times in a thousand events, and one over high kinds once; one over
thresholds fires on every eighth event, which is more of a flood than of a finding.
"""


SHAPES = ("a ; b ; c", "a + b + c", "a ; (b + c)", "(a | b) ; c", "a + (b ; c)")
WINDOWS = ("500 ms", "1 s", "2 s", "5 s")
"""A device has fifty events in a second, of which one is of a given kind."""


FOUND = "{ case true: push new Found { device = c.device }; }"
SWITCHED = "{ case x: push new Found { device = b.device }; case y: toggle(x); }"


def sharing_rules(count: int, predicates: Sequence[str], seed: int = 7) -> str:
    """Rules `a ; b ; c` by device, each over three of the predicates."""
    return _over_predicates(count, predicates, seed, lambda draw, number: (SHAPES[0], FOUND))  # noqa: ARG005


def windowed_rules(count: int, predicates: Sequence[str], seed: int = 7) -> str:
    """As `sharing_rules`, each rule with a window of one of several lengths."""

    def story(draw: random.Random, number: int) -> tuple[str, str]:  # noqa: ARG001
        return f"{SHAPES[0]} within {draw.choice(WINDOWS)}", FOUND

    return _over_predicates(count, predicates, seed, story)


def mixed_rules(count: int, predicates: Sequence[str], seed: int = 7) -> str:
    """Rules of several shapes, every other one in a window."""

    def story(draw: random.Random, number: int) -> tuple[str, str]:
        shape, window = draw.choice(SHAPES), draw.choice(WINDOWS)
        return shape if number % 2 else f"{shape} within {window}", FOUND

    return _over_predicates(count, predicates, seed, story)


def switched_rules(count: int, predicates: Sequence[str], seed: int = 7) -> str:
    """Rules `a ; b` that are switched off and on again by `c`."""
    said = "x:(a ; b) || y:c", SWITCHED
    return _over_predicates(count, predicates, seed, lambda draw, number: said)  # noqa: ARG005


def _over_predicates(
    count: int,
    predicates: Sequence[str],
    seed: int,
    story: Callable[[random.Random, int], tuple[str, str]],
) -> str:
    """Rules by what they look for, and their statements."""
    draw = random.Random(seed)
    texts = []
    for number in range(count):
        a, b, c = draw.sample(predicates, 3)
        looked_for, statements = story(draw, number)
        texts.append(
            f"Found correlation R{number} (Reading a where {a}, Reading b where {b},"
            f" Reading c where {c}) {looked_for} by device {statements}"
        )
    return READING_TYPES + "\n".join(texts)


def timed_rules(count: int, predicates: Sequence[str], seed: int = 7) -> str:
    """Rules in ECL for an `a` without a `b` for some time after it."""
    draw = random.Random(seed)
    texts = []
    for number in range(count):
        a, b = draw.sample(predicates, 2)
        absence = f"do {{ timeout({draw.choice(WINDOWS)}) }} unless {{ b }}"
        texts.append(
            f"Found ecl R{number} (Reading a where {a}, Reading b where {b}) by device"
            f" {{ repeat {{ notify {{ sequential {{ a, {absence} }} }} }} }}"
        )
    return READING_TYPES + "\n".join(texts)


_OTHER_RULES = {
    "in windows": windowed_rules,
    "mixed": mixed_rules,
    "switched": switched_rules,
    "with timeouts": timed_rules,
}
MANY_RULES: dict[str, Callable[[int], str]] = {
    **{name: partial(sharing_rules, predicates=said) for name, said in VOCABULARIES.items()},
    **{
        f"{name}, {kind}": partial(rules, predicates=VOCABULARIES[name])
        for kind, rules in _OTHER_RULES.items()
        for name in ("kinds", "high kinds")
    },
}
"""Libraries of as many rules as are asked for, all over one vocabulary."""


def readings(count: int, devices: int, seed: int = 1) -> list[Event]:
    draw = random.Random(seed)
    return [
        Event(
            f"e{number}",
            "plant",
            "Reading",
            FIRST_TIME + number * 1000,
            {
                "device": f"d{draw.randrange(devices)}",
                "kind": f"k{draw.randrange(50)}",
                "level": draw.randrange(50),
            },
        )
        for number in range(count)
    ]


# --- large expressions ---------------------------------------------------------------------------


def accumulation(parts: int) -> str:
    """ECL that waits for all of so many types, again and again."""
    names = [f"p{number}" for number in range(parts)]
    types = "".join(f"eventtype {name.upper()} {{}};\n" for name in names)
    ports = ", ".join(f"{name.upper()} {name}" for name in names)
    return (
        f"{types}eventtype All {{}};\nAll ecl Everything ({ports})\n"
        f"{{ repeat {{ notify {{ accumulate {{ {', '.join(names)} }} }} }} }}"
    )


def combined(operator: str, parts: int, clauses: str = "") -> str:
    """A filter of so many ports, all joined by one operator."""
    names = [f"p{number}" for number in range(parts)]
    types = "".join(f"eventtype {name.upper()} {{}};\n" for name in names)
    ports = ", ".join(f"{name.upper()} {name}" for name in names)
    return (
        f"{types}eventtype All {{}};\nAll correlation Everything ({ports})"
        f" {f' {operator} '.join(names)} {clauses} {{ case true: push new All {{}}; }}"
    )


def repetition(times: int) -> str:
    """`a{n}`."""
    return (
        "eventtype A {};\neventtype Out {};\n"
        f"Out correlation Many (A a) a{{{times}}} {{ case true: push new Out {{}}; }}"
    )


def parts_of(count: int, parts: int, seed: int = 3) -> list[Event]:
    """Events of the types that `accumulation` and `combined` wait for."""
    draw = random.Random(seed)
    return [
        Event(f"e{number}", "s", f"P{draw.randrange(parts)}", FIRST_TIME + number * 1000, {})
        for number in range(count)
    ]
