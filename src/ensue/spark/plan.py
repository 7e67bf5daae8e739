"""The rules of a library in groups, one shuffle each.

In come a checked library and the selected correlations; out goes a `JobPlan`: groups of rules with
equal keys, in stages, so that a rule which reads outputs of other rules comes after them. Rules
that feed each other stay in one group if outputs certainly keep the key of the events that made
them; otherwise the outputs are shuffled again. Nothing here depends on Spark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ensue.errors import UsageError
from ensue.history.asking.prepared import asks_history
from ensue.lang.checked import CheckedLibrary
from ensue.lang.checking.ecl import expressions_in
from ensue.lang.derived.parts import statements_of
from ensue.lang.derived.relating import has_timeout
from ensue.lang.derived.wiring import reads_outside
from ensue.lang.diagnostics import did_you_mean
from ensue.lang.expressions import Name
from ensue.lang.syntax import (
    CommonKey,
    Correlation,
    EclCorrelation,
    EventPort,
    FilterCorrelation,
    LibraryTree,
    PushNew,
    PushPort,
    Timeout,
    TimerPort,
)

KeyNames = tuple[str, ...]
"""The attributes that make up a key on one port."""

# Attributes of every output, which a name finds before the data.
_CONTEXT = frozenset({"id", "source", "type", "time", "specversion"})
_PROVENANCE = frozenset({"correlation", "trigger", "labels", "causes", "partitionkey"})


@dataclass(frozen=True)
class PlannedRule:
    """A correlation and its place in the library."""

    number: int
    correlation: Correlation

    @property
    def name(self) -> str:
        return self.correlation.name

    @property
    def event_ports(self) -> list[EventPort]:
        return [each for each in self.correlation.ports if isinstance(each, EventPort)]

    @property
    def outside_ports(self) -> list[EventPort]:
        """The ports that read events of the input, and not only outputs of rules."""
        return [each for each in self.event_ports if reads_outside(each)]

    def key_names(self, port: EventPort) -> KeyNames:
        return tuple(
            key.name if isinstance(key, CommonKey) else dict(key.parts)[port.name]
            for key in self.correlation.clauses.by
        )

    @property
    def key_set(self) -> tuple[KeyNames, ...]:
        """The distinct keys of its ports: one if all use the same names, none without `by`."""
        if not self.correlation.clauses.by:
            return ()
        return tuple(sorted({self.key_names(port) for port in self.event_ports}))

    @property
    def has_timers(self) -> bool:
        correlation = self.correlation
        if any(isinstance(each, TimerPort) for each in correlation.ports):
            return True
        if has_timeout(correlation):
            return True
        return isinstance(correlation, EclCorrelation) and any(
            isinstance(each, Timeout) for each in expressions_in(correlation.body)
        )

    @property
    def sends_on(self) -> bool:
        """Whether an output is an event that was read (`push a`)."""
        return any(isinstance(each, PushPort) for each in statements_of(self.correlation))

    @property
    def pushes_initially(self) -> bool:
        """Whether an instance puts something out when it starts, before it reads an event."""
        correlation = self.correlation
        return isinstance(correlation, FilterCorrelation) and any(
            isinstance(each, PushNew | PushPort) for each in correlation.initially
        )


@dataclass(frozen=True)
class RuleGroup:
    """Rules that share a shuffle; `fed_by` are the rules of earlier stages that feed them."""

    number: int
    stage: int
    key_set: tuple[KeyNames, ...]
    rules: tuple[PlannedRule, ...]
    fed_by: tuple[PlannedRule, ...]

    @property
    def is_keyed(self) -> bool:
        return bool(self.key_set)

    @property
    def has_timers(self) -> bool:
        return any(rule.has_timers for rule in self.rules)

    @property
    def sends_on(self) -> bool:
        """Whether a rule sends on events that were read, with all of their data."""
        return any(rule.sends_on for rule in self.rules)


@dataclass(frozen=True)
class JobPlan:
    """How a library runs on Spark: its rules in groups, each of which runs as a whole.

    `selected` has the names of the rules whose outputs are wanted; no internal rule is among them.
    """

    library: CheckedLibrary
    groups: tuple[RuleGroup, ...]
    selected: tuple[str, ...]

    @cached_property
    def fed_rules(self) -> frozenset[str]:
        """The rules that read outputs of other rules, by name."""
        return frozenset(name for readers in self.library.feeds.values() for name in readers)

    @property
    def rules(self) -> list[PlannedRule]:
        """The rules that run, group by group."""
        return [rule for group in self.groups for rule in group.rules]

    @cached_property
    def by_rule(self) -> Mapping[str, RuleGroup]:
        return {rule.name: group for group in self.groups for rule in group.rules}

    @property
    def numbered_names(self) -> list[str]:
        """The names of all correlations of the library, in its order."""
        return [each.name for each in self.library.correlations]

    def orders_by_row(self, group: RuleGroup) -> bool:
        """Whether a row and a rule determine the position of an output of a group.

        Timers fire between rows, instances put out what they start with before they read a row, and
        outputs that rules of the group read come after it.
        """
        if any(rule.pushes_initially for rule in group.rules):
            return False
        return not group.has_timers and not any(self.part(group).feeds.values())

    def part(self, group: RuleGroup) -> CheckedLibrary:
        """The library with the rules of one group only."""
        names = {rule.name for rule in group.rules}
        tree = self.library.tree
        kept = LibraryTree(
            (*tree.types, *(each for each in tree.correlations if each.name in names))
        )
        feeds = {
            name: tuple(reader for reader in readers if reader in names)
            for name, readers in self.library.feeds.items()
            if name in names
        }
        # Machines that are planned already stay with the library.
        return replace(self.library, tree=kept, written=None, feeds=feeds, warnings=())


def plan_of(library: CheckedLibrary, selected: Sequence[str] | None = None) -> JobPlan:
    """Raises `UsageError` if a selected correlation does not exist, or there is none at all, or one
    asks a history."""
    rules = {
        each.name: PlannedRule(number, each) for number, each in enumerate(library.correlations)
    }
    if not rules:
        raise UsageError("the library has no correlation: there is nothing to find")
    for name in selected or ():
        if name not in rules:
            raise UsageError(
                f"there is no correlation `{name}` in the library; {did_you_mean(name, rules)}"
            )
        if rules[name].correlation.role == "internal":
            raise UsageError(
                f"`{name}` is internal, and what it puts out goes nowhere: select rules that read"
                " it, or leave out `internal`"
            )
    shown = {name for name, rule in rules.items() if rule.correlation.role != "internal"}
    wanted = tuple(n for n in rules if n in (shown if selected is None else set(selected)))
    feeders: dict[str, list[PlannedRule]] = {name: [] for name in rules}
    for name, readers in library.feeds.items():
        for reader in readers:
            feeders[reader].append(rules[name])
    needed = _with_feeders(wanted, feeders)
    _refuse_history([rules[name] for name in rules if name in needed])
    stages = _stages(needed, rules, feeders, library)
    members: dict[tuple[int, tuple[KeyNames, ...]], list[PlannedRule]] = {}
    for name, rule in rules.items():
        if name in needed:
            members.setdefault((stages[name], rule.key_set), []).append(rule)
    groups = []
    for number, ((stage, key_set), inside) in enumerate(
        sorted(members.items(), key=lambda e: e[0])
    ):
        names = {rule.name for rule in inside}
        outside = {
            f.number: f for rule in inside for f in feeders[rule.name] if f.name not in names
        }
        fed_by = tuple(outside[each] for each in sorted(outside))
        groups.append(RuleGroup(number, stage, key_set, tuple(inside), fed_by))
    return JobPlan(library, tuple(groups), wanted)


def _refuse_history(rules: Sequence[PlannedRule]) -> None:
    asking = [f"`{each.name}`" for each in rules if asks_history(each.correlation)]
    if asking:
        raise UsageError(
            f"on Spark no history can be asked, event by event, and {', '.join(asking)} asks one:"
            " leave the rule out by `correlations`, or run the library with `--engine step` and"
            " `--history`"
        )


def _with_feeders(wanted: Sequence[str], feeders: Mapping[str, Sequence[PlannedRule]]) -> set[str]:
    needed: set[str] = set()
    pending = list(wanted)
    while pending:
        name = pending.pop()
        if name not in needed:
            needed.add(name)
            pending += [rule.name for rule in feeders[name]]
    return needed


def _stages(
    needed: set[str],
    rules: Mapping[str, PlannedRule],
    feeders: Mapping[str, Sequence[PlannedRule]],
    library: CheckedLibrary,
) -> Mapping[str, int]:
    """The number of shuffles before that of each rule. Feeding has no cycles."""
    known: dict[str, int] = {}
    pending = [name for name in rules if name in needed]
    while pending:
        name = pending[-1]
        missing = [f.name for f in feeders[name] if f.name not in known]
        if name in known or missing:
            pending = pending[:-1] if name in known else pending + missing
            continue
        known[name] = max(
            (
                known[f.name] + (0 if _keeps_key(f, rules[name], library) else 1)
                for f in feeders[name]
            ),
            default=0,
        )
        pending.pop()
    return known


def _keeps_key(feeder: PlannedRule, reader: PlannedRule, library: CheckedLibrary) -> bool:
    """Whether an output under a key of the feeder has that key for the reader too, or none."""
    if feeder.key_set != reader.key_set or len(feeder.key_set) > 1:
        return False
    if not feeder.key_set:
        return True
    (names,) = feeder.key_set
    if any(name.lower() in _CONTEXT | _PROVENANCE for name in names):
        return False
    if not isinstance(feeder.correlation, FilterCorrelation):
        return False
    ports = {port.name: port for port in feeder.event_ports}
    cases = [statement for case in feeder.correlation.cases for statement in case.statements]
    return all(
        _hands_on(statement, names, ports, library)
        for statement in statements_of(feeder.correlation)
        if isinstance(statement, PushNew)
    ) and all(each.port in ports for each in cases if isinstance(each, PushPort))


def _hands_on(
    push: PushNew, names: KeyNames, ports: Mapping[str, EventPort], library: CheckedLibrary
) -> bool:
    values = {each.name: each.value for each in push.assignments}
    made = library.types.attributes(push.type)
    for name in names:
        value = values.get(name)
        if not isinstance(value, Name) or value.parts[1:] != (name,) or name not in made:
            return False
        port = ports.get(value.parts[0])
        read = library.types.attributes(port.type).get(name) if port else None
        if read is None or read.kind != made[name].kind:
            return False
    return True
