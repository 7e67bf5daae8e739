"""Checks of an expression before it runs, and the kind of its result.

In come a tree and a function for the declared type of a name; into the `Diagnostics` go calls of
unknown functions, numbers out of range, operands that cannot be cast, and misleading chains. Out
goes the kind of the result: `boolean`, `integer`, `real`, `number` (an integer or a real),
`string`, `timestamp`, `sequence`, or None where only a run can tell. The function for names reports
unknown names. Whether a value fits an attribute is checked in `fitting`.

The module is long because every kind of node has its check here, one method each.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ensue.events.types import ValueType
from ensue.lang.diagnostics import Diagnostics, close_match, did_you_mean
from ensue.lang.durations import MICROSECONDS
from ensue.lang.expressions.aggregates import AGGREGATES
from ensue.lang.expressions.builtins.foreign_functions import FOREIGN_FUNCTIONS
from ensue.lang.expressions.builtins.functions import FUNCTIONS, Function
from ensue.lang.expressions.checking.surprises import (
    warn_chained,
    warn_constant,
    warn_mixed,
    warn_not_binds_tightest,
    warn_text_as_number,
    warn_wildcards,
)
from ensue.lang.expressions.text.printing import print_expression, quote
from ensue.lang.expressions.tree import (
    After,
    Arithmetic,
    Before,
    BoundTerm,
    Call,
    Compared,
    Comparison,
    During,
    Exists,
    Expression,
    Has,
    In,
    Like,
    Literal,
    Logic,
    Name,
    Negate,
    Not,
    Related,
    Term,
)
from ensue.lang.expressions.values import CASTS, LARGEST_INTEGER, FaultError, kind_of

Kind = str
Resolve = Callable[[Name], ValueType | None]
ResolveAggregate = Callable[[Call], ValueType | None]
"""The declared type of the argument of an aggregate; it reports an aggregate that is out of place,
or is not over a port."""

# By the kind that an operator needs: the kinds that can never be cast to it implicitly.
_NEVER: dict[Kind, frozenset[Kind]] = {
    "any": frozenset(),
    "group": frozenset({"boolean", "real", "timestamp", "sequence"}),
    "string": frozenset({"sequence"}),
    "boolean": frozenset({"integer", "real", "number", "timestamp", "sequence"}),
    "integer": frozenset({"real", "timestamp", "sequence"}),
    "number": frozenset({"timestamp", "sequence"}),
    "timestamp": frozenset({"boolean", "integer", "real", "number", "sequence"}),
}
_EXPLICIT_NEVER: dict[str, frozenset[Kind]] = {
    "INT": frozenset({"timestamp", "sequence"}),
    "BOOL": frozenset({"timestamp", "sequence"}),
    "STRING": frozenset({"sequence"}),
    "DOUBLE": frozenset({"timestamp", "sequence"}),
    "TIMESTAMP": frozenset({"boolean", "sequence"}),
}
_ADVICE = {
    "boolean": "compare it with something, or use `BOOL(...)`",
    "integer": "use `INT(...)`",
    "group": "a group is meant by its number or its name",
    "string": "a sequence can only be passed on, or asked for with `EXISTS`",
    "number": "only numbers, booleans and strings that hold a number can be computed with",
    "timestamp": "a timestamp goes together with a timestamp, as `2024-05-06T07:08:09Z`, or with"
    " RFC 3339 text",
}


def check_expression(
    expression: Expression,
    resolve: Resolve,
    diagnostics: Diagnostics,
    aggregate: ResolveAggregate | None = None,
) -> Kind | None:
    """Report the mistakes in an expression, and return the kind of its result.

    Without `aggregate` no aggregate is allowed in it.
    """
    return _Check(resolve, diagnostics, aggregate).kind(expression)


def check_predicate(
    expression: Expression,
    resolve: Resolve,
    diagnostics: Diagnostics,
    aggregate: ResolveAggregate | None = None,
) -> Kind | None:
    """As `check_expression`, for an expression that must be true or false."""
    kind = check_expression(expression, resolve, diagnostics, aggregate)
    if kind not in (None, "boolean"):
        diagnostics.error(
            "predicate-not-boolean",
            f"a predicate must be a boolean, and this is {with_article(kind)}",
            expression.span,
            "compare it with something"
            + ("" if kind in ("timestamp", "sequence") else ", or use `BOOL(...)`"),
        )
    return kind


def with_article(kind: Kind | None) -> str:
    return f"{'an' if kind == 'integer' else 'a'} {kind}"


class _Check:
    """One walk over one expression. Depth is bounded by `Limits.nesting`."""

    def __init__(
        self, resolve: Resolve, diagnostics: Diagnostics, aggregate: ResolveAggregate | None
    ) -> None:
        self._resolve = resolve
        self._diagnostics = diagnostics
        self._resolve_aggregate = aggregate

    def kind(self, expression: Expression) -> Kind | None:
        match expression:
            case Literal():
                return self._literal(expression)
            case Name():
                declared = self._resolve(expression)
                return declared.kind if declared else None
            case Exists(name):
                self._resolve(name)
                return "boolean"
            case Not(operand):
                self._want("boolean", operand, self.kind(operand), "`NOT`")
                return "boolean"
            case Negate(operand):
                return self._negate(operand)
            case Arithmetic(first, rest):
                return self._arithmetic(expression, first, rest)
            case Comparison(first, rest):
                return self._comparison(expression, first, rest)
            case Logic():
                return self._logic(expression)
            case Like(operand):
                self._unknown_parameter(expression.parameter, "string", "'web-%'")
                self._want("string", operand, self.kind(operand), "`LIKE`")
                warn_wildcards(expression, self._diagnostics)
                warn_not_binds_tightest(expression, operand, self._diagnostics)
                return "boolean"
            case In(operand, options):
                self._in(operand, options)
                warn_not_binds_tightest(expression, operand, self._diagnostics)
                return "boolean"
            case Call():
                return self._call(expression)
            case _:
                return self._term(expression)

    def _term(self, term: Term) -> Kind:
        """The check of a term; its filter reads stored publications, which may be of any type."""
        if not isinstance(term, After | Before | During | Related):
            self._resolve(term.name)
        if isinstance(term, After | Before):
            self._unknown_parameter(term.parameter, "duration", "10 s")
        match term:
            case Has() | BoundTerm():
                return "boolean"
            case After() | Before() | During() | Compared() | Related():
                check_predicate(term.filter, lambda _: None, self._diagnostics)
                self._diagnostics.warning(
                    "needs-history",
                    "this term asks a history, and holds only in a run that has one",
                    term.span,
                    "start the library with one: `library.start(history=...)`,"
                    " or `ensue run --history URL`",
                )
            case _:
                self._diagnostics.warning(
                    "needs-ontology",
                    "this term asks an ontology, and holds only in a run that has one",
                    term.span,
                    "load the library with one: `ensue.load(..., ontology=...)`"
                    " or `--ontology FILE`",
                )
        return "boolean"

    def _unknown_parameter(self, name: Name | None, type_: str, example: str) -> None:
        """Report a name for which no parameter has put in a value."""
        if name is not None:
            self._diagnostics.error(
                "unknown-parameter",
                f"there is no parameter `{name.text}`",
                name.span,
                f"declare it: `parameter {type_} {name.text} = {example};`",
            )

    def _literal(self, literal: Literal, largest: int = LARGEST_INTEGER) -> Kind | None:
        value = literal.value
        kind = kind_of(value)
        if isinstance(value, int) and not isinstance(value, bool) and value > largest:
            self._diagnostics.error(
                "integer-out-of-range",
                "this integer does not fit 64 bits",
                literal.span,
                f"integers go from {-LARGEST_INTEGER - 1} to {LARGEST_INTEGER}",
            )
            return "integer"
        if isinstance(value, float) and not math.isfinite(value):
            self._diagnostics.error(
                "real-out-of-range",
                "this number does not fit a double",
                literal.span,
                "reals go up to about 1.8e308",
            )
        return kind

    def _negate(self, operand: Expression) -> Kind | None:
        # The smallest integer is the negation of a number that is too large by itself.
        if isinstance(operand, Literal):
            kind = self._literal(operand, LARGEST_INTEGER + 1)
        else:
            kind = self.kind(operand)
        self._want("number", operand, kind, "`-`")
        return _number_kind([kind])

    def _arithmetic(
        self, whole: Arithmetic, first: Expression, rest: Sequence[tuple[str, Expression]]
    ) -> Kind | None:
        left, left_kind = first, self.kind(first)
        for sign, right in rest:
            right_kind = self.kind(right)
            if sign == "-" and "timestamp" in (left_kind, right_kind):
                self._want("timestamp", left, left_kind, "`-` with a timestamp")
                self._want("timestamp", right, right_kind, "`-` with a timestamp")
                left, left_kind = whole, "real"
                continue
            self._text_as_number("number", sign, (left, left_kind), (right, right_kind))
            if "timestamp" in (left_kind, right_kind):
                at = left if left_kind == "timestamp" else right
                advice = "`b.time - a.time` is a number of seconds: compare that, as `... < 300`"
                self._cannot_cast(at, "timestamp", f"`{sign}`", advice)
                # The result is unknown, so that one mistake is reported once.
                left, left_kind = whole, None
                continue
            self._want("number", left, left_kind, f"`{sign}`")
            self._want("number", right, right_kind, f"`{sign}`")
            # The left operand of the next operator is a number, and no constant.
            if sign == "-" and None in (left_kind, right_kind):
                # Both may turn out to be timestamps, and the difference a real.
                left_kind = "real" if "real" in (left_kind, right_kind) else "number"
            else:
                left_kind = _number_kind([left_kind, right_kind])
            left = whole
        return left_kind

    def _comparison(
        self, whole: Comparison, first: Expression, rest: Sequence[tuple[str, Expression]]
    ) -> Kind:
        warn_not_binds_tightest(whole, first, self._diagnostics)
        if len(rest) > 1:
            warn_chained(whole, self._diagnostics)
        else:
            warn_constant(whole, first, rest[0][1], self._diagnostics)
        left, left_kind = first, self.kind(first)
        for sign, right in rest:
            right_kind = self.kind(right)
            wanted = _compared_as(sign, left_kind, right_kind)
            self._text_as_number(wanted, sign, (left, left_kind), (right, right_kind))
            if wanted is not None:
                self._want(wanted, left, left_kind, f"`{sign}`")
                self._want(wanted, right, right_kind, f"`{sign}`")
            # The left operand of the next operator is the result so far, and no constant.
            left, left_kind = whole, "boolean"
        return "boolean"

    def _text_as_number(
        self, wanted: Kind | None, sign: str, *sides: tuple[Expression, Kind | None]
    ) -> None:
        """Warn once of an operand that is declared as text, and is cast to a number."""
        if any(isinstance(x, Literal) and isinstance(x.value, str) for x, _ in sides):
            # A constant that is no number is reported elsewhere.
            return
        for (operand, kind), (other, others) in zip(sides, reversed(sides), strict=True):
            if wanted == "number" and kind == "string" and isinstance(operand, Name):
                warn_text_as_number(sign, operand, other, others, self._diagnostics)
                return

    def _in(self, operand: Expression, options: Sequence[Expression]) -> None:
        kind = self.kind(operand)
        if kind == "sequence":
            self._want("string", operand, kind, "`IN`")
        for option in options:
            option_kind = self.kind(option)
            if kind is not None and kind != "sequence":
                self._want(_family(kind), option, option_kind, "`IN`")

    def _call(self, call: Call) -> Kind | None:
        if call.function in AGGREGATES:
            return self._aggregate(call)
        match call:
            case Call("MATCHES", (text, Name((_,)) as named)):
                self._unknown_parameter(named, "string", "'^web'")
                self._want("string", text, self.kind(text), "`MATCHES`")
                return "boolean"
        kinds = [self.kind(each) for each in call.arguments]
        function = FUNCTIONS.get(call.function)
        if function is None:
            self._diagnostics.error(
                "unknown-function",
                f"there is no function `{call.function}`",
                call.span,
                self._instead_of(call.function),
            )
            return None
        if not function.accepts(len(kinds)):
            self._diagnostics.error(
                "wrong-argument-count",
                f"`{call.function}` is given {len(kinds)} arguments",
                call.span,
                f"it takes {function.allowed}",
            )
            return function.result
        for index, (argument, kind) in enumerate(zip(call.arguments, kinds, strict=True)):
            never = _EXPLICIT_NEVER.get(call.function)
            if never is not None and index == 0 and kind in never:
                self._cannot_cast(argument, kind, f"`{call.function}`", "pass it as it is")
            self._want(function.parameter(index), argument, kind, f"`{call.function}`")
        if function.problem is not None:
            self._constants(call, function)
        match call.function:
            case "BETWEEN":
                self._between(call, kinds)
            case "TIMESTAMP" if len(kinds) == 1:
                self._want("timestamp", call.arguments[0], kinds[0], "`TIMESTAMP`")
            case "MATCHES" | "IS_NULL":
                warn_not_binds_tightest(call, call.arguments[0], self._diagnostics)
        if function.result == "any":
            # The result has a known kind if all arguments have the same.
            return kinds[0] if len(set(kinds)) == 1 else None
        return _number_kind(kinds) if function.result == "number" else function.result

    def _instead_of(self, function: str) -> str:
        """The advice for a function that does not exist."""
        aggregate = None
        if self._resolve_aggregate is not None:
            aggregate = close_match(function, AGGREGATES)
        if aggregate is not None and close_match(function, [*FUNCTIONS, aggregate]) == aggregate:
            return f"did you mean `{aggregate.lower()}`?"
        return FOREIGN_FUNCTIONS.get(function) or did_you_mean(function, FUNCTIONS)

    def _constants(self, call: Call, function: Function) -> None:
        """Report arguments that must be constants and are not, or are wrong constants."""
        assert function.problem is not None
        constants: list[Any] = []
        for index, argument in enumerate(call.arguments[1:], 1):
            value = argument.value if isinstance(argument, Literal) else None
            is_group = function.parameter(index) == "group"
            constants.append(value)
            if isinstance(value, str) or (is_group and type(value) is int):
                message, hint = function.problem(constants), None
            else:
                message = f"`{call.function}` takes constants here, which are checked before"
                hint = "write the text itself, in quotes" + (", or a number" if is_group else "")
            if message is not None:
                self._diagnostics.error("bad-constant", message, argument.span, hint)

    def _between(self, call: Call, kinds: Sequence[Kind | None]) -> None:
        value, *bounds = call.arguments
        warn_not_binds_tightest(call, value, self._diagnostics)
        for bound, kind in zip(bounds, kinds[1:], strict=True):
            wanted = _compared_as("<=", kinds[0], kind)
            if wanted is not None:
                self._want(wanted, value, kinds[0], "`BETWEEN`")
                self._want(wanted, bound, kind, "`BETWEEN`")

    def _aggregate(self, call: Call) -> Kind | None:
        aggregate, name = AGGREGATES[call.function], call.function.lower()
        if self._resolve_aggregate is None:
            shown = print_expression(call)
            self._diagnostics.error(
                "misplaced-aggregate",
                f"`{name}` is over several events, and a predicate here asks one event",
                call.span,
                f"ask it in a clause of the correlation: `having {shown} > ...`",
            )
            return None
        declared = self._resolve_aggregate(call)
        takes = aggregate.takes
        if declared is not None and takes is not None and declared.kind not in takes:
            advice = f"it takes {_any_of(takes)}"
            asked = call.arguments[0]
            if "real" in takes and declared.kind == "string" and isinstance(asked, Name):
                texts = ".".join(asked.parts[1:])
                advice += (
                    f": declare `attribute double {texts};` if events bring numbers, or work one"
                    f" out, `attribute double number = DOUBLE({texts});`"
                )
            self._cannot_cast(call.arguments[0], declared.kind, f"`{name}`", advice)
        if aggregate.result is not None:
            return aggregate.result
        if declared is None:
            return "number" if call.function == "SUM" else None
        return declared.kind

    def _logic(self, logic: Logic) -> Kind:
        for index, operand in enumerate(logic.operands):
            sign = logic.operators[max(0, index - 1)]
            self._want("boolean", operand, self.kind(operand), f"`{sign}`")
        warn_mixed(logic, self._diagnostics)
        return "boolean"

    def _want(self, wanted: Kind, operand: Expression, kind: Kind | None, by: str) -> None:
        """Report an operand that can never be cast to the wanted kind implicitly."""
        if kind is None:
            return
        if kind in _NEVER[wanted]:
            # A failed cast between CESQL's own types has a defined result, so it is legal.
            is_legal = kind not in ("timestamp", "sequence") and wanted != "timestamp"
            self._cannot_cast(operand, kind, by, _ADVICE[wanted], is_legal)
        elif isinstance(operand, Literal) and isinstance(operand.value, str):
            try:
                CASTS[wanted](operand.value)
            except FaultError:
                self._diagnostics.warning(
                    "constant-never-fits",
                    f"{by} needs {with_article(wanted)}, and this string is none",
                    operand.span,
                    _instead_of_constant(wanted, operand.value, by),
                )

    def _cannot_cast(
        self, operand: Expression, kind: Kind | None, by: str, advice: str, is_legal: bool = False
    ) -> None:
        report = self._diagnostics.warning if is_legal else self._diagnostics.error
        report("operand-never-fits", f"{by} cannot take {with_article(kind)}", operand.span, advice)


def _instead_of_constant(wanted: Kind, text: str, by: str) -> str:
    """The advice for a text that an operator can never take."""
    day = re.match(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d:\d\d))?", text)
    if wanted == "timestamp" and day:
        return f"write `{day[1]}T{day[2] or '00:00:00'}Z`: a time has a date, a time and an offset"
    length = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]+)", text.strip())
    if wanted == "number" and length and length[2] in MICROSECONDS:
        seconds = float(length[1]) * MICROSECONDS[length[2]] / MICROSECONDS["s"]
        return f"write `{seconds:g}`: the time between two events is a number of seconds"
    if wanted == "boolean":
        return f"compare it too: `name = {quote(text)}`, or `name IN ({quote(text)}, ...)`"
    if by == "`+`":
        return "texts are joined by `CONCAT(..., ...)`"
    return "this part of the expression is always in error"


def _any_of(kinds: Iterable[Kind]) -> str:
    *first, last = sorted(f"{each}s" for each in kinds)
    return f"{', '.join(first)} and {last}"


def _family(kind: Kind) -> Kind:
    return "number" if kind in ("integer", "real") else kind


def _compared_as(sign: str, left: Kind | None, right: Kind | None) -> Kind | None:
    """The kind that both sides of a comparison are cast to; None where it is not known."""
    if "sequence" in (left, right):
        return "string"
    if "timestamp" in (left, right):
        return "timestamp"
    if sign in ("=", "!="):
        # An unknown left side may be a timestamp, to which a string would be cast.
        return None if right is None or left is None else _family(right)
    # Either side may turn out to be a timestamp, unless the other could not be compared with it.
    if {left, right} & {"boolean", "integer", "real", "number"}:
        return "number"
    return None if None in (left, right) else "number"


def _number_kind(kinds: Sequence[Kind | None]) -> Kind:
    if "real" in kinds:
        return "real"
    return "integer" if set(kinds) <= {"integer", "boolean"} else "number"
