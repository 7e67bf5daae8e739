"""Tables with a checksum that fits, and something in them that does not.

A forgery is the body of real tables with a few of its values changed at random: numbers, words and
whole records, left out, doubled, exchanged, or of another kind. Loading one either says what is
wrong with it, or gives a library that every engine can run.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from copy import deepcopy
from random import Random
from typing import Any

import msgspec
import pytest

import ensue
from ensue.errors import EnsueError, EventError, TableError
from ensue.events.event import Event
from ensue.lang.syntax import TimerPort
from ensue.library import Library

FORGERIES = 60
HEADER = 42
SECOND = 1_000_000

TYPES = """
eventtype A { attribute long v; attribute string k; }
eventtype B : A { attribute double w; }
eventtype Out { attribute long n; }
eventtype Told {}
"""

RULES = {
    "labels": """Out correlation X (A a where v > 3, B b from "s", A c)
        l1:(a + b) | l2:(a ; l3:c) || l4:c by k
        { abort(l3); case l1: push new Out { n = b.v }; toggle(l3); case l4: revive(l3); }""",
    "window": """Out correlation X (A a, B b, every 3 s t) a ; b ; (a | t) within 5 s
        by a.k = b.k { case true: push new Out { n = a.v }; }""",
    "first": """Out correlation X (A a, B b) a ; b within 5 s bind first
        { case true: push new Out { n = a.v }; }""",
    "left": """Out correlation X (A a, B b) l:a ; b
        { case l: push new Out {}; abort(l); case !l: revive(l); }""",
    "many": """Out correlation X (A a where k LIKE 'x%', B b) (a ; b){9} | l:(b + b)
        { case !l: push new Out {}; }""",
    "sent": "A correlation X (A a, deadline 10 s d) a | d { case true: push a; }",
    "modes": """Told ecl X (A a where v = 1, A b where v = 2, B c) { modes {
        in (a) do { repeat { notify { accumulate { b, c } } } }
        in (b) do { persist(3) { push(Told) { sequential { <v > 1>, true, c } } } } } }""",
    "quiet": """Told ecl X (A a, B b) by k { repeat { sequential { a, notify {
        do { timeout(4 s) } unless { select* { b, fail { a } } } } } } }""",
}

WORDS: list[Any] = [
    "",
    " ",
    "}",
    "{",
    ";",
    '"',
    "'",
    "\n",
    "a",
    "l1",
    "x" * 300,
    "case",
    "//",
    "/*",
    "(" * 200,
]
NUMBERS: list[Any] = [-1, 0, 1, 2, 3, 7, 10_000, 2**31, 2**53, 2**63 - 1, 2**64 - 1, -(2**63)]


def tables(rule: str) -> bytes:
    return ensue.parse(TYPES + RULES[rule]).tables()


def forged(saved: bytes, random: Random) -> bytes:
    """The tables with a few values changed, and a checksum that fits again."""
    body = msgspec.msgpack.decode(saved[HEADER:])
    for _ in range(random.choice([1, 1, 1, 2, 4])):
        change(body, random)
    packed = msgspec.msgpack.encode(body)
    return saved[: HEADER - 32] + hashlib.sha256(packed).digest() + packed


def change(body: list[Any], random: Random) -> None:
    holders = [each for each in lists_in(body) if each]
    if not holders:
        return
    holder, place = (chosen := random.choice(holders)), random.randrange(len(chosen))
    old = holder[place]
    match random.randrange(6):
        case 0:
            del holder[place]
        case 1:
            holder.insert(place, deepcopy(old))
        case 2:
            other = random.randrange(len(holder))
            holder[place], holder[other] = holder[other], old
        case 3:
            of_another_kind: list[Any] = [
                None,
                True,
                1.5,
                [],
                {},
                b"x",
                random.choice(NUMBERS + WORDS),
            ]
            holder[place] = deepcopy(random.choice([*of_another_kind, random.choice(holders)]))
        case _:
            holder[place] = near(old, random)


def near(old: Any, random: Random) -> Any:
    """Another value of the same kind."""
    if isinstance(old, int):
        return random.choice([old + 1, old - 1, random.randrange(12), random.choice(NUMBERS)])
    if isinstance(old, str):
        return random.choice([old[:-1], old + "x", old + random.choice(WORDS), *WORDS])
    return old


def lists_in(x: list[Any]) -> list[list[Any]]:
    found = [x]
    for each in found:
        found += [inner for inner in each if isinstance(inner, list)]
    return found


def stream(random: Random) -> list[Event]:
    time, made = 0, []
    for number in range(20):
        time += random.choice([0, 1, 1, 2, 6]) * SECOND
        type_ = random.choice("AAB")
        data: dict[str, Any] = {
            "v": random.choice([1, 2, 4]),
            "k": random.choice(["x1", "y", None]),
        }
        if type_ == "B":
            data["w"] = 1.0
        source = random.choice(["s", "u"])
        made.append(Event.of(type_, time=time, id=f"e{number}", source=source, data=data))
    return made


def use(library: Library, events: list[Event], *, in_columns: bool) -> None:
    """What people do with a library. An engine may say that it cannot run a rule."""
    for engine in ["step", *(["batch"] if in_columns else [])]:
        with suppress(EnsueError):
            list(library.run(events, engine=engine, until=60 * SECOND))
    run = library.start("step")
    with suppress(EventError):  # the types may be others now
        for event in events[:10]:
            run.push(event)
    library.resume(run.snapshot())
    str(library)
    library._repr_html_()
    library.tables()


def has_tiny_periods(library: Library) -> bool:
    """Whether a timer would fire millions of times: that is allowed, and takes its time."""
    ports = [port for each in library.correlations for port in each.ports]
    return any(isinstance(p, TimerPort) and p.period.microseconds < SECOND / 10 for p in ports)


@pytest.mark.parametrize("rule", RULES)
def test_a_forgery_is_refused_or_runs(rule: str) -> None:
    saved, events = tables(rule), stream(Random(1))
    refused = 0
    for seed in range(FORGERIES):
        data = forged(saved, Random(seed))
        try:
            library = Library.from_tables(data)
        except TableError:
            refused += 1
            continue
        if not has_tiny_periods(library):
            use(library, events, in_columns=seed % 10 == 0)

    assert refused > FORGERIES / 3


def test_a_switch_that_would_let_a_branch_fire_for_ever_is_refused() -> None:
    """Reviving a label sets its mark, and nothing that completes a branch."""
    saved = tables("labels")
    body = msgspec.msgpack.decode(saved[HEADER:])
    machine = body[2][-1][2]
    transitions, switches = machine[2], machine[5]
    needed = [each[0] for each in transitions if each[4] == ["fire", 0]]
    switches[-1][4] += [states[0] for states in needed[0]]
    packed = msgspec.msgpack.encode(body)

    with pytest.raises(TableError, match="fires for ever"):
        Library.from_tables(saved[: HEADER - 32] + hashlib.sha256(packed).digest() + packed)
