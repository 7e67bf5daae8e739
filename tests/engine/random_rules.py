"""One generator of random libraries for every test of rules that run together.

A library is of a *kind*: plain filters, filters with windows, filters that switch labels, filters
that bind the first event, expressions, rules with timers, or all of them mixed. A kind by itself,
`related`, has the clauses over several events, which run in no group. All rules of a library
share a key, so that an engine may hold them in one group; some are alike but for what their ports
ask for and for the lengths of their windows and timers, so that they share a table.
"""

from __future__ import annotations

from random import Random
from typing import Any

import ensue
from ensue.events.event import Event
from tests.agreement.observed import as_text

TYPES = """
eventtype T { attribute string k, w; attribute long n; attribute double x; };
eventtype U : T {};
eventtype V : T {};
eventtype Found {
    attribute long first, last; attribute double real;
    attribute string word; attribute boolean flag;
};
eventtype When { attribute timestamp at; attribute long n; };
eventtype Noted {};
eventtype Keyed { attribute string k; attribute short n; attribute long other; };
"""
PORTS = ("T a where n > 2", "U b", "V c where n = 1 OR n = 5", "T d where n < 2", "T e")
GROUPED_KINDS = ("plain", "windows", "labels", "first", "expressions", "timers", "mixed")
KINDS = (*GROUPED_KINDS, "related")
READER = "Noted correlation Reader (Found f from R0, R1) f { case true: push new Noted { }; }"
"""A rule that is fed by others."""


def library_text(seed: int, kind: str, rules: int = 9) -> str:
    random = Random(seed)
    key = random.choice(["by k", "by k", "by k, n", ""])
    return TYPES + "\n".join(rule(f"R{number}", random, kind, key) for number in range(rules))


def rule(name: str, random: Random, kind: str, key: str) -> str:
    """A rule of a kind."""
    if kind == "mixed":
        kind = random.choice(GROUPED_KINDS[:-1])
    match kind:
        case "plain":
            return _alike(name, random, key) if _chance(random) else _filter(name, random, key)
        case "windows":
            clauses = f"within {random.choice([1, 2, 3, 5, 9, 40])} ms {key}"
            return (
                _alike(name, random, clauses) if _chance(random) else _filter(name, random, clauses)
            )
        case "labels":
            return _switching(name, random, key)
        case "first":
            within = f"within {random.choice([1, 3, 9])} ms " if _chance(random) else ""
            return _filter(name, random, f"bind first {within}{key}")
        case "expressions":
            return _expression(name, random, key)
        case "related":
            return _related(name, random, key)
        case _:
            return (
                _timed_filter(name, random, key) if _chance(random) else _timed(name, random, key)
            )


def _chance(random: Random) -> bool:
    return random.random() < 0.5


def _ports(random: Random) -> list[str]:
    """The ports, of which some ask for a source, or for something else than they usually do."""
    return [_asking(port, random) for port in PORTS]


def _asking(port: str, random: Random) -> str:
    said, _, where = port.partition(" where ")
    if random.random() < 0.1:
        said += " from 's1'"
    if random.random() < 0.15:
        where = random.choice(["w = 'x'", "w != 'x'", "n < 2 OR w = 'y'"])
    return f"{said} where {where}" if where else said


def _story(random: Random, depth: int) -> str:
    if depth == 0 or random.random() < 0.2:
        times = random.choice(["", "", "", "{2}", "{5}"])
        return random.choice("abcde") + times
    sign = random.choice([" ; ", " ; ", " + ", " | "])
    parts = [_story(random, depth - 1) for _ in range(random.choice([2, 2, 3]))]
    return f"({sign.join(parts)})"


def _filter(name: str, random: Random, clauses: str) -> str:
    """A filter of some shape, with labels and cases of several kinds."""
    ports = _ports(random)
    random.shuffle(ports)
    first, second = random.sample("abcde", 2)
    more = f" || m:({_story(random, 1)})" if random.random() < 0.3 else ""
    start = "push new Found { first = 0 };" if random.random() < 0.2 else ""
    case = random.choice(
        [
            f"case l: push new Found {{ first = {first}.n, last = {second}.n }};",
            f"case l: push new Found {{ first = {first}.n }}; push new Found {{ }};",
            f"case true: push new Found {{ last = {first}.n + {second}.n }};",
            f"case true: push new Found {{ word = CONCAT({first}.k, {second}.w),"
            f" flag = {first}.n = 3, last = {second}.n / ({first}.n - 1) }};"
            f" push new Found {{ word = {second}.id }};",
        ]
    )
    if more:
        case += " case m & !l: push new Found { };"
    return (
        f"Found correlation {name} ({', '.join(ports)})"
        f" l:({_story(random, 2)}){more} {clauses} {{ {start} {case} }}"
    )


def _alike(name: str, random: Random, clauses: str) -> str:
    """One of a few shapes, so that several share a table."""
    ports = random.sample(_ports(random), 3)
    names = [each.split()[1] for each in ports]
    story = random.choice(["{} ; {} ; {}", "{} + {} + {}", "{} ; ({} + {})"]).format(*names)
    return (
        f"Found correlation {name} ({', '.join(ports)}) {story} {clauses}"
        f" {{ case true: push new Found {{ first = {names[0]}.n, last = {names[2]}.n }}; }}"
    )


def _switching(name: str, random: Random, key: str) -> str:
    """A filter whose cases abort and revive labels; what is bound may be older than the last."""
    story = random.choice(
        [
            "l:(a ; b) | m:(c ; e)",
            "l:(a ; e) + m:(b | d)",
            "l:a ; m:(b + c)",
            "l:(a ; b ; e) || m:(d ; e)",
        ]
    )
    change = random.choice(
        [
            "case l: push new Found { first = a.n, last = b.n }; abort(l);"
            " case m: push new Found { first = c.n }; revive(l);",
            "case l: push new Found { first = a.n }; toggle(m);"
            " case m & !l: push new Found { last = d.n };",
            "case true: push new Found { first = a.n, last = e.n }; toggle(l);",
            "case l: push new Found { flag = true }; abort(l, m); case true: revive(m);",
        ]
    )
    start = "push new Found { first = 0 }; abort(l);" if random.random() < 0.2 else ""
    within = f"within {random.choice([2, 3, 9])} ms " if random.random() < 0.3 else ""
    return (
        f"Found correlation {name} ({', '.join(_ports(random))}) {story} {within}{key}"
        f" {{ {start} {change} }}"
    )


def _related(name: str, random: Random, key: str) -> str:
    """A filter whose clauses relate events: mostly a chain of groups, now and then anything."""
    names = random.sample("abcde", random.choice([1, 1, 2, 2, 3]))
    if _chance(random):
        story = random.choice([" ; ", " ; ", " + "]).join(names)
    else:
        story = " ; ".join(
            random.choice(
                [f"({each} + {other})", each, f"{each}_:{each}", f"{each}{{2}}", f"{each}{{9}}"]
            )
            for each, other in zip(names, random.sample("abcde", len(names)), strict=True)
        )
    if random.random() < 0.1:
        story = random.choice([f"({story}) | e", f"{story} ; timeout(2 ms)", f"{story} || e ; e"])
    clauses = [random.choice(["", "keep all", "keep last", "keep none"])]
    clauses.append(random.choice(["", "bind latest", "bind first", "bind last"]))
    if random.random() < 0.3:
        clauses.append(f"unless {random.choice('abcde')}")
    if random.random() < 0.7:
        clauses.append(f"within {random.choice([1, 2, 3, 5, 9, 40])} ms")
    if random.random() < 0.8:
        clauses.append(f"having {_condition(random, names)}")
    first, last = random.choice(names), random.choice(names)
    real = random.choice([_aggregate(random, names), f"{first}.x", f"{last}.x / 3"])
    case = random.choice(
        [
            f"push new Found {{ first = {first}.n, last = {last}.n }};",
            f"push new Found {{ first = count({last}), real = {real} }};",
            f"push new Found {{ first = count({first}) }}; push new Found {{ real = {real} }};",
        ]
    )
    return (
        f"Found correlation {name} ({', '.join(_ports(random))}) {story} {' '.join(clauses)} {key}"
        f" {{ case true: {case} }}"
    )


def _aggregate(random: Random, names: list[str]) -> str:
    function = random.choice(["count", "distinct", "sum", "avg", "min", "max", "first", "last"])
    port = random.choice(names)
    return f"count({port})" if function == "count" else f"{function}({port}.{random.choice('nx')})"


def _condition(random: Random, names: list[str]) -> str:
    """A condition, mostly one that numbers tell."""

    def number() -> str:
        value = f"{random.choice(names)}.{random.choice('nx')}"
        plain = [value, f"0.95 * {value}", str(random.randrange(6)), f"({value} - 1) / 2"]
        return random.choice([*plain, *(_aggregate(random, names) for _ in plain)])

    sign = random.choice(["<", "<=", ">", ">=", "=", "!="])
    one = f"{number()} {sign} {number()}"
    more = [
        one,
        f"({one}) AND ({number()} > {number()})",
        f"({one}) OR ({number()} < 3)",
        f"NOT ({one})",
        f"{number()} BETWEEN 1 AND {number()}",
        f"({number()} % 3) * {number()} > -{number()}",
        f"ABS({names[0]}.n - 4) > 1",
        f"COALESCE({number()}, 0) > 2",
    ]
    return random.choice([*more[:3], *more])


def _expression(name: str, random: Random, key: str) -> str:
    output = random.choice(["Noted", "Keyed"])
    body = random.choice(
        [
            "repeat { notify { sequential { a, b } } }",
            "repeat { notify { accumulate { a, b, c } } }",
            "repeat { notify { do { sequential { a, c } } unless { d } } }",
            "repeat { notify { select { sequential { a, b }, sequential { c, e, e } } } }",
            "repeat { notify { sequential { < n > 1 >, b, < w = 'x' > } } }",
            "repeat(2) { notify { fail { do { a } unless { b } } } }",
            "notify { sequential { a, select { b, c } } }",
            "modes { in (a) do { repeat { notify { b } } }"
            " in (c) do { repeat { push(%s) { true } } } }",
            "parallel { repeat { notify { a } }, repeat { push(%s) { accumulate { b, c } } } }",
        ]
    ).replace("%s", output)
    return f"{output} ecl {name} ({', '.join(_ports(random))}) {key} {{ {body} }}"


def _length(random: Random) -> str:
    return f"{random.choice([1, 1, 2, 3, 5])} ms"


def _timed(name: str, random: Random, key: str) -> str:
    """An expression with timeouts, some of them due together, some beside timers."""
    times = [_length(random) for _ in range(3)]
    body = random.choice(
        [
            "repeat { notify { sequential { a, do { timeout(%s) } unless { b } } } }",
            "repeat { notify { do { sequential { a, d } } unless { timeout(%s) } } }",
            "parallel { repeat { notify { sequential { a, timeout(%s) } } },"
            " repeat { push(Noted) { sequential { c, e, timeout(%s) } } },"
            " repeat { notify { do { timeout(%s) } unless { b } } } }",
            "notify { sequential { a, timeout(%s), e } }",
            "repeat { notify { sequential { true, timeout(%s), true } } }",
            "modes { in (a) do { repeat { notify { timeout(%s) } } }"
            " in (b) do { repeat { push(Noted) { sequential { timeout(%s), e } } } } }",
        ]
    )
    body = body % tuple(times[: body.count("%s")])
    ports = _ports(random)
    if random.random() < 0.3:
        ports.append(f"{random.choice(['every', 'deadline'])} {_length(random)} t")
    output = random.choice(["Noted", "Keyed"])
    body = body.replace("push(Noted)", f"push({output})")
    return f"{output} ecl {name} ({', '.join(ports)}) {key} {{ {body} }}"


def _timed_filter(name: str, random: Random, key: str) -> str:
    """A filter with a timer port or two, and now and then a window, or the first event bound."""
    ports = [*_ports(random), f"{random.choice(['every', 'deadline'])} {_length(random)} t"]
    story = random.choice(["{} ; t", "{} + t", "t ; {}", "({}) ; t ; t", "{} || t"])
    if random.random() < 0.3:
        ports.append(f"{random.choice(['every', 'deadline'])} {_length(random)} u")
        story = random.choice(["({}) ; t ; u", "{} + t + u", "t + u || {}", "{} ; (t | u)"])
    random.shuffle(ports)
    within = f"within {random.choice([1, 2, 3, 9])} ms " if random.random() < 0.4 else ""
    bind = "bind first " if random.random() < 0.2 else ""
    start = "push new When { n = 0 };" if random.random() < 0.2 else ""
    case = random.choice(
        [
            "case true: push new When { at = t.time, n = a.n };",
            "case l: push new When { n = b.n }; push new When { };",
            "case true: push new When { at = t.time };",
        ]
    )
    story = story.format(f"l:({_story(random, 1)})")
    return (
        f"When correlation {name} ({', '.join(ports)}) {story} {bind}{within}{key}"
        f" {{ {start} {case} }}"
    )


def events(seed: int, count: int = 150) -> list[Event]:
    """Some at one time, some far from the last, some with an id again, or with one of an alarm."""
    random = Random(seed)
    given, time = [], random.choice([0, -4000])
    for n in range(count):
        time += random.choice([0, 0, 200, 500, 500, 1000, 1000, 1500, 4000])
        data: dict[str, Any] = {
            "k": random.choice(["x", "y", "z", None]),
            "n": random.randrange(8),
            "w": random.choice("xyz"),
            "x": random.choice([None, 0.1, 0.2, -0.0, 2.5, 1e17, -1e-9, 3.0, 1.0]),
        }
        name = random.choice([f"e{n}", f"e{n}", f"e{n - 1}", "timer"])
        source = random.choice(["s", "s1"])
        more = {"k": "other", "n": 2} if random.random() < 0.1 else {}
        given.append(Event(name, source, random.choice(["T", "U", "V"]), time, data, more))
    return given


def reading(name: str, type_: str, time: int, key: str | None, number: int) -> Event:
    """An event of which only its key and its number matter."""
    return Event(name, "s", type_, time, {"k": key, "n": number, "w": "x", "x": 1.0})


def expected_of(library: ensue.Library, given: list[Event], until: int) -> list[str]:
    """What the definitions say."""
    run = library.start("reference")
    made = [output for event in given for output in run.push(event)] + run.finish(until)
    return [as_text(output) for output in made]
