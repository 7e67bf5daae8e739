"""From Lark's parse tree to the syntax tree, definition by definition.

In comes a parse tree; out come the nodes of `ensue.lang.syntax`, each with its span: that of its
name if it has one, or of the whole node. Chains stay as they were written. Numbers and durations
get their values here, and mistakes that no grammar can express are reported: duplicate clauses,
values out of range, limits passed. Predicates are read by `ensue.lang.expressions.text.reading`;
the checker decides whether names and types fit.

The module is long because every rule of the grammar has its method here.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import Any, Literal, NamedTuple, cast

from lark import Token, Transformer, v_args
from lark.tree import Meta
from lark.visitors import Transformer_NonRecursive

from ensue.events.times import EPOCH
from ensue.events.types import ValueType
from ensue.lang import expressions, syntax
from ensue.lang.derived.parts import count_places, ports_in
from ensue.lang.diagnostics import Diagnostics
from ensue.lang.durations import DURATION_RANGE, MICROSECONDS, exact_microseconds
from ensue.lang.expressions.text.reading import ExpressionReading, UnreadableError
from ensue.lang.expressions.text.term_reading import TermReading
from ensue.lang.limits import Limits, report_limit
from ensue.lang.source import Span

# Longer numbers are out of range in any case, and Python is slow to read them or refuses.
_MOST_DIGITS = 25

_SOME_DURATION = syntax.Duration(MICROSECONDS["s"])


def _at(token: Token) -> Span:
    return Span(cast(int, token.start_pos), cast(int, token.end_pos))


def _over(meta: Meta) -> Span:
    return Span(meta.start_pos, meta.end_pos)


def _role(word: Token | None) -> syntax.Role | None:
    return None if word is None else cast(syntax.Role, str(word))


@v_args(meta=True)
class DefinitionReading(Transformer_NonRecursive[Token, Any]):
    """A method for each rule of the grammar. After a mistake a stand-in value is returned."""

    diagnostics: Diagnostics
    limits: Limits

    # --- imports, parameters, uses -----------------------------------------------------------

    def import_(self, _meta: Meta, children: list[Token]) -> syntax.Import:
        return syntax.Import(self._text(children[0]), _at(children[0]))

    def parameter(self, _meta: Meta, children: list[Any]) -> syntax.Parameter:
        kind, name, (value, span) = children
        type_ = None if isinstance(kind, Token) else kind
        return syntax.Parameter(type_, str(name), value, _at(name), span)

    def parameter_value(
        self, meta: Meta, children: list[Any]
    ) -> tuple[syntax.ParameterValue, Span]:
        (value,) = children
        if isinstance(value, Token):
            return self._duration(value), _over(meta)
        return cast(expressions.Literal, value), _over(meta)

    def use(self, _meta: Meta, children: list[Any]) -> syntax.Use:
        role, rule, name, *parts = children
        return syntax.Use(
            str(rule),
            str(name),
            tuple(each for each in parts if isinstance(each, syntax.PortWiring)),
            tuple(each for each in parts if isinstance(each, syntax.ParameterSetting)),
            None if role is None else "internal",
            _at(name),
            _at(rule),
        )

    def wiring(self, _meta: Meta, children: list[Any]) -> syntax.PortWiring:
        port, sources = children
        return syntax.PortWiring(str(port), sources, _at(port))

    def setting(self, _meta: Meta, children: list[Any]) -> syntax.ParameterSetting:
        name, (value, span) = children
        return syntax.ParameterSetting(str(name), value, _at(name), span)

    # --- event types -------------------------------------------------------------------------

    def eventtype(self, _meta: Meta, children: list[Any]) -> syntax.EventTypeDeclaration:
        name, wire, parent, *groups = children
        return syntax.EventTypeDeclaration(
            str(name),
            None if parent is None else str(parent),
            tuple(each for group in groups for each in group),
            None if wire is None else self._text(wire),
            _at(name),
            syntax.NOWHERE if parent is None else _at(parent),
            syntax.NOWHERE if wire is None else _at(wire),
        )

    def attribute(
        self, _meta: Meta, children: list[Any]
    ) -> tuple[syntax.AttributeDeclaration, ...]:
        kind, *paths = children
        return tuple(
            syntax.AttributeDeclaration(each.text, kind, None, each.span) for each in paths
        )

    def derived_attribute(
        self, _meta: Meta, children: list[Any]
    ) -> tuple[syntax.AttributeDeclaration, ...]:
        kind, path, value = children
        return (syntax.AttributeDeclaration(path.text, kind, value, path.span),)

    def path(self, meta: Meta, names: list[Token]) -> expressions.Name:
        return expressions.Name(tuple(map(str, names)), _over(meta))

    def scalar(self, _meta: Meta, words: list[Token]) -> ValueType:
        return ValueType(" ".join(words))

    def sequence(self, _meta: Meta, children: list[ValueType]) -> ValueType:
        return ValueType("sequence", children[0])

    # --- correlations ------------------------------------------------------------------------

    def correlation(self, _meta: Meta, children: list[Any]) -> syntax.FilterCorrelation:
        role, output, name, ports, branches, *rest = children
        clauses = [each for each in rest if isinstance(each, _Clause)]
        cases = tuple(each for each in rest if isinstance(each, syntax.Case))
        initially = tuple(each for each in rest if not isinstance(each, _Clause | syntax.Case))
        return syntax.FilterCorrelation(
            str(output),
            str(name),
            ports,
            branches,
            self._clauses(clauses, ports),
            initially,
            cases,
            _role(role),
            _at(name),
            _at(output),
        )

    def ecl(self, _meta: Meta, children: list[Any]) -> syntax.EclCorrelation:
        role, output, name, ports, *clauses, body = children
        return syntax.EclCorrelation(
            str(output),
            str(name),
            ports,
            body,
            self._clauses(clauses, ports),
            _role(role),
            _at(name),
            _at(output),
        )

    def ports(self, _meta: Meta, ports: list[syntax.Port]) -> tuple[syntax.Port, ...]:
        if len(ports) > self.limits.ports:
            span = ports[self.limits.ports].span
            report_limit(self.diagnostics, self.limits, "ports", len(ports), span)
        return tuple(ports)

    def event_port(self, meta: Meta, children: list[Any]) -> syntax.EventPort:
        kind, name, sources, where = children
        return syntax.EventPort(str(kind), str(name), sources or (), where, _over(meta), _at(name))

    def sources(
        self, _meta: Meta, sources: list[syntax.PortSource]
    ) -> tuple[syntax.PortSource, ...]:
        return tuple(sources)

    def source(self, _meta: Meta, children: list[Token]) -> syntax.PortSource:
        (token,) = children
        if token.type == "STRING":
            return syntax.TextSource(self._text(token), _at(token))
        if token == syntax.OUTSIDE:
            return syntax.OutsideSource(_at(token))
        return syntax.RuleSource(str(token), _at(token))

    def timer_port(self, meta: Meta, children: list[Token]) -> syntax.TimerPort:
        kind, period, name = children
        word = cast(Literal["every", "deadline"], str(kind))
        return syntax.TimerPort(word, self._duration(period), str(name), _over(meta), _at(name))

    def within(self, meta: Meta, children: list[Token]) -> _Clause:
        return _Clause("within", self._duration(children[0]), _over(meta))

    def by(self, meta: Meta, keys: list[_Paths]) -> _Clause:
        return _Clause("by", tuple(keys), _over(meta))

    def keep(self, meta: Meta, children: list[Token]) -> _Clause:
        return _Clause("keep", str(children[0]), _over(meta))

    def unless_ports(self, meta: Meta, children: list[Token]) -> _Clause:
        ports = tuple(syntax.PortRef(str(each), _at(each)) for each in children)
        return _Clause("unless", ports, _over(meta))

    def having(self, meta: Meta, children: list[Any]) -> _Clause:
        return _Clause("having", children[0], _over(meta))

    def bind(self, meta: Meta, children: list[Token]) -> _Clause:
        return _Clause("bind", str(children[0]), _over(meta))

    def key(self, meta: Meta, paths: list[expressions.Name]) -> _Paths:
        return _Paths(paths, _over(meta))

    def _key(self, key: _Paths, ports: Sequence[syntax.Port]) -> syntax.Key:
        """A key. One path is the key of all ports, unless it begins with the name of a port."""
        names = {each.name for each in ports}
        first, *others = key.paths
        if not others and (len(first.parts) == 1 or first.parts[0] not in names):
            return syntax.CommonKey(first.text, key.span)
        bare = next((path for path in key.paths if len(path.parts) == 1), None)
        if bare is not None:
            named = [
                path.text if len(path.parts) > 1 else f"{port.name}.{path.text}"
                for path, port in zip(key.paths, cycle(ports), strict=False)
            ]
            self.diagnostics.error(
                "bad-key",
                f"`{bare.text}` is joined to another key by `=`, and does not say whose it is",
                bare.span,
                f"name the port of each: `by {' = '.join(named)}`",
            )
            # A stand-in that every event has, so that this mistake is reported once.
            return syntax.CommonKey("id", key.span)
        pairs = [(path.parts[0], ".".join(path.parts[1:])) for path in key.paths]
        return syntax.PortKeys(tuple(pairs), key.span)

    def _clauses(self, given: list[_Clause], ports: Sequence[syntax.Port]) -> syntax.Clauses:
        values: dict[str, Any] = {}
        for clause in given:
            if clause.word in values:
                self.diagnostics.error(
                    "duplicate-clause",
                    f"there is a second `{clause.word}`, and a correlation has at most one",
                    clause.span,
                    _ONE_CLAUSE.get(clause.word, "leave one of them out"),
                )
                continue
            values[clause.word] = clause.value
            if clause.word == "by":
                values["by"] = tuple(self._key(each, ports) for each in clause.value)
            else:
                values[f"{clause.word}_span"] = clause.span
        return syntax.Clauses(**values)

    # --- filters -----------------------------------------------------------------------------

    def filter(self, _meta: Meta, branches: list[syntax.Filter]) -> tuple[syntax.Filter, ...]:
        for branch in branches:
            places = count_places(branch)
            if places > self.limits.places:
                report_limit(self.diagnostics, self.limits, "places", places, branch.span)
        return tuple(branches)

    def either(self, meta: Meta, parts: list[syntax.Filter]) -> syntax.Either:
        return syntax.Either(tuple(parts), _over(meta))

    def then(self, meta: Meta, parts: list[syntax.Filter]) -> syntax.Then:
        return syntax.Then(tuple(parts), _over(meta))

    def both(self, meta: Meta, parts: list[syntax.Filter]) -> syntax.Both:
        return syntax.Both(tuple(parts), _over(meta))

    def label(self, _meta: Meta, children: list[Any]) -> syntax.Labelled:
        name, body = children
        return syntax.Labelled(str(name), body, _at(name))

    def repeated(self, meta: Meta, children: list[Any]) -> syntax.Times:
        body, count, *_ = children
        if count.type == "NAME":
            return syntax.Times(body, 1, _over(meta), str(count))
        return syntax.Times(body, self._count(count, "repetition"), _over(meta))

    def repeated_between(self, meta: Meta, children: list[Any]) -> syntax.Times:
        body, fewest, most = children
        # The last port of a bracket comes once in each round.
        counted = next((each for each in reversed(list(ports_in([body])))), "x")
        repeated = counted if isinstance(body, syntax.PortRef) else "(...)"
        if int(fewest) > 1:
            repeated += f"{{{fewest}}}"
        self.diagnostics.error(
            "bounded-repetition",
            f"`{{{fewest},{most}}}` gives a most, and a filter has matched once there are enough",
            _over(meta),
            f"write `{repeated}` and the clause `having count({counted}) <= {most}`",
        )
        return syntax.Times(body, self._count(fewest, "repetition"), _over(meta))

    def filter_timeout(self, meta: Meta, children: list[Token]) -> syntax.Timeout:
        return syntax.Timeout(self._duration(children[0]), _over(meta))

    def port_ref(self, _meta: Meta, children: list[Token]) -> syntax.PortRef:
        return syntax.PortRef(str(children[0]), _at(children[0]))

    def grouped(self, _meta: Meta, children: list[Any]) -> Any:
        return children[0]

    # --- transformers ------------------------------------------------------------------------

    def case(self, meta: Meta, children: list[Any]) -> syntax.Case:
        condition, *statements = children
        return syntax.Case(condition, tuple(statements), _over(meta))

    def label_or(self, meta: Meta, parts: list[syntax.LabelExpression]) -> syntax.LabelOr:
        return syntax.LabelOr(tuple(parts), _over(meta))

    def label_and(self, meta: Meta, parts: list[syntax.LabelExpression]) -> syntax.LabelAnd:
        return syntax.LabelAnd(tuple(parts), _over(meta))

    def label_negation(self, meta: Meta, children: list[Any]) -> syntax.LabelNot:
        return syntax.LabelNot(children[0], _over(meta))

    def label_name(self, _meta: Meta, children: list[Token]) -> syntax.LabelName:
        return syntax.LabelName(str(children[0]), _at(children[0]))

    def label_true(self, meta: Meta, _children: list[Any]) -> syntax.LabelTrue:
        return syntax.LabelTrue(_over(meta))

    def push_port(self, _meta: Meta, children: list[Any]) -> syntax.PushPort:
        port, extensions = children
        return syntax.PushPort(str(port), _at(port), extensions or ())

    def push_new(self, meta: Meta, children: list[Any]) -> syntax.PushNew:
        kind, *assignments, extensions = children
        given = tuple(each for each in assignments if each is not None)
        return syntax.PushNew(str(kind), given, _over(meta), _at(kind), extensions or ())

    def extensions(self, _meta: Meta, children: list[Any]) -> tuple[syntax.Extension, ...]:
        return tuple(children)

    def extension(self, _meta: Meta, children: list[Any]) -> syntax.Extension:
        name, value = children
        return syntax.Extension(str(name), value, None, _at(name))

    def assignment(self, _meta: Meta, children: list[Any]) -> syntax.Assignment:
        name, value = children
        return syntax.Assignment(name.text, value, name.span)

    def change(self, meta: Meta, children: list[Token]) -> syntax.Change:
        kind, *labels = children
        word = cast(Literal["abort", "revive", "toggle"], str(kind))
        names = tuple(syntax.LabelName(str(each), _at(each)) for each in labels)
        return syntax.Change(word, names, _over(meta))

    # --- ECL ---------------------------------------------------------------------------------

    def holds(self, meta: Meta, children: list[Any]) -> syntax.Holds:
        return syntax.Holds(children[0], _over(meta))

    def always(self, meta: Meta, _children: list[Any]) -> syntax.Constant:
        return syntax.Constant(True, _over(meta))

    def never(self, meta: Meta, _children: list[Any]) -> syntax.Constant:
        return syntax.Constant(False, _over(meta))

    def timeout(self, meta: Meta, children: list[Token]) -> syntax.Timeout:
        return syntax.Timeout(self._duration(children[0]), _over(meta))

    def group(self, meta: Meta, children: list[Any]) -> syntax.Group:
        kind, *parts = children
        return syntax.Group(cast(Any, str(kind)), tuple(parts), _over(meta))

    def unless(self, meta: Meta, children: list[Any]) -> syntax.Unless:
        body, stop = children
        return syntax.Unless(body, stop, _over(meta))

    def fail(self, meta: Meta, children: list[Any]) -> syntax.Fail:
        return syntax.Fail(children[0], _over(meta))

    def round(self, meta: Meta, children: list[Any]) -> syntax.Round:
        kind, bound, body = children
        if bound is not None and bound.type == "NAME":
            return syntax.Round(cast(Any, str(kind)), body, 1, _at(bound), str(bound))
        count = None if bound is None else self._count(bound, "rounds")
        return syntax.Round(cast(Any, str(kind)), body, count, _over(meta))

    def push(self, meta: Meta, children: list[Any]) -> syntax.Push:
        kind, body = children
        return syntax.Push(str(kind), body, _over(meta), _at(kind))

    def notify(self, meta: Meta, children: list[Any]) -> syntax.Push:
        return syntax.Push(None, children[0], _over(meta))

    def modes(self, meta: Meta, children: list[syntax.Mode]) -> syntax.Modes:
        return syntax.Modes(tuple(children), _over(meta))

    def mode(self, meta: Meta, children: list[Any]) -> syntax.Mode:
        guard, body = children
        return syntax.Mode(guard, body, _over(meta))

    # --- texts and numbers -------------------------------------------------------------------

    def _text(self, token: Token) -> str:
        literal = ExpressionReading().string([token])
        return cast(str, cast(expressions.Literal, literal).value)

    def _count(self, token: Token, limit: str) -> int:
        """A number from 1 to the limit of that name."""
        digits = token.lstrip("0")
        most: int = getattr(self.limits, limit)
        if not digits:
            self.diagnostics.error(
                "bad-count",
                "the count is 0, and there must be at least 1 repetition",
                _at(token),
                "leave out what is never to happen",
            )
            return 1
        if len(digits) > _MOST_DIGITS or int(digits) > most:
            shown = int(digits) if len(digits) <= _MOST_DIGITS else f"{digits[:6]}..."
            report_limit(self.diagnostics, self.limits, limit, shown, _at(token))
            return 1
        return int(digits)

    def _duration(self, token: Token) -> syntax.Duration:
        if token.type == "LENGTH_NAME":
            return syntax.Duration(_SOME_DURATION.microseconds, str(token), _at(token))
        try:
            return syntax.Duration(exact_microseconds(token), None, _at(token))
        except ValueError as error:
            self.diagnostics.error("bad-duration", str(error), _at(token), DURATION_RANGE)
            return _SOME_DURATION


_ONE_CLAUSE = {
    "by": "give several keys as `by x, y`",
    "unless": "give several ports as `unless a, b`",
    "having": "join the conditions by `AND`: `having (x) AND (y)`",
}


class _Paths(NamedTuple):
    """A key before it is read: the paths between its `=` signs."""

    paths: list[expressions.Name]
    span: Span


class _Clause:
    """A clause before it becomes part of `Clauses`."""

    def __init__(self, word: str, value: Any, span: Span) -> None:
        self.word = word
        self.value = value
        self.span = span


class LibraryReading(DefinitionReading, TermReading):
    """The whole grammar: definitions here, predicates and values from `expressions`."""

    def __init__(self, diagnostics: Diagnostics, limits: Limits) -> None:
        Transformer.__init__(self, visit_tokens=False)
        self.diagnostics = diagnostics
        self.limits = limits

    def refuse(self, error: UnreadableError) -> None:
        self.diagnostics.error(error.code, error.message, error.span, error.hint)

    def parameter_name(self, token: Token, of: str) -> expressions.Name:  # noqa: ARG002
        return expressions.Name((str(token),), _at(token))

    def library(self, definitions: list[syntax.Definition]) -> list[syntax.Definition]:
        return definitions

    def timestamp(self, children: Sequence[Any]) -> expressions.Expression:
        try:
            return super().timestamp(children)
        except UnreadableError as error:
            self.refuse(error)
            return expressions.Literal(EPOCH, error.span)

    def between(self, children: Sequence[Any]) -> expressions.Expression:
        try:
            return super().between(children)
        except UnreadableError as error:
            self.diagnostics.error(error.code, error.message, error.span, error.hint)
            return expressions.Literal(True, error.span)
