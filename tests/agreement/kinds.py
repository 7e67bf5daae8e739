"""The kinds of trials, each drawn from a seed: always the same ones.

`usual` and `rare` are filters and expressions over all of the language; `alike` has each rule of a
usual library again with other predicates, windows and names of ports, so that rules share tables.
`related` and `chains` have the clauses over several events, and `together` many such rules over one
stream, of which the last reads what the others put out. The rest are libraries of one kind of rule
that run in groups (`tests.engine.random_rules`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from random import Random

import ensue
from ensue.errors import LibraryError
from ensue.lang.derived.renaming import with_ports
from ensue.lang.expressions.tree import Not
from ensue.lang.printer import print_library
from ensue.lang.syntax import (
    CommonKey,
    Correlation,
    Duration,
    EclCorrelation,
    EventPort,
    FilterCorrelation,
    Port,
)
from tests.engine import random_rules
from tests.oracle import generator
from tests.oracle.rare import RareDrawing
from tests.oracle.values import generator as values_generator
from tests.oracle.values import model as values_model
from tests.oracle.values.chains import ChainDrawing

from .trials import MergedTrial, PlainTrial, ReferenceTrial, RelatedTrial, Trial

RULES_TOGETHER = (6, 10)
MOST_EVENTS_TOGETHER = 40
RULES_OF_A_GROUP = 8
EVENTS_OF_A_GROUP = 60
CHANGES = 6
OTHER_RULES = """
eventtype Passer { attribute short K; };
Passer correlation Passing (Passer p, Passer q where K > 1) p ; q by K { case true: push q; }
"""
"""Rules that have nothing to do with those of a trial."""


def _plain(drawing: Callable[..., generator.Drawing], seed: int, suffix: str) -> Trial:
    made = drawing(seed, suffix)
    return PlainTrial(made.scenario(), [OTHER_RULES, *_other_bodies(made)])


def _other_bodies(drawing: generator.Drawing) -> Iterator[str]:
    """Other bodies for the rules of a drawing, under the same names, each as one text."""
    for rule in drawing.rules:
        rule.labels = []
        is_ecl = drawing.chance(0.45)
        yield drawing.ecl_text(rule) if is_ecl else drawing.filter_text(rule)


def _related(drawing: Callable[[int], values_generator.Drawing], seed: int, suffix: str) -> Trial:
    made = drawing(seed)
    drawn = made.scenario()
    changes = [OTHER_RULES, *(str(made.rule(rule.name, 2)) for rule in drawn.model.rules)]
    return RelatedTrial(_renamed(drawn, suffix) if suffix else drawn, changes)


def _grouped(kind: str, seed: int, suffix: str) -> Trial:
    assert not suffix, "rules of a group have types in common"
    random = Random(seed)
    text = random_rules.library_text(seed, kind, RULES_OF_A_GROUP)
    names = [f"R{number}" for number in range(RULES_OF_A_GROUP)]
    changes = [
        random_rules.rule(random.choice([*names, f"A{number}"]), random, kind, "by k")
        for number in range(CHANGES)
    ]
    events = random_rules.events(seed, EVENTS_OF_A_GROUP)
    until = events[-1].time + random.choice([0, 1000, 20_000])
    return ReferenceTrial(seed, text, events, until, [*changes, random_rules.READER])


Drawn = Callable[[int, str], Trial]
GROUPED: Mapping[str, Drawn] = {
    f"grouped-{kind}": partial(_grouped, kind) for kind in random_rules.KINDS
}
MERGED: Mapping[str, Drawn] = {
    "usual": partial(_plain, generator.Drawing),
    "rare": partial(_plain, RareDrawing),
    "related": partial(_related, values_generator.Drawing),
    "together": partial(_related, lambda seed: TogetherDrawing(seed)),
}
"""The kinds whose types and rules can end with a text, so that they stand in one library."""
KINDS: Mapping[str, Drawn] = {
    **MERGED,
    "chains": partial(_related, ChainDrawing),
    "alike": lambda seed, _: _alike(seed),
    **GROUPED,
}


def trial(kind: str, seed: int) -> Trial:
    return KINDS[kind](seed, "")


def merged(kind: str, seeds: Sequence[int]) -> list[Trial]:
    """The trials of some seeds, of which no two have a name in common."""
    suffix = f"x{[*MERGED].index(kind)}x"
    return [MERGED[kind](seed, f"{suffix}{seed}") for seed in seeds]


def together(parts: Mapping[str, Sequence[int]]) -> MergedTrial:
    """Seeds of several kinds as one library over one stream."""
    return MergedTrial([each for kind, seeds in parts.items() for each in merged(kind, seeds)])


LIBRARIES = ({"usual": 8, "rare": 5}, {"related": 12, "together": 1})
"""How many trials of each kind a round of Spark has in each of its libraries.

Two, since `K` and `k` are two attributes here, and one column there.
"""


def libraries(seed: int) -> list[MergedTrial]:
    """The libraries of a round of Spark."""
    return [
        together({kind: range(seed * n, (seed + 1) * n) for kind, n in each.items()})
        for each in LIBRARIES
    ]


def _renamed(drawn: values_model.Scenario, suffix: str) -> values_model.Scenario:
    """The scenario with types and rules that end with a suffix."""
    types = tuple(
        replace(each, name=each.name + suffix, parent=each.parent and each.parent + suffix)
        for each in drawn.model.types
    )
    rules = tuple(
        replace(
            rule,
            output=rule.output + suffix,
            name=rule.name + suffix,
            ports=tuple(
                replace(port, type=port.type + suffix, sources=_sources(port, suffix))
                if isinstance(port, values_model.Port)
                else port
                for port in rule.ports
            ),
            cases=tuple(
                replace(case, push=replace(case.push, type=case.push.type + suffix))
                if isinstance(case.push, values_model.New)
                else case
                for case in rule.cases
            ),
        )
        for rule in drawn.model.rules
    )
    events = tuple(replace(each, type=each.type + suffix) for each in drawn.events)
    return replace(drawn, model=values_model.Model(types, rules), events=events)


def _sources(port: values_model.Port, suffix: str) -> tuple[str, ...]:
    kept = ('"', "outside")
    return tuple(each if each.startswith(kept) else each + suffix for each in port.sources)


class TogetherDrawing(values_generator.Drawing):
    """Many rules over one stream; each leans its own way."""

    def scenario(self) -> values_model.Scenario:
        count = self.random.randint(*RULES_TOGETHER)
        drawings = [values_generator.Drawing(self.random.randrange(10**9)) for _ in range(count)]
        rules = [each.rule(f"Rule{number}", 2) for number, each in enumerate(drawings, 1)]
        self.types = (*self.types, "Out", "Out", "Out2")
        self.fed = [each.name for each in rules]
        rules.append(self.rule("Last", 2))
        # More events than one rule is given, since most of them are for some of the rules only.
        events: list[values_model.Moment] = []
        while len(events) < MOST_EVENTS_TOGETHER:
            begin = events[-1].time if events else 0
            events += [
                replace(each, id=f"e{number}", time=begin + each.time)
                for number, each in enumerate(self.stream(rules), len(events) + 1)
            ]
        until = events[-1].time + self.random.choice([0, 3]) * values_model.SECOND
        model = values_model.Model(values_generator.TYPES, tuple(rules))
        return values_model.Scenario(self.seed, model, tuple(events), until)


# --- rules that are alike -------------------------------------------------------------------------


def _alike(seed: int) -> Trial:
    """The first usual trial from a seed on whose copies do not read each other in a circle."""
    drawn = generator.scenario(seed)
    definitions = [
        other
        for each in ensue.parse(drawn.library).checked.tree.definitions
        for other in (
            _others_like(each) if isinstance(each, FilterCorrelation | EclCorrelation) else [each]
        )
    ]
    tree = ensue.parse(drawn.library).checked.tree
    text = print_library(replace(tree, definitions=tuple(definitions)))
    try:
        ensue.parse(text)
    except LibraryError as error:
        if "circular-feeding" not in str(error):
            raise
        return _alike(seed + 1_000_000)
    return PlainTrial(replace(drawn, library=text), [OTHER_RULES])


def _others_like(correlation: Correlation) -> Iterator[Correlation]:
    """The correlation, the same again, asking for less, asking the opposite, in another window."""

    def asking(name: str, port: Port) -> Port:
        if not isinstance(port, EventPort) or port.where is None or name == "same":
            return port
        return replace(port, where=None if name == "less" else Not(port.where))

    yield correlation
    for name in ("same", "less", "opposite"):
        ports = tuple(asking(name, port) for port in correlation.ports)
        yield replace(correlation, name=f"{correlation.name}_{name}", ports=ports)
    if isinstance(correlation, FilterCorrelation) and correlation.clauses.within is not None:
        clauses = replace(correlation.clauses, within=Duration(750_000))
        yield replace(correlation, name=f"{correlation.name}_window", clauses=clauses)
    if all(isinstance(key, CommonKey) for key in correlation.clauses.by):
        yield _with_other_ports(correlation)


def _with_other_ports(correlation: Correlation) -> Correlation:
    """The same with other names for its ports, which sort the other way round."""
    names = {
        port.name: f"p{99 - number}_{port.name}" for number, port in enumerate(correlation.ports)
    }
    ports = tuple(replace(port, name=names[port.name]) for port in correlation.ports)
    said: Correlation = with_ports(correlation, names)
    return replace(said, name=f"{correlation.name}_renamed", ports=ports)
