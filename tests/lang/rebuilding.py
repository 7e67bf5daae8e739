"""Builds any syntax tree again through the public builder: the proof that it can say everything."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from ensue.lang import builder as b
from ensue.lang import expressions as x
from ensue.lang import syntax as s
from ensue.lang.expressions.text.printing import print_expression


def library(tree: s.LibraryTree) -> b.Library:
    return b.library(*map(definition, tree.definitions))


def definition(
    node: s.Definition,
) -> b.EventType | b.Correlation | b.Import | b.Parameter | b.Use:
    match node:
        case s.Import(path):
            return b.import_(path)
        case s.Parameter(kind, name, value_given):
            return b.parameter(name, constant(value_given), kind)
        case s.Use():
            return b.use(
                node.rule,
                node.name,
                sources={each.port: [*map(source, each.sources)] for each in node.wirings},
                values={each.name: constant(each.value) for each in node.settings},
                role=node.role,
            )
    if isinstance(node, s.EventTypeDeclaration):
        # A mapping holds a name once, and a tree may hold it twice: the text of a duplicate.
        given: dict[str, Any] = {
            each.name: each.type
            if each.value is None
            else b.derived(each.type, print_expression(each.value))
            for each in node.attributes
        }
        built = b.eventtype(node.name, given, extends=node.parent, wire=node.wire)
        if len(given) == len(node.attributes):
            return built
        return b.EventType(node)
    clauses: dict[str, Any] = {
        "within": None if node.clauses.within is None else length(node.clauses.within),
        "by": [key(each) for each in node.clauses.by],
        "bind": node.clauses.bind,
        "role": node.role,
    }
    ports = [port(each) for each in node.ports]
    having = node.clauses.having
    if isinstance(node, s.EclCorrelation):
        return b.ecl(node.output, node.name, ports=ports, body=ecl(node.body), **clauses)
    return b.correlation(
        node.output,
        node.name,
        ports=ports,
        when=[filters(each) for each in node.branches],
        initially=[statement(each) for each in node.initially],
        cases=[
            b.case(labels(each.condition), *map(statement, each.statements)) for each in node.cases
        ],
        keep=node.clauses.keep,
        unless=[each.name for each in node.clauses.unless],
        having=None if having is None else value(having),
        **clauses,
    )


def constant(given: s.ParameterValue) -> Any:
    return length(given) if isinstance(given, s.Duration) else given.value


def length(duration: s.Duration) -> Any:
    if duration.parameter is not None:
        return b.parameter(duration.parameter, "1 s")
    return timedelta(microseconds=duration.microseconds)


def times(count: int | None, parameter: str | None) -> Any:
    return count if parameter is None else b.parameter(parameter, 1, b.long)


def key(node: s.Key) -> str | b.Key:
    if isinstance(node, s.CommonKey):
        return node.name
    return b.key(*(b.Value(x.Name((port, *inner.split(".")))) for port, inner in node.parts))


def port(node: s.Port) -> b.Port:
    if isinstance(node, s.TimerPort):
        return {"every": b.every, "deadline": b.deadline}[node.kind](length(node.period), node.name)
    where = None if node.where is None else value(node.where)
    return b.port(node.type, node.name, source=[*map(source, node.sources)], where=where)


def source(node: s.PortSource) -> str | b.SourceName:
    match node:
        case s.TextSource(text):
            return text
        case s.RuleSource(name):
            return b.rule(name)
        case s.OutsideSource():
            return b.outside


def value(node: x.Expression) -> b.Value:
    return b.expression(print_expression(node))


def filters(node: s.Filter) -> Any:
    match node:
        case s.PortRef(name):
            return b.port("T", name)
        case s.Timeout(after):
            return b.timeout(length(after))
        case s.Labelled(label, body):
            return filters(body).label(label)
        case s.Times(body, count):
            return filters(body) * times(count, node.parameter)
        case s.Both(parts):
            return b.both(*map(filters, parts))
        case s.Either(parts):
            return b.either(*map(filters, parts))
        case s.Then(parts):
            return b.then(*map(filters, parts))


def labels(node: s.LabelExpression) -> Any:
    match node:
        case s.LabelTrue():
            return True
        case s.LabelName(name):
            return name
        case s.LabelNot(body):
            return b.label_not(labels(body))
        case s.LabelAnd(parts):
            return b.label_and(*map(labels, parts))
        case s.LabelOr(parts):
            return b.label_or(*map(labels, parts))


def statement(node: s.Statement) -> b.Statement:
    match node:
        case s.PushPort(name):
            return extended(b.push(name), node)
        case s.PushNew(kind, assignments):
            given = {each.name: value(each.value) for each in assignments}
            built = extended(b.push_new(kind, given), node)
            return built if len(given) == len(assignments) else b.Statement(node)
        case s.Change(kind, changed):
            change = {"abort": b.abort, "revive": b.revive, "toggle": b.toggle}[kind]
            return change(*(each.name for each in changed))


def extended(built: b.Statement, node: s.PushPort | s.PushNew) -> b.Statement:
    for each in node.extensions:
        built = built.with_({each.name: value(each.value)})
    return built


_GROUPS = {
    "accumulate": b.accumulate,
    "select": b.select,
    "select*": b.select_strict,
    "sequential": b.sequential,
    "parallel": b.parallel,
}
_ROUNDS = {"repeat": b.repeat, "persist": b.persist, "loop": b.loop}


def ecl(node: s.Ecl) -> Any:
    match node:
        case s.PortRef(name):
            return b.port("T", name)
        case s.Holds(predicate):
            return b.holds(value(predicate))
        case s.Constant(constant):
            return constant
        case s.Timeout(after):
            return b.timeout(length(after))
        case s.Group(kind, parts):
            return _GROUPS[kind](*map(ecl, parts))
        case s.Unless(body, stop):
            return b.unless(ecl(body), ecl(stop))
        case s.Fail(body):
            return b.fail(ecl(body))
        case s.Round(kind, body, bound):
            return _ROUNDS[kind](ecl(body), times(bound, node.parameter))
        case s.Push(None, body):
            return b.notify(ecl(body))
        case s.Push(str(kind), body):
            return b.push(kind, ecl(body))
        case s.Modes(modes):
            return b.modes(*((ecl(each.guard), ecl(each.body)) for each in modes))
