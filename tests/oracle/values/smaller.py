"""Scenarios with less in them, to make a difference small enough to read.

In comes a scenario; out go scenarios that each lack something: events, a rule, a branch, a clause,
a part of a filter or a condition, a case, a value. Some of them are refused by `check`; the caller
tries them and takes what still differs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from .model import (
    Binary,
    Case,
    Clauses,
    Coalesce,
    IsNull,
    Label,
    Model,
    New,
    Node,
    Not,
    Pair,
    Port,
    Rule,
    Scenario,
    Timeout,
    Times,
    Value,
)


def candidates(scenario: Scenario) -> Iterator[Scenario]:
    if scenario.until is not None:
        yield replace(scenario, until=None)
    events = scenario.events
    size = max(1, len(events) // 2)
    while size:
        for start in range(0, len(events), size):
            yield replace(scenario, events=events[:start] + events[start + size :])
        size //= 2
    rules = scenario.model.rules
    for at, rule in enumerate(rules):
        less = [rules[:at] + rules[at + 1 :]] if len(rules) > 1 else []
        less += [(*rules[:at], each, *rules[at + 1 :]) for each in smaller_rules(rule)]
        for chosen in less:
            yield replace(scenario, model=Model(scenario.model.types, chosen))


def smaller_rules(rule: Rule) -> Iterator[Rule]:
    for at in range(len(rule.branches)):
        rest = rule.branches[:at] + rule.branches[at + 1 :]
        if rest:
            yield replace(rule, branches=rest)
        for node in smaller_nodes(rule.branches[at]):
            yield replace(rule, branches=(*rule.branches[:at], node, *rule.branches[at + 1 :]))
    for clauses in smaller_clauses(rule.clauses):
        yield replace(rule, clauses=clauses)
    for at in range(len(rule.cases)):
        if len(rule.cases) > 1:
            yield replace(rule, cases=rule.cases[:at] + rule.cases[at + 1 :])
        for case in smaller_cases(rule.cases[at]):
            yield replace(rule, cases=(*rule.cases[:at], case, *rule.cases[at + 1 :]))
    for at, port in enumerate(rule.ports):
        if len(rule.ports) > 1:
            yield replace(rule, ports=rule.ports[:at] + rule.ports[at + 1 :])
        if isinstance(port, Port) and (port.where or port.sources):
            plain = replace(port, where=None, sources=())
            yield replace(rule, ports=(*rule.ports[:at], plain, *rule.ports[at + 1 :]))


def smaller_nodes(node: Node) -> Iterator[Node]:
    if isinstance(node, Pair):
        yield node.left
        for left in smaller_nodes(node.left):
            yield replace(node, left=left)
        if not isinstance(node.right, Timeout):
            yield node.right
            for right in smaller_nodes(node.right):
                yield replace(node, right=right)
    elif isinstance(node, Label | Times):
        yield node.body
        for body in smaller_nodes(node.body):
            yield replace(node, body=body)


def smaller_clauses(clauses: Clauses) -> Iterator[Clauses]:
    nothing = Clauses()
    for name in ("within", "by", "bind", "keep", "unless", "having"):
        if getattr(clauses, name) != getattr(nothing, name):
            yield replace(clauses, **{name: getattr(nothing, name)})
    if clauses.having is not None:
        for having in smaller_values(clauses.having):
            yield replace(clauses, having=having)


def smaller_values(value: Value) -> Iterator[Value]:
    if isinstance(value, Not):
        yield value.body
    elif isinstance(value, IsNull):
        for body in smaller_values(value.body):
            yield replace(value, body=body)
    elif isinstance(value, Coalesce):
        yield from value.parts
    elif isinstance(value, Binary):
        if value.sign in ("AND", "OR", "+", "-", "*", "/", "%"):
            yield from (value.left, value.right)
        for left in smaller_values(value.left):
            yield replace(value, left=left)
        for right in smaller_values(value.right):
            yield replace(value, right=right)


def smaller_cases(case: Case) -> Iterator[Case]:
    if case.labels:
        yield replace(case, labels=())
    if case.beside:
        yield replace(case, beside=case.beside[1:])
    if isinstance(case.push, New):
        values = case.push.values
        for at in range(len(values)):
            yield replace(case, push=replace(case.push, values=values[:at] + values[at + 1 :]))
