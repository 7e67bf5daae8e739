"""The quick way of an event means what the general way means, for every value that may come."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from itertools import product
from random import Random
from types import MappingProxyType
from typing import Any

import pytest

import ensue
from ensue.engine.core import predicates
from ensue.engine.run import Run
from ensue.errors import EventError
from ensue.events.event import Event

TYPE = """
eventtype T {
    attribute string s; attribute short i; attribute unsigned long long u; attribute double d;
    attribute float f; attribute boolean b; attribute char c; attribute timestamp t;
    attribute sequence<long> q;
};
eventtype Out { attribute string s; attribute short i; };
"""
PREDICATES = [
    "s = 'x'", "s = 'true'", "s != 'x'", "i = 3", "i = 3.0", "i > 2", "i <= 2.5",
    "d = 1", "d < 2.5", "f >= 0.5", "f = i", "b", "b = TRUE", "NOT b", "b AND i = 3", "i = 3 OR b",
    "b XOR s = 'x'", "i = 3 AND b OR s = 'x'", "i IN (1, 3)", "s IN ('x', 'y')", "s NOT IN ('x')",
    "i IN (1, 3.5)", "s LIKE 'x%'", "s NOT LIKE '%y'", "EXISTS s", "EXISTS nothing", "NOT EXISTS i",
    "i + 1 = 4", "i = '3'", "s = 3", "s > 1", "b = 'true'", "t > '2024-01-01T00:00:00Z'",
    "LENGTH(s) = 1", "id = 'e'", "source = 'src'", "time > '1970-01-01T00:00:00Z'", "subject = 'x'",
    "c = 'x'", "-i = -3", "u > 9223372036854775807", "TRUE", "i > 3", "i >= 3", "i < 3", "i <= 3",
    "i > -1", "i <= 0", "u > 4", "u >= 5", "u < 5", "d > 1.0", "d >= 1.0", "d < 1.0", "d <= 1.0",
    "d > -0.5", "s = 'x' AND i > 2", "d > 0.5 AND s = 'y'", "s = 'true' AND i + 1 = 4",
    "i = 3 AND (b OR s = 'x')", "i = 2 AND EXISTS nothing", "i > 2 AND i = 3 AND d", "b OR i = 2",
    "i = 0 AND NOT b", "s = 'y' XOR i = 3",
]  # fmt: skip
GOOD = {
    "s": "x", "i": 3, "u": 5, "d": 1.0, "f": 0.5, "b": True, "c": "x",
    "t": datetime(2024, 5, 6, tzinfo=UTC), "q": [1, 2],
}  # fmt: skip
VALUES: Mapping[str, list[Any]] = {
    "s": ["", "y", "true", "3", None, 3, True],
    "i": [0, 2, None, 3.0, 40_000, True, "3"],
    "u": [0, 2**64 - 1, 2**64, -1, None],
    "d": [1, 2, 2.5, float("nan"), float("inf"), None, "1", True],
    "f": [3, 1e39, 0.25, None, "x"],
    "b": [False, None, 1, "true"],
    "c": ["y", "", "xy", None, 1],
    "t": ["2024-05-06T07:08:09Z", datetime(2024, 5, 6), datetime(2023, 1, 1, tzinfo=UTC),
          datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=2))), None, 5],
    "q": [[], (1, 2), ["x"], None, [2**40]],
}  # fmt: skip


KEYS = ["s", "i", "d", "b", "t", "subject", "s, i", "b, d", "u, c"]


def library() -> ensue.Library:
    ports = ", ".join(f"T p{number} where {text}" for number, text in enumerate(PREDICATES))
    either = " | ".join(f"l{number}:p{number}" for number in range(len(PREDICATES)))
    labels = " | ".join(f"l{number}" for number in range(len(PREDICATES)))
    rules = [f"Out correlation All ({ports}) {either} {{ case {labels}: push new Out {{}}; }}"]
    rules += [
        f"Out correlation By{number} (T a) a by {key}"
        " { case true: push new Out { s = a.s, i = a.i }; }"
        for number, key in enumerate(KEYS)
    ]
    return ensue.parse(TYPE + "\n".join(rules))


def events() -> list[Event]:
    datas: list[Any] = [GOOD, None, {}, [], "x", MappingProxyType(GOOD)]
    datas += [{**GOOD, name: value} for name, values in VALUES.items() for value in values]
    datas += [{k: v for k, v in GOOD.items() if k != name} for name in GOOD]
    extensions: list[dict[str, Any]] = [{}, {"subject": "x"}, {"s": "y", "i": 7}, {"i": 2**70}]
    return [Event("e", "src", "T", 5, data, extra) for data, extra in product(datas, extensions)]


def outcome(run: Run, event: Event) -> object:
    try:
        return [(each.id, each.data, dict(each.extensions)) for each in run.push(event)]
    except EventError as error:
        return error.problems


def test_every_value_passes_or_is_refused_as_by_the_definitions() -> None:
    """Values, predicates, keys and errors: the same from the routines as from the reference."""
    rules = library()
    quick, plain = rules.start("step"), rules.start("reference")
    for event in events():
        assert outcome(quick, event) == outcome(plain, event), event
    assert quick.counts == plain.counts


@pytest.mark.parametrize("key", KEYS)
def test_a_rule_alone_reads_every_value_as_by_the_definitions(key: str) -> None:
    """Where a single rule reads an event there is a way for it alone: under each kind of key."""
    rule = f"""Out correlation R (T a where i = 3 OR b, T z where s = 'y') l:(a ; a) | z by {key}
        {{ case l: push new Out {{ s = a.s, i = a.i }}; }}"""
    rules = ensue.parse(TYPE + rule)
    quick, plain = rules.start("step"), rules.start("reference")
    for event in events():
        assert outcome(quick, event) == outcome(plain, event), event
    assert quick.counts == plain.counts


def test_an_attribute_whose_name_an_event_answers_itself_is_asked_in_full() -> None:
    """In lower case these are attributes of any event, and go after those that a type declares."""
    rules = ensue.parse(
        "eventtype T { attribute string Source; attribute boolean ID; attribute long Time; };"
        "eventtype Out { attribute string v; };"
        "Out correlation P (T a where Source = 'x', T b where ID = TRUE, T c where Time > 3)"
        " a | b | c by Source { case true: push new Out { v = a.Source }; }"
        "Out correlation Q (T a where Source = 'src') a by ID, Time { case true: push new Out {}; }"
    )
    quick, plain = rules.start("step"), rules.start("reference")
    values = product(["x", "y", None], [True, False, None], [2, 4, None], [{}, {"source2": "x"}])
    for source, identity, time, extra in values:
        data = {"Source": source, "ID": identity, "Time": time}
        event = Event("e", "src", "T", 5, data, extra)
        assert outcome(quick, event) == outcome(plain, event), event
    assert quick.counts == plain.counts


def test_what_a_rule_alone_puts_out_is_read_by_those_it_feeds_and_counted() -> None:
    rules = ensue.parse(
        "eventtype A { attribute long v; }; eventtype B { attribute long v; };"
        "eventtype C { attribute long v; };"
        "B correlation First (A a) a { case true: push new B { v = a.v }; }"
        "C correlation Second (B b from First) b { case true: push new C { v = b.v }; }"
    )
    quick, plain = rules.start("step"), rules.start("reference")
    for number in range(3):
        event = Event(f"e{number}", "s", "A", number, {"v": number})
        assert outcome(quick, event) == outcome(plain, event)
    assert quick.counts.outputs == plain.counts.outputs == 6


def test_an_event_that_is_refused_moves_nothing() -> None:
    run = library().start("step")
    with pytest.raises(EventError):
        run.push(Event("e", "src", "T", 50, {**GOOD, "i": "no number"}))

    assert run.counts.events == 0
    assert run.push(Event("e", "src", "T", 5, GOOD))


def test_what_a_user_writes_is_never_read_as_python() -> None:
    """Names and texts that would be mischief in Python are only names and texts."""
    text = """
    eventtype T { attribute string __import__; attribute string lambda; attribute long holds; };
    T correlation R (T a where __import__ = "') or exit() #", T b where holds = 1 AND lambda = '"""
    text += """{tests}') a | b from_ { case true: push a; }""".replace(" from_", "")
    run = ensue.parse(text).start("step")
    event = Event(
        "e", "s", "T", 1, {"__import__": "') or exit() #", "lambda": "{tests}", "holds": 1}
    )

    assert len(run.push(event)) == 1


MANY = """
    LENGTH(s) = {n}; n * 2 > {n} AND n < {n} + 3; s LIKE 'a{n}%'; s LIKE '%{n}' AND n > {n};
    n > {n} AND n < {n} + 2; n = {n} OR s = '{n}'; NOT (n = {n}) AND s LIKE '_{n}';
    n IN ({n}, 3) AND s != 'a1'; EXISTS s AND n + 0 = {n}; n > {n} XOR s LIKE 'a%'
"""


@pytest.mark.parametrize("seed", range(4))
def test_many_rules_that_are_looked_up_together_fire_as_the_definitions_say(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for values that are null, or converted to their type."""
    monkeypatch.setitem(predicates.MANY, "pattern", 3)
    monkeypatch.setitem(predicates.MANY, "plain", 3)
    random = Random(seed)
    texts = [each.strip() for each in MANY.split(";")]
    rules = "".join(
        f"Out correlation R{number} (E a where "
        f"{random.choice(texts).format(n=random.randrange(9))}) a"
        f" {{ case true: push new Out {{ n = {number} }}; }}\n"
        for number in range(60)
    )
    types = "eventtype E { attribute long n; attribute string s; };\n"
    library = ensue.parse(f"{types} eventtype Out {{ attribute long n; }};\n{rules}")
    step, reference = library.start(engine="step"), library.start(engine="reference")
    for number in range(80):
        data = {
            "n": random.choice([*range(12), 3.0, None]),
            "s": random.choice(["", "a1", "a12", "b3", "xa4", "5", None]),
        }
        event = Event(str(number), "test", "E", number, data)

        assert step.push(event) == reference.push(event)


@pytest.mark.parametrize("engine", ["reference", "step", "batch"])
@pytest.mark.parametrize("clauses", ["by k", "by k bind first"])
def test_an_event_that_only_binds_or_does_nothing_counts_as_the_last_of_its_key(
    clauses: str, engine: str
) -> None:
    """Of two keys whose timers are due together the key whose last event is older goes first."""
    text = f"""
        eventtype A {{ attribute string k; }};
        eventtype Out {{ attribute string k; }};
        Out correlation R (A a, every 10 s t) a ; t {clauses}
        {{ case true: push new Out {{ k = a.k }}; }}
    """
    run = Run(ensue.parse(text).checked, engine)
    made = []
    for number, (key, time) in enumerate([("x", 0), ("y", 0), ("x", 5), ("z", 10), ("z", 21)]):
        made += run.push(Event(str(number), "s", "A", time * 1_000_000, {"k": key}))

    assert [(each.data["k"], each.time // 1_000_000) for each in made] == [
        ("y", 10),
        ("x", 10),
        ("z", 20),
    ]
