"""The printer of syntax trees: library text that is read as the same tree.

In comes a tree or any node of one; out goes its text in one canonical layout: four spaces a level,
a clause a line, a case a line. Brackets are printed only where the tree would differ without them.
Comments and the original layout are not in the tree and are lost. Predicates and values are printed
by `ensue.lang.expressions.text.printing`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import assert_never

from ensue.lang import syntax
from ensue.lang.durations import print_duration
from ensue.lang.expressions import Literal
from ensue.lang.expressions.text.printing import print_expression, quote

_WIDTH = 100
_INDENT = "    "

# How tightly the rules of the grammar bind, loosest first.
_EITHER, _THEN, _BOTH, _LABELLED, _TIMES, _ATOM = range(6)
_OR, _AND, _NOT = range(3)


def print_library(tree: syntax.LibraryTree) -> str:
    """The whole library. There is no blank line between consecutive event types."""
    lines: list[str] = []
    before: syntax.Definition | None = None
    for each in tree.definitions:
        if before is not None and not (is_line(each) and type(each) is type(before)):
            lines.append("")
        lines.append(print_definition(each))
        before = each
    return "".join(f"{line}\n" for line in lines)


def is_line(node: syntax.Definition) -> bool:
    """Whether there is no blank line between a definition and another one of its kind."""
    return not isinstance(node, syntax.FilterCorrelation | syntax.EclCorrelation)


def print_definition(node: syntax.Definition, spread: bool = False) -> str:
    """One definition. With `spread` each attribute and each port has a line of its own."""
    match node:
        case syntax.Import(path):
            return f"import {quote(path)};"
        case syntax.Parameter(kind, name, value):
            type_ = "duration" if kind is None else kind
            return f"parameter {type_} {name} = {print_parameter_value(value)};"
        case syntax.Use():
            return _print_use(node)
        case syntax.EventTypeDeclaration():
            return _print_event_type(node, spread)
        case syntax.FilterCorrelation():
            body = [f"{print_statement(each)};" for each in node.initially]
            body += _print_cases(node.cases)
            lines = [
                _print_heading(node, "correlation", spread),
                _INDENT + _print_branches(node.branches),
                *_print_clauses(node.clauses),
                "{",
                *(_INDENT + line for line in body),
                "}",
            ]
            return "\n".join(lines)
        case syntax.EclCorrelation():
            lines = [
                _print_heading(node, "ecl", spread),
                *_print_clauses(node.clauses),
                "{",
                _INDENT + _lay_out(node.body, 1),
                "}",
            ]
            return "\n".join(lines)


# --- parameters and uses ---------------------------------------------------------------------


def print_parameter_value(value: syntax.ParameterValue) -> str:
    if isinstance(value, syntax.Duration):
        return print_length(value)
    number = value.value
    if isinstance(number, int | float) and not isinstance(number, bool) and number < 0:
        return f"-{print_expression(Literal(-number))}"
    return print_expression(value)


def print_length(duration: syntax.Duration) -> str:
    """A duration, or the parameter that has it."""
    return print_duration(duration) if duration.parameter is None else duration.parameter


def _print_use(node: syntax.Use) -> str:
    role = f"{node.role} " if node.role is not None else ""
    text = f"{role}use {node.rule} as {node.name}"
    if node.wirings:
        wirings = [
            f"{each.port} from {', '.join(map(print_source, each.sources))}"
            for each in node.wirings
        ]
        text += f" ({', '.join(wirings)})"
    if node.settings:
        settings = [f"{each.name} = {print_parameter_value(each.value)}" for each in node.settings]
        text += f" with {{ {', '.join(settings)} }}"
    return f"{text};"


# --- event types -----------------------------------------------------------------------------


def _print_event_type(node: syntax.EventTypeDeclaration, spread: bool) -> str:
    wire = f" = {quote(node.wire)}" if node.wire is not None else ""
    parent = f" : {node.parent}" if node.parent is not None else ""
    heading = f"eventtype {node.name}{wire}{parent}"
    attributes = [print_attribute(each) for each in node.attributes]
    if not attributes:
        return f"{heading} {{}};"
    if len(attributes) == 1 and not spread:
        return f"{heading} {{ {attributes[0]} }};"
    inside = "".join(f"{_INDENT}{each}\n" for each in attributes)
    return f"{heading} {{\n{inside}}};"


def print_attribute(node: syntax.AttributeDeclaration) -> str:
    value = f" = {print_expression(node.value)}" if node.value is not None else ""
    return f"attribute {node.type} {node.name}{value};"


# --- ports and clauses -----------------------------------------------------------------------


def _print_heading(node: syntax.Correlation, word: str, spread: bool) -> str:
    printed = [print_port(each) for each in node.ports]
    role = f"{node.role} " if node.role is not None else ""
    heading = f"{role}{node.output} {word} {node.name} ("
    on_one_line = f"{heading}{', '.join(printed)})"
    if len(on_one_line) <= _WIDTH and not spread:
        return on_one_line
    return f"{heading}\n{_INDENT}" + f",\n{_INDENT}".join(printed) + "\n)"


def print_port(node: syntax.Port) -> str:
    if isinstance(node, syntax.TimerPort):
        return f"{node.kind} {print_length(node.period)} {node.name}"
    source = f" from {', '.join(map(print_source, node.sources))}" if node.sources else ""
    where = f" where {print_expression(node.where)}" if node.where is not None else ""
    return f"{node.type} {node.name}{source}{where}"


def print_source(node: syntax.PortSource) -> str:
    match node:
        case syntax.TextSource(text):
            return quote(text)
        case syntax.RuleSource(name):
            return name
        case syntax.OutsideSource():
            return syntax.OUTSIDE


def print_key(node: syntax.Key) -> str:
    if isinstance(node, syntax.CommonKey):
        return node.name
    return " = ".join(f"{port}.{attribute}" for port, attribute in node.parts)


def _print_clauses(clauses: syntax.Clauses) -> Iterable[str]:
    if clauses.within is not None:
        yield f"{_INDENT}within {print_length(clauses.within)}"
    if clauses.by:
        yield f"{_INDENT}by {', '.join(map(print_key, clauses.by))}"
    if clauses.bind is not None:
        yield f"{_INDENT}bind {clauses.bind}"
    if clauses.keep is not None:
        yield f"{_INDENT}keep {clauses.keep}"
    if clauses.unless:
        yield f"{_INDENT}unless {', '.join(each.name for each in clauses.unless)}"
    if clauses.having is not None:
        yield f"{_INDENT}having {print_expression(clauses.having)}"


# --- filters ---------------------------------------------------------------------------------


def _print_branches(branches: Sequence[syntax.Filter]) -> str:
    printed = [print_filter(each) for each in branches]
    on_one_line = " || ".join(printed)
    if len(_INDENT + on_one_line) <= _WIDTH:
        return on_one_line
    return f"\n{_INDENT}|| ".join(printed)


def print_filter(node: syntax.Filter) -> str:
    return _filter(node, _EITHER)


def _filter(node: syntax.Filter, at_least: int) -> str:
    match node:
        case syntax.PortRef(name):
            return name
        case syntax.Timeout(after):
            return f"timeout({print_length(after)})"
        case syntax.Labelled(label, body):
            tightness, text = _LABELLED, f"{label}:{_filter(body, _LABELLED)}"
        case syntax.Times(body, count):
            times = count if node.parameter is None else node.parameter
            tightness, text = _TIMES, f"{_filter(body, _TIMES)}{{{times}}}"
        case syntax.Both(parts):
            tightness, text = _BOTH, " + ".join(_filter(each, _LABELLED) for each in parts)
        case syntax.Then(parts):
            tightness, text = _THEN, " ; ".join(_filter(each, _BOTH) for each in parts)
        case syntax.Either(parts):
            tightness, text = _EITHER, " | ".join(_filter(each, _THEN) for each in parts)
        case _:
            assert_never(node)
    return text if tightness >= at_least else f"({text})"


# --- transformers ----------------------------------------------------------------------------


def _print_cases(cases: Sequence[syntax.Case]) -> Iterable[str]:
    conditions = [f"case {print_labels(each.condition)}:" for each in cases]
    # A long condition sticks out; the others are aligned.
    column = max((len(each) for each in conditions if len(each) <= 40), default=0)
    for case, condition in zip(cases, conditions, strict=True):
        statements = " ".join(f"{print_statement(each)};" for each in case.statements)
        yield f"{condition:{column}} {statements}".rstrip()


def print_case(node: syntax.Case) -> str:
    return next(iter(_print_cases([node])))


def print_labels(node: syntax.LabelExpression) -> str:
    return _labels(node, _OR)


def _labels(node: syntax.LabelExpression, at_least: int) -> str:
    match node:
        case syntax.LabelTrue():
            return "true"
        case syntax.LabelName(name):
            return name
        case syntax.LabelNot(body):
            return f"!{_labels(body, _NOT)}"
        case syntax.LabelAnd(parts):
            tightness, text = _AND, " & ".join(_labels(each, _NOT) for each in parts)
        case syntax.LabelOr(parts):
            tightness, text = _OR, " | ".join(_labels(each, _AND) for each in parts)
        case _:
            assert_never(node)
    return text if tightness >= at_least else f"({text})"


def print_statement(node: syntax.Statement) -> str:
    """The statement without the `;` that may follow it."""
    match node:
        case syntax.PushPort(port):
            return f"push {port}{print_extensions(node)}"
        case syntax.PushNew(kind, assignments):
            given = ", ".join(map(print_assignment, assignments))
            data = f"{{ {given} }}" if given else "{}"
            return f"push new {kind} {data}{print_extensions(node)}"
        case syntax.Change(kind, labels):
            return f"{kind}({', '.join(each.name for each in labels)})"


def print_extensions(push: syntax.PushPort | syntax.PushNew) -> str:
    """` with { ... }` as it stands behind a push; nothing where the push has none."""
    given = ", ".join(map(print_assignment, push.extensions))
    return f" with {{ {given} }}" if given else ""


def print_assignment(node: syntax.Assignment | syntax.Extension) -> str:
    return f"{node.name} = {print_expression(node.value)}"


# --- ECL -------------------------------------------------------------------------------------


def print_ecl(node: syntax.Ecl) -> str:
    """An ECL expression on one line."""
    match node:
        case syntax.PortRef(name):
            return name
        case syntax.Holds(predicate):
            return f"< {print_expression(predicate)} >"
        case syntax.Constant(value):
            return "true" if value else "false"
        case syntax.Timeout(after):
            return f"timeout({print_length(after)})"
        case syntax.Unless(body, stop):
            return f"do {{ {print_ecl(body)} }} unless {{ {print_ecl(stop)} }}"
        case syntax.Modes(modes):
            return f"modes {{ {' '.join(map(print_mode, modes))} }}"
        case _:
            inside = ", ".join(map(print_ecl, _parts(node)))
            return f"{_opening(node)} {{ {inside} }}"


def print_mode(node: syntax.Mode) -> str:
    return f"in ({print_ecl(node.guard)}) do {{ {print_ecl(node.body)} }}"


_Block = syntax.Group | syntax.Fail | syntax.Round | syntax.Push


def _opening(node: _Block) -> str:
    """The text before the bracket."""
    match node:
        case syntax.Group(kind):
            return kind
        case syntax.Fail():
            return "fail"
        case syntax.Round(kind, bound=bound):
            if node.parameter is not None:
                return f"{kind}({node.parameter})"
            return kind if bound is None else f"{kind}({bound})"
        case syntax.Push(kind):
            return "notify" if kind is None else f"push({kind})"


def _parts(node: _Block) -> tuple[syntax.Ecl, ...]:
    return node.parts if isinstance(node, syntax.Group) else (node.body,)


def _lay_out(node: syntax.Ecl, level: int) -> str:
    """An ECL expression over as many lines as it needs, indented by `level`."""
    on_one_line = print_ecl(node)
    fits = len(_INDENT) * level + len(on_one_line) <= _WIDTH
    if isinstance(node, syntax.Modes):
        modes = [_lay_out_mode(each, level + 1) for each in node.modes]
        return _block("modes", modes, level, "")
    if fits or isinstance(node, syntax.PortRef | syntax.Holds | syntax.Constant | syntax.Timeout):
        return on_one_line
    if isinstance(node, syntax.Unless):
        body = _block("do", [_lay_out(node.body, level + 1)], level, "")
        return f"{body} {_block('unless', [_lay_out(node.stop, level + 1)], level, '')}"
    inside = [_lay_out(each, level + 1) for each in _parts(node)]
    return _block(_opening(node), inside, level, ",")


def _lay_out_mode(node: syntax.Mode, level: int) -> str:
    on_one_line = print_mode(node)
    if len(_INDENT) * level + len(on_one_line) <= _WIDTH:
        return on_one_line
    heading = f"in ({print_ecl(node.guard)}) do"
    return _block(heading, [_lay_out(node.body, level + 1)], level, "")


def _block(opening: str, inside: Sequence[str], level: int, between: str) -> str:
    margin = f"\n{_INDENT * (level + 1)}"
    return f"{opening} {{{margin}" + f"{between}{margin}".join(inside) + f"\n{_INDENT * level}}}"
