"""Random libraries, streams and placements, by a seed: what is drawn leans to rules that split.

Six types of events, one port or more for each; rules of every operator, fed by each other,
internal or not, with parameters; types (or sources) put on two to four sites. The libraries of
`tests.oracle` are drawn on other lines, and are placed here too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Any

import ensue
from ensue.errors import LibraryError
from ensue.events.conformance import conform
from ensue.events.event import Event
from ensue.events.times import format_time
from ensue.federation.placement import Site, Sites
from ensue.subscriptions import Filter
from tests.agreement.trials import PlainTrial, RelatedTrial
from tests.oracle import generator
from tests.oracle.values import generator as values_generator

TYPES = """
parameter long least = 1;
parameter duration length = 2 s;
parameter duration pause = 2 s;
eventtype Base { attribute long k; attribute long v; };
eventtype T0 : Base { attribute string s; };
eventtype T1 : Base { attribute double d; };
eventtype T2 : Base { };
eventtype T3 : T2 { attribute timestamp w; };
eventtype T4 : Base { };
eventtype T5 : Base { };
eventtype Out : Base { attribute string t; };
eventtype Out2 : Base { };
eventtype Out3 : Base { };
"""
NAMES = ("T0", "T1", "T2", "T3", "T4", "T5")
WHERES = ("", "", " where v > least", " where v < 3")
LENGTHS = ("1 s", "length", "4 s", "8 s")
KINDS = ("split", "split", "ecl", "ecl", "modes", "aborts", "own", "own", "oracle", "values")
BEGIN = 1_700_000_000_000_000
SECOND = 1_000_000


@dataclass(frozen=True)
class Trial:
    """A library, its sites, and events with the site of each, in the order of one machine."""

    seed: int
    library: ensue.Library
    sites: Sites
    events: tuple[tuple[str, Event], ...]

    def __str__(self) -> str:
        sites = "\n".join(f"// {each}" for each in self.sites.sites)
        events = "\n".join(
            f"{site:6} {(event.time - BEGIN) / SECOND:6.2f} {event.id} {event.type} {event.data}"
            for site, event in self.events
        )
        return f"// seed {self.seed}\n{sites}\n// {self.sites.chosen}\n{self.library}\n{events}"

    def without(self, first: int, last: int) -> Trial:
        return replace(self, events=self.events[:first] + self.events[last:])


def trial(seed: int) -> Trial:
    """The trial of a seed."""
    random = Random(seed)
    kind = random.choice(KINDS)
    if kind == "oracle":
        plain = PlainTrial(generator.scenario(seed))
        library, given = plain.library, list(plain.events)
    elif kind == "values":
        related = RelatedTrial(values_generator.scenario(seed))
        library, given = related.library, list(related.events)
    else:
        library = MAKERS[kind](random)
        drawn = _phases(random) if kind in ("modes", "aborts") else _events(random)
        given = [conform(each, library.checked.types) for each in drawn]
    is_split = kind not in ("own", "oracle", "values")
    return _at(SPLIT if is_split else _sites(random, library, given), seed, library, given)


def placed(seed: int, library: ensue.Library, events: list[Event]) -> Trial:
    """A library and events of any origin, over random sites."""
    return _at(_sites(Random(seed), library, events), seed, library, events)


def _at(sites: Sites, seed: int, library: ensue.Library, events: list[Event]) -> Trial:
    found = [(site, event) for event in events if (site := sites.of_event(event)) is not None]
    found.sort(key=lambda each: (each[1].time, sites[each[0].name].rank))
    return Trial(seed, library, sites, tuple((site.name, event) for site, event in found))


SPLIT = Sites(
    (
        Site("s0", 0, types=frozenset({"T0", "T1"})),
        Site("s1", 1, types=frozenset({"T2", "T4"})),
        Site("s2", 2, types=frozenset({"T3", "T5"})),
    )
)


def _splitting(random: Random) -> ensue.Library:
    """A library of one rule with a subexpression at each of its sites."""
    while True:
        groups = [["T0", "T1"], ["T2", "T4"], ["T5"]]
        random.shuffle(groups)
        drawn = groups[: random.choice([2, 2, 3])]
        declared: list[str] = []
        trees: list[str] = []
        ports: list[str] = []
        labels: list[str] = []
        relates = random.random() < 0.5
        timeouts = relates and random.random() < 0.15
        for types in drawn:
            # T3 is below T2, and arises elsewhere.
            own = [random.choice(types) for _ in range(random.choice([1, 2, 2, 3]))]
            names = [chr(ord("a") + len(ports) + number) for number in range(len(own))]
            for kind, name in zip(own, names, strict=True):
                declared.append(f"{kind} {name}{random.choice(WHERES)}")
            ports += names
            trees.append(_tree(random, names, labels, timeouts))
        body = random.choice([" + ", " ; ", " ; ", " || "]).join(trees)
        if " || " not in body and random.random() < 0.15:
            # One more branch, of events at one of the sites or at two.
            body += f" || {_tree(random, random.sample(ports, min(2, len(ports))), labels, False)}"
        body += random.choice(["", " by k"])
        rule = _rule_of(random, "R0", "Out", ports, declared, body, labels, relates)
        library = _parsed(random, rule)
        if library is not None:
            return library


def _parsed(random: Random, rules: str) -> ensue.Library | None:
    """The library of some rules, with values for some parameters; None if a rule never triggers."""
    values = {"least": random.choice([0, 1, 2]), "length": random.choice(["1 s", "3 s"])}
    try:
        return ensue.parse(TYPES + rules, parameters=values if random.random() < 0.5 else {})
    except LibraryError as error:
        if "circle" not in str(error) and "never" not in str(error):
            raise
        return None


def _grouped(random: Random) -> tuple[list[str], list[list[str]]]:
    """Ports with their declarations, and the names of those at each of two or three sites."""
    groups = [["T0", "T1"], ["T2", "T4"], ["T5"]]
    random.shuffle(groups)
    declared: list[str] = []
    names: list[list[str]] = []
    for types in groups[: random.choice([2, 2, 3])]:
        own = [random.choice(types) for _ in range(random.choice([1, 2, 2, 3]))]
        names.append([chr(ord("a") + len(declared) + number) for number in range(len(own))])
        for kind, name in zip(own, names[-1], strict=True):
            declared.append(f"{kind} {name}{random.choice(WHERES)}")
    return declared, names


def _split_ecl(random: Random) -> ensue.Library:
    """An `ecl` with a subexpression at each of its sites."""
    while True:
        declared, names = _grouped(random)
        joined = random.choice(["accumulate", "accumulate", "sequential", "select"])
        inner = ", ".join(_ecl_of(random, ports) for ports in names)
        body = f"{joined} {{ {inner} }}"
        if random.random() < 0.2:
            body = f"do {{ {body} }} unless {{ {random.choice(random.choice(names))} }}"
        if random.random() < 0.1:
            body = f"accumulate {{ {body}, {random.choice(['timeout(1 s)', '< v > 2 >'])} }}"
        library = _parsed(random, _ecl_rule(random, declared, f"notify {{ {body} }}"))
        if library is not None:
            return library


def _modal(random: Random) -> ensue.Library:
    """An `ecl` with modes that use the ports of several sites, or of one."""
    while True:
        declared, names = _grouped(random)
        ports = [port for group in names for port in group]
        modes = [
            f"in ({_ecl_of(random, [random.choice(ports)])}) do {{"
            f" {random.choice(['repeat', 'repeat', 'persist', 'loop'])}"
            f" {{ notify {{ {_ecl_of(random, random.sample(ports, min(2, len(ports))))} }} }} }}"
            for _ in range(random.choice([2, 2, 3]))
        ]
        body = f"modes {{ {' '.join(modes)} }}"
        if random.random() < 0.2:
            body = f"parallel {{ {body}, repeat {{ notify {{ {_ecl_of(random, ports[:2])} }} }} }}"
        library = _parsed(random, _ecl_rule(random, declared, body, "repeat"))
        if library is not None:
            return library


def _ecl_rule(random: Random, declared: list[str], body: str, keep: str = "") -> str:
    keep = keep or random.choice(["repeat", "repeat", "repeat", "loop", "persist", "repeat(2)"])
    by = random.choice(["", "", " by k"])
    types = "eventtype Done { };\neventtype Half : Done { };\n"
    return f"{types}Done ecl R0 ({', '.join(declared)}){by}\n{{ {keep} {{ {body} }} }}"


def _ecl_of(random: Random, ports: list[str]) -> str:
    """An expression over all of some ports, in their order."""
    if len(ports) == 1:
        return random.choice([ports[0], ports[0], ports[0], f"repeat(2) {{ {ports[0]} }}"])
    cut = random.randrange(1, len(ports))
    parts = [_ecl_of(random, each) for each in (ports[:cut], ports[cut:])]
    if random.random() < 0.12:
        return f"do {{ {parts[0]} }} unless {{ {parts[1]} }}"
    if random.random() < 0.08:
        parts[0] = f"push(Half) {{ {parts[0]} }}"
    kinds = ["accumulate", "sequential", "sequential", "select", "select*", "parallel"]
    kind = random.choices(kinds, [4, 4, 4, 2, 1, 0.2])[0]
    return f"{kind} {{ {', '.join(parts)} }}"


def _aborting(random: Random) -> ensue.Library:
    """A filter of branches that abort and revive each other's labels."""
    while True:
        declared, names = _grouped(random)
        ports = [port for group in names for port in group]
        labels: list[str] = []
        trees = []
        for group in (*names, *names[: random.choice([0, 1])]):
            labels.append(f"l{len(labels)}")
            trees.append(f"{labels[-1]}:{_tree(random, group, labels, False)}")
        body = random.choice([" | ", " | ", " || ", " + ", " ; "]).join(trees)
        cases = []
        for label in labels:
            changes = " ".join(
                f"{random.choice(['abort', 'revive', 'toggle'])}({random.choice(labels)});"
                for _ in range(random.choice([0, 1, 2]))
            )
            cases.append(
                f"    case {label}: push new Out {{ v = {random.choice(ports)}.v }}; {changes}"
            )
        within = random.choice(["", "", f" within {random.choice(LENGTHS)}"])
        by = random.choice(["", "", " by k"])
        started = f"abort({random.choice(labels)});" if random.random() < 0.2 else ""
        library = _parsed(
            random,
            f"Out correlation R0 ({', '.join(declared)}) {body}{within}{by}\n"
            f"{{ {started}\n{chr(10).join(cases)}\n}}",
        )
        if library is not None:
            return library


# --- sites --------------------------------------------------------------------------------------


def _sites(random: Random, library: ensue.Library, events: list[Event]) -> Sites:
    number = random.choice([2, 2, 3, 4])
    types = sorted({each.name for each in library.checked.types} | {each.type for each in events})
    sources = sorted({each.source for each in events})
    way = random.choice(["types", "types", "types", "sources", "where"])
    if way == "sources" and len(sources) > 1:
        homes = {each: random.randrange(number) for each in sources}
        sites = [
            Site(f"s{n}", n, sources=tuple(e for e in sources if homes[e] == n) or ("none",))
            for n in range(number)
        ]
    elif way == "where":
        cut = random.choice(["v < 2", "k = 1", "source = 's1'"])
        sites = [
            Site("s0", 0, where=Filter.parse(cut)),
            Site("s1", 1, where=Filter.parse(f"NOT ({cut})")),
        ]
    else:
        homes = {each: random.randrange(number) for each in types}
        sites = [
            Site(f"s{n}", n, types=frozenset(e for e in types if homes[e] == n))
            for n in range(number)
        ]
        if random.random() < 0.2:
            sites.append(Site(f"s{number}", number))
    chosen = {
        each.name: random.choice(sites).name
        for each in library.checked.correlations
        if random.random() < 0.3
    }
    return Sites(tuple(sites), chosen)


# --- events -------------------------------------------------------------------------------------


def _events(random: Random) -> list[Event]:
    keys = random.choice([1, 2, 3])
    names = random.choice([NAMES, NAMES, NAMES[:4], NAMES[:3]])
    time, found = BEGIN, []
    for number in range(random.randrange(10, 70)):
        time += random.choice([0, 0, SECOND // 4, SECOND // 2, SECOND, 2 * SECOND])
        found.append(_event(random, f"e{number}", random.choice(names), time, keys))
    return found


def _event(random: Random, identity: str, name: str, time: int, keys: int) -> Event:
    data: dict[str, Any] = {"k": random.randrange(keys), "v": random.randrange(5)}
    if random.random() < 0.05:
        data["k"] = None
    if name == "T0":
        data["s"] = random.choice(["x", "y"])
    if name == "T1":
        data["d"] = random.choice([0.5, 1.0, 2.5])
    if name == "T3":
        data["w"] = format_time(time)
    extensions = {"subject": "q"} if random.random() < 0.2 else {}
    return Event(identity, random.choice(["s1", "s2"]), name, time, data, extensions)


def _phases(random: Random) -> list[Event]:
    """Events that come in phases, in each of which some types are usual and all others rare."""
    time, found = BEGIN, list[Event]()
    for _ in range(random.randrange(2, 7)):
        usual = random.sample(NAMES, 2)
        for _ in range(random.randrange(3, 25)):
            time += random.choice([0, SECOND // 4, SECOND // 2, SECOND])
            name = random.choice(usual) if random.random() < 0.85 else random.choice(NAMES)
            found.append(_event(random, f"e{len(found)}", name, time, 2))
    return found


# --- libraries ----------------------------------------------------------------------------------


def _library(random: Random) -> ensue.Library:
    while True:
        number = random.choice([1, 1, 2, 3])
        outputs = ["Out", "Out2", "Out3"]
        rules = []
        for each in range(number):
            fed = [f"Out{n + 1 if n else ''}" for n in range(each)] if random.random() < 0.6 else []
            rules.append(_rule(random, f"R{each}", outputs[each], fed))
        random.shuffle(rules)
        library = _parsed(random, "\n".join(rules))
        if library is not None:
            return library


def _number_of(output: str) -> int:
    """The number of the rule that puts out a type."""
    return int(output.removeprefix("Out") or 1) - 1


def _rule(random: Random, name: str, output: str, fed: list[str]) -> str:
    size = random.choice([2, 3, 3, 4, 5])
    types = [random.choice([*NAMES, *fed, *fed]) for _ in range(size)]
    if fed and not set(types) & set(fed):
        types[random.randrange(size)] = random.choice(fed)
    ports = [chr(ord("a") + number) for number in range(size)]
    declared = [
        f"{kind} {port}{f' from R{_number_of(kind)}' if kind in fed else ''}"
        + random.choice(["", "", "", " where v > least", " where v < 4", " where k != 2"])
        for kind, port in zip(types, ports, strict=True)
    ]
    by = random.choice(["", "", " by k"])
    if random.random() < 0.12:
        return _ecl(random, name, ports, declared, by)
    return _filter(random, name, output, ports, declared, by)


def _filter(
    random: Random, name: str, output: str, ports: list[str], declared: list[str], by: str
) -> str:
    labels: list[str] = []
    relates = random.random() < 0.45
    timeouts = relates and random.random() < 0.25
    # Every port once, in the order of types or not: parts that stand together split best.
    order = ports[:]
    if random.random() < 0.3:
        random.shuffle(order)
    if random.random() < 0.25:
        order.append(random.choice(ports))
    body = _tree(random, order, labels, timeouts)
    if random.random() < 0.12:
        body += f" || {_tree(random, random.sample(ports, min(2, len(ports))), labels, False)}"
    if not timeouts and random.random() < 0.08:
        kind = random.choice(["every", "deadline"])
        declared = [*declared, f"{kind} {random.choice(['1 s', '2 s'])} tick"]
        body += random.choice([" | tick", " ; tick", " + tick"])
    return _rule_of(random, name, output, ports, declared, body + by, labels, relates)


def _rule_of(
    random: Random,
    name: str,
    output: str,
    ports: list[str],
    declared: list[str],
    body: str,
    labels: list[str],
    relates: bool,
) -> str:
    clauses = ""
    if random.random() < 0.5:
        clauses += f" within {random.choice(LENGTHS)}"
    if relates:
        clauses += random.choice(["", "", " keep last", " keep all", " keep none"])
        clauses += random.choice(["", " bind latest", " bind latest", " bind first", " bind last"])
        if random.random() < 0.25:
            clauses += f" unless {random.choice(ports)}"
        if random.random() < 0.3:
            port = random.choice(ports)
            conditions = [f"count({port}) > 1", f"{port}.v > 0", f"sum({port}.v) > 2"]
            clauses += f" having {random.choice(conditions)}"
    else:
        clauses += random.choice(["", "", " bind first", " bind last"])
    one = random.choice(ports)
    pushes = [
        f"push {one};",
        f"push new {output} {{ v = {one}.v, k = {ports[0]}.k }};",
        f"push new {output} {{ v = {ports[-1]}.v }};",
    ]
    if relates and random.random() < 0.3:
        pushes.append(f"push new {output} {{ v = count({one}) }};")
    cases = [f"    case true: {random.choice(pushes[1:])}"]
    if random.random() < 0.3:
        cases.append(f"    case true: {random.choice(pushes[1:])}")
    started = ""
    for label in labels:
        change = ""
        if not relates and random.random() < 0.35:
            change = f" {random.choice(['abort', 'toggle', 'revive'])}({random.choice(labels)});"
        condition = random.choice([label, f"!{label}", label])
        cases.append(f"    case {condition}: {random.choice(pushes[1:])}{change}")
    if labels and not relates and random.random() < 0.1:
        started = f"    abort({random.choice(labels)});\n"
    inside = "\n".join(cases)
    if random.random() < 0.35:
        # What is sent on is of the type of the rule: `Base` takes every event.
        output = "Base"
        inside += f"\n    case true: push {random.choice(ports)};"
    role = "internal " if random.random() < 0.2 else ""
    return (
        f"{role}{output} correlation {name} ({', '.join(declared)})\n    {body}{clauses}\n"
        f"{{\n{started}{inside}\n}}"
    )


def _tree(random: Random, ports: list[str], labels: list[str], timeouts: bool) -> str:
    """A filter over all of the ports, in their order."""
    if len(ports) == 1:
        text = ports[0]
        if random.random() < 0.12:
            text = f"{text}{{{random.choice([2, 3])}}}"
    else:
        cut = random.randrange(1, len(ports))
        left = _tree(random, ports[:cut], labels, timeouts)
        right = _tree(random, ports[cut:], labels, timeouts)
        sign = random.choice([" ; ", " ; ", " + ", " + ", " | "])
        text = f"({left}{sign}{right})"
    if timeouts and random.random() < 0.2:
        text = f"({text} ; timeout({random.choice(['1 s', '3 s'])}))"
    if random.random() < 0.15:
        label = f"l{len(labels)}"
        labels.append(label)
        text = f"{label}:{text}"
    return text


def _ecl(random: Random, name: str, ports: list[str], declared: list[str], by: str) -> str:
    def part(depth: int) -> str:
        if depth == 0 or random.random() < 0.3:
            return random.choice([*ports, *ports, "< v > 2 >", "timeout(pause)"])
        inner = [part(depth - 1) for _ in range(2)]
        kind = random.choice(["accumulate", "select", "sequential", "select*"])
        if random.random() < 0.25:
            return f"do {{ {inner[0]} }} unless {{ {inner[1]} }}"
        return f"{kind} {{ {', '.join(inner)} }}"

    keep = random.choice(["repeat", "repeat", "persist", "loop"])
    return (
        f"eventtype Out{name} {{ }};\nOut{name} ecl {name} ({', '.join(declared)}){by}\n"
        f"{{ {keep} {{ notify {{ {part(2)} }} }} }}"
    )


MAKERS = {
    "split": _splitting,
    "own": _library,
    "ecl": _split_ecl,
    "modes": _modal,
    "aborts": _aborting,
}
