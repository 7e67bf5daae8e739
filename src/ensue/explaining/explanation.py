"""The explanation of a correlation, in sections of plain text.

In comes a checked library and one of its correlations; out go lines, wrapped to a `Page`. `wording`
turns expressions into words and outlines, and `how_it_runs` describes how each engine runs a rule.
`ensue.machine.drawing` draws machines; `drawing` here chooses the format.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ensue.errors import UsageError
from ensue.explaining.how_it_runs import how_it_runs, machine_lines
from ensue.explaining.outlined import machine_of_filter_alone
from ensue.explaining.wording import draw, in_words, outline
from ensue.lang import syntax
from ensue.lang.derived.relating import relates_events, relating_clauses
from ensue.lang.durations import print_duration
from ensue.lang.expressions.text.printing import print_expression
from ensue.lang.printer import print_assignment, print_key, print_labels, print_source
from ensue.library import Library
from ensue.machine.drawing import to_dot, to_json, to_mermaid, to_svg
from ensue.machine.plan import Plan, plan
from ensue.machine.prepared import plan_in

FORMATS = ("text", "json", "mermaid", "dot", "svg")
LONGEST_HEAD = 24


@dataclass(frozen=True, slots=True)
class Page:
    """The width of a text, and whether it may contain line-drawing characters and arrows."""

    width: int = 80
    can_draw: bool = True


ORDINARY = Page()


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def drawing(
    library: Library,
    correlation: syntax.Correlation,
    format: str,  # noqa: A002
    unoptimised: bool,
) -> str:
    """The machine of a correlation in a text format; for a rule without one, that of its filter."""
    planned = _planned(library, correlation, unoptimised)
    machine = planned.built if unoptimised else planned.machine
    left_out = left_out_of_drawings(correlation)
    if machine is None and relates_events(correlation):
        assert isinstance(correlation, syntax.FilterCorrelation)
        machine = machine_of_filter_alone(correlation, unoptimised)
    if machine is None:
        raise UsageError(
            f"`{correlation.name}` has no machine to draw: {planned.why}; "
            "`--format text` explains it in words"
        )
    match format:
        case "json":
            about: dict[str, Any] = {"correlation": correlation.name, "form": planned.form}
            about |= {"why": planned.why, **({"left_out": left_out} if left_out else {})}
            runs = {
                word.strip() or "note": text
                for word, text in how_it_runs(library.checked, correlation, unoptimised)
            }
            return to_json(machine, **about, runs=runs) + "\n"
        case "mermaid":
            return to_mermaid(machine)
        case "dot":
            return to_dot(machine, correlation.name)
        case _:
            return to_svg(machine, correlation.name)


def left_out_of_drawings(correlation: syntax.Correlation) -> list[str]:
    """The clauses of a rule that no drawing shows; a timeout is drawn as a timer."""
    return [each for each in relating_clauses(correlation) if each != "timeout"]


def _planned(library: Library, correlation: syntax.Correlation, unoptimised: bool) -> Plan:
    """The plan of a correlation. Saved tables lack the unoptimised machine: it is built again."""
    return plan(correlation) if unoptimised else plan_in(library.checked, correlation)


def explanation(
    library: Library,
    correlation: syntax.Correlation,
    unoptimised: bool = False,
    page: Page = ORDINARY,
) -> Iterator[str]:
    """The lines of the explanation; a line that is not indented starts a section."""
    kind = "an ECL expression" if isinstance(correlation, syntax.EclCorrelation) else "a filter"
    yield f"{correlation.name}, {kind} that puts out {correlation.output}"
    yield ""
    yield "Waits for"
    yield from _waits_for(correlation, page)
    yield ""
    yield "Ports"
    yield from _columns([port_in_words(library, port) for port in correlation.ports], page)
    if clauses := list(_clauses(correlation)):
        yield ""
        yield "Clauses"
        yield from _columns(clauses, page)
    if isinstance(correlation, syntax.FilterCorrelation):
        if labels := list(labels_in_words(correlation)):
            yield ""
            yield "Labels"
            yield from _columns(labels, page)
        if correlation.initially:
            yield ""
            yield "At its start"
            yield from _columns([("", _statement(each)) for each in correlation.initially], page)
        yield ""
        yield "When it triggers"
        yield from _columns(list(_cases(correlation)), page)
    yield ""
    yield "Puts out"
    yield from list(_puts_out(library, correlation, page)) or ["  nothing: it never pushes"]
    yield ""
    yield "Between correlations"
    yield from _columns(list(_neighbours(library, correlation)), page)
    yield ""
    yield "How it runs"
    yield from _columns(list(how_it_runs(library.checked, correlation, unoptimised)), page)
    yield from _machine(library, correlation, unoptimised, page)


def _waits_for(correlation: syntax.Correlation, page: Page) -> Iterator[str]:
    roots: tuple[syntax.Filter | syntax.Ecl, ...]
    if isinstance(correlation, syntax.FilterCorrelation):
        roots = correlation.branches
    else:
        roots = (correlation.body,)
    for number, root in enumerate(roots, 1):
        if len(roots) > 1:
            yield f"  branch {number}, which triggers by itself:"
        words = in_words(root)
        if words is not None:
            yield from textwrap.wrap(words, page.width, initial_indent="  ", subsequent_indent="  ")
            yield ""
        yield from (f"    {line}" for line in draw(outline(root), page.can_draw, page.width - 4))
        if number < len(roots):
            yield ""


def port_in_words(library: Library, port: syntax.Port) -> tuple[str, str]:
    if isinstance(port, syntax.TimerPort):
        period = print_duration(port.period)
        if port.kind == "every":
            return port.name, f"a timer that fires every {period}"
        return port.name, f"a timer that fires after {period} without a trigger"
    below = [name for name in library.checked.types.subtypes(port.type) if name != port.type]
    text = f"{port.type} events"
    if below:
        text += f" (also {', '.join(below)})"
    if port.sources:
        text += f" from {', '.join(map(print_source, port.sources))}"
    if port.where is not None:
        text += f" where {print_expression(port.where)}"
    return port.name, text


def _clauses(correlation: syntax.Correlation) -> Iterator[tuple[str, str]]:
    clauses = correlation.clauses
    if clauses.within is not None:
        time = print_duration(clauses.within)
        yield f"within {time}", f"events older than {time} do not count any more"
    if clauses.by:
        keys = ", ".join(print_key(key) for key in clauses.by)
        yield f"by {keys}", "each value has a memory of its own, labels included"
    if clauses.bind == "latest":
        yield "bind latest", "ports stand for the events of the latest match, which go together"
    elif clauses.bind is not None:
        yield f"bind {clauses.bind}", f"a port stands for the {clauses.bind} event that matches it"
    if clauses.having is not None:
        condition = print_expression(clauses.having)
        yield f"having {condition}", "asked at each match; if it is not true nothing happens"
    if clauses.unless:
        void = " or ".join(f"`{each.name}`" for each in clauses.unless)
        yield (
            f"unless {', '.join(each.name for each in clauses.unless)}",
            (f"{void} makes it forget all events that came before"),
        )
    if clauses.keep is not None:
        yield f"keep {clauses.keep}", _KEPT[clauses.keep]


_KEPT = {
    "none": "after a trigger all events are forgotten",
    "last": "after a trigger only the event that completed it is remembered",
    "all": "a trigger forgets nothing, so an event can serve in several matches",
}


def labels_in_words(correlation: syntax.FilterCorrelation) -> Iterator[tuple[str, str]]:
    for label in _labels_in(correlation.branches):
        users = [
            f"case {print_labels(case.condition)}"
            for case in correlation.cases
            if label.label in _names_in(case.condition)
        ]
        changed = [
            f"{statement.kind} in {where}"
            for where, statements in [
                ("the start", correlation.initially),
                *(
                    (f"case {print_labels(case.condition)}", case.statements)
                    for case in correlation.cases
                ),
            ]
            for statement in statements
            if isinstance(statement, syntax.Change)
            and label.label in {each.name for each in statement.labels}
        ]
        used = f"used by {'; '.join(users)}" if users else "used by no case"
        waits = in_words(label.body) or "its part of the outline"
        yield label.label, "; ".join([f"active if {waits} was met", used, *changed])


def _labels_in(parts: Iterable[syntax.Filter]) -> Iterator[syntax.Labelled]:
    for part in parts:
        match part:
            case syntax.Labelled(_, body):
                yield part
                yield from _labels_in([body])
            case syntax.Times(body, _):
                yield from _labels_in([body])
            case syntax.Both(inside) | syntax.Either(inside) | syntax.Then(inside):
                yield from _labels_in(inside)


def _names_in(condition: syntax.LabelExpression) -> set[str]:
    match condition:
        case syntax.LabelTrue():
            return set()
        case syntax.LabelName(name):
            return {name}
        case syntax.LabelNot(body):
            return _names_in(body)
        case syntax.LabelAnd(parts) | syntax.LabelOr(parts):
            return {name for part in parts for name in _names_in(part)}


def _cases(correlation: syntax.FilterCorrelation) -> Iterator[tuple[str, str]]:
    if not correlation.cases:
        yield "", "nothing: it has no case"
    for case in correlation.cases:
        heading = f"case {print_labels(case.condition)}:"
        for statement in case.statements:
            yield heading, _statement(statement)
            heading = ""
        if not case.statements:
            yield heading, "nothing"


def _statement(statement: syntax.Statement) -> str:
    match statement:
        case syntax.PushPort(port):
            return f"sends on the event that `{port}` stands for{_beside(statement)}"
        case syntax.PushNew(type_, assignments):
            values = ", ".join(map(print_assignment, assignments))
            data = f" with {values}" if values else ""
            return f"puts out a new {type_}{data}{_beside(statement)}"
        case syntax.Change(kind, labels):
            names = _listed(label.name for label in labels)
            effects = {
                "abort": f"leaves {names} out from now on",
                "revive": f"takes {names} in again, afresh",
                "toggle": f"leaves {names} out, or takes it in again if it was out",
            }
            return effects[kind]


def _beside(push: syntax.PushPort | syntax.PushNew) -> str:
    """What a push sets beside the data, in words."""
    if not push.extensions:
        return ""
    return f", and sets {', '.join(map(print_assignment, push.extensions))} beside the data"


def _puts_out(library: Library, correlation: syntax.Correlation, page: Page) -> Iterator[str]:
    for type_ in dict.fromkeys(_pushed_types(correlation)):
        attributes = library.checked.types.attributes(type_)
        fields = ", ".join(f"{name} ({each})" for name, each in attributes.items())
        text = f"{type_} events with {fields or 'no attributes'}"
        yield from textwrap.wrap(text, page.width, initial_indent="  ", subsequent_indent="    ")


def _pushed_types(correlation: syntax.Correlation) -> Iterator[str]:
    if isinstance(correlation, syntax.EclCorrelation):
        for type_ in _types_in(correlation.body):
            yield type_ or correlation.output
        return
    ports = {p.name: p.type for p in correlation.ports if isinstance(p, syntax.EventPort)}
    for statements in (correlation.initially, *(case.statements for case in correlation.cases)):
        for statement in statements:
            if isinstance(statement, syntax.PushNew):
                yield statement.type
            elif isinstance(statement, syntax.PushPort):
                yield ports.get(statement.port, correlation.output)


def _types_in(node: syntax.Ecl) -> Iterator[str | None]:
    """The types that an ECL expression pushes, in the order of its text; None for `notify`."""
    match node:
        case syntax.Push(type_, body):
            yield type_
            yield from _types_in(body)
        case syntax.Group(_, parts):
            for part in parts:
                yield from _types_in(part)
        case syntax.Unless(body, stop):
            yield from _types_in(body)
            yield from _types_in(stop)
        case syntax.Fail(body) | syntax.Round(_, body):
            yield from _types_in(body)
        case syntax.Modes(modes):
            for mode in modes:
                yield from _types_in(mode.guard)
                yield from _types_in(mode.body)


def _neighbours(library: Library, correlation: syntax.Correlation) -> Iterator[tuple[str, str]]:
    feeds = library.checked.feeds
    feeders = [name for name, readers in feeds.items() if correlation.name in readers]
    yield "fed by", ", ".join(feeders) or "none: it reads events from outside only"
    yield "feeds", ", ".join(feeds.get(correlation.name, ())) or "none"


def _machine(
    library: Library, correlation: syntax.Correlation, unoptimised: bool, page: Page
) -> Iterator[str]:
    planned = _planned(library, correlation, unoptimised)
    machine = planned.built if unoptimised else planned.machine
    if machine is None:
        return
    yield ""
    yield f"Its machine, {'as it is built' if unoptimised else 'optimised'}"
    arrow = "→" if page.can_draw else "->"
    for line in machine_lines(machine, arrow):
        yield from textwrap.wrap(line, page.width, initial_indent="  ", subsequent_indent="      ")


def _columns(rows: list[tuple[str, str]], page: Page) -> Iterator[str]:
    """Lines of two columns; the second is wrapped."""
    longest = max((len(left) for left, _ in rows), default=0)
    room = min(LONGEST_HEAD, longest)
    indent = " " * (room + 4 if room else 2)
    for left, right in rows:
        lines = textwrap.wrap(right, page.width, initial_indent=indent, subsequent_indent=indent)
        if len(left) > room:
            yield f"  {left}"
        elif lines and room:
            lines[0] = f"  {left:{room}}  {lines[0].lstrip()}".rstrip()
        yield from lines
