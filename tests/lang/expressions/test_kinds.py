"""What is found in an expression before it runs."""

from __future__ import annotations

import pytest
from hypothesis import given

from ensue.events.types import ValueType
from ensue.lang.diagnostics import Diagnostic, Diagnostics
from ensue.lang.expressions import Expression, Name
from ensue.lang.expressions.checking.fitting import check_value
from ensue.lang.expressions.checking.kinds import check_expression, check_predicate
from ensue.lang.expressions.text.parsing import parse_expression
from ensue.lang.source import Source

from .trees import expressions

TYPES = {
    "flag": ValueType("boolean"),
    "small": ValueType("short"),
    "byte": ValueType("octet"),
    "big": ValueType("long long"),
    "level": ValueType("double"),
    "text": ValueType("string"),
    "letter": ValueType("char"),
    "at": ValueType("timestamp"),
    "list": ValueType("sequence", ValueType("short")),
}


def resolve(name: Name) -> ValueType | None:
    return TYPES.get(name.text)


def check(text: str) -> tuple[str | None, list[Diagnostic]]:
    diagnostics = Diagnostics(Source.of(text))
    kind = check_expression(parse_expression(text), resolve, diagnostics)
    return kind, diagnostics.found


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("flag", "boolean"),
        ("small + 1", "integer"),
        ("small + flag", "integer"),
        ("small + level", "real"),
        ("small + unknown", "number"),
        ("unknown", None),
        ("-level", "real"),
        ("NOT flag", "boolean"),
        ("small = '1' AND EXISTS text", "boolean"),
        ("LENGTH(small)", "integer"),
        ("ABS(level)", "real"),
        ("at", "timestamp"),
        ("list", "sequence"),
        ("letter", "string"),
        ("at < '2024-01-01T00:00:00Z'", "boolean"),
        ("'2024-01-01T00:00:00Z' < unknown", "boolean"),
        ("unknown = 'x' OR 'x' IN (unknown)", "boolean"),
        ("-9223372036854775808", "integer"),
    ],
)
def test_the_kind_of_a_result_is_told_and_nothing_is_reported(text: str, kind: str | None) -> None:
    assert check(text) == (kind, [])


@pytest.mark.parametrize(
    ("text", "code", "column", "said"),
    [
        ("LENGHT(text)", "unknown-function", 1, "did you mean `LENGTH`"),
        ("1 + LEFT(text)", "wrong-argument-count", 5, "it takes 2"),
        ("SUBSTRING('a')", "wrong-argument-count", 1, "it takes 2 or 3"),
        ("CONCAT_WS()", "wrong-argument-count", 1, "it takes 1 or more"),
        ("9223372036854775808", "integer-out-of-range", 1, "9223372036854775807"),
        ("-9223372036854775809", "integer-out-of-range", 2, "-9223372036854775808"),
        ("1e999 < level", "real-out-of-range", 1, "does not fit a double"),
        ("list LIKE 'x'", "operand-never-fits", 1, "`LIKE` cannot take a sequence"),
        ("1 + at", "operand-never-fits", 5, "`+` cannot take a timestamp"),
        ("at < 5", "operand-never-fits", 6, "`<` cannot take an integer"),
        ("list = 1", "operand-never-fits", 1, "`=` cannot take a sequence"),
        ("INT(at)", "operand-never-fits", 5, "`INT` cannot take a timestamp"),
    ],
)
def test_what_cannot_be_right_is_an_error(text: str, code: str, column: int, said: str) -> None:
    _, (found,) = check(text)

    assert (found.severity, found.code, found.column) == ("error", code, column)
    assert said in str(found)


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("small < 'low'", "constant-never-fits", "`<` needs a number"),
        ("'x' + small", "constant-never-fits", "`+` needs a number"),
        ("at > 'noon'", "constant-never-fits", "`>` needs a timestamp"),
        ("flag AND 'yes'", "constant-never-fits", "`AND` needs a boolean"),
        ("small IN (1, 'x')", "constant-never-fits", "`IN` needs a number"),
        ("flag AND small", "operand-never-fits", "`AND` cannot take an integer"),
        ("NOT level", "operand-never-fits", "`NOT` cannot take a real"),
        ("small = flag", "operand-never-fits", "`=` cannot take an integer"),
        ("flag IN (TRUE, 1)", "operand-never-fits", "`IN` cannot take an integer"),
        ("LEFT(text, level)", "operand-never-fits", "use `INT(...)`"),
        ("text > small", "text-as-number", "write `INT(text) > small`"),
        ("text = 3", "text-as-number", "write `text = '3'`"),
        ("text * 2", "text-as-number", "write `INT(text)`"),
        ("small + text", "text-as-number", "`CONCAT(text, ...)`"),
        ("1 < small < 3", "chained-comparison", "write `1 < small AND small < 3`"),
        ("text LIKE 'a*'", "star-in-pattern", "write `LIKE 'a%'`"),
        ("a AND b OR c", "mixed-logic", "it is read as `a AND (b OR c)`"),
        ("a OR b OR c AND d OR e", "mixed-logic", "`a OR b OR (c AND (d OR e))`"),
        ("a OR (x AND y) XOR c", "mixed-logic", "`a OR ((x AND y) XOR c)`"),
        ("NOT a = b", "not-binds-tightest", "`(NOT a) = b`; to negate the whole, write `NOT (a ="),
        ("NOT a LIKE 'x'", "not-binds-tightest", "write `a NOT LIKE 'x'`"),
        ("NOT a IN (b)", "not-binds-tightest", "write `a NOT IN (...)`"),
    ],
)
def test_what_nobody_can_want_is_a_warning(text: str, code: str, said: str) -> None:
    _, (found,) = check(text)

    assert (found.severity, found.code) == ("warning", code)
    assert said in str(found)


@pytest.mark.parametrize(
    "text", ["a AND (b OR c)", "(NOT a) = b", "NOT (a) AND b", "NOT (a = b)", "a = NOT b"]
)
def test_brackets_settle_what_was_open(text: str) -> None:
    assert check(text) == ("boolean", [])


@pytest.mark.parametrize("text", ["flag", "unknown", "small > 1", "BOOL(text)", "EXISTS text"])
def test_a_predicate_may_be_boolean_or_not_known(text: str) -> None:
    diagnostics = Diagnostics(Source.of(text))
    check_predicate(parse_expression(text), resolve, diagnostics)

    assert diagnostics.found == []


@pytest.mark.parametrize("text", ["small", "text", "'true'", "1 + 1", "small + unknown", "list"])
def test_a_predicate_of_another_kind_is_an_error(text: str) -> None:
    diagnostics = Diagnostics(Source.of(text))
    check_predicate(parse_expression(text), resolve, diagnostics)

    assert [each.code for each in diagnostics.found] == ["predicate-not-boolean"]


def check_fit(text: str, target: str) -> list[Diagnostic]:
    diagnostics = Diagnostics(Source.of(text))
    element = ValueType(target[9:-1]) if target.startswith("sequence") else None
    type_ = ValueType("sequence", element) if element else ValueType(target)
    check_value(parse_expression(text), type_, resolve, diagnostics)
    return diagnostics.found


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("32767", "short"),
        ("-32768", "short"),
        ("-9223372036854775808", "long long"),
        ("byte", "short"),
        ("big + 1", "short"),
        ("INT(big)", "short"),
        ("INT(text) + 1", "long"),
        ("small", "float"),
        ("level", "float"),
        ("3", "double"),
        ("-1.5", "float"),
        ("letter", "string"),
        ("'x'", "char"),
        ("LEFT(text, 1)", "char"),
        ("at", "timestamp"),
        ("'2024-01-01T00:00:00Z'", "timestamp"),
        ("2024-01-01T00:00:00Z", "timestamp"),
        ("flag", "boolean"),
        ("small > 1", "boolean"),
        ("list", "sequence<long>"),
        ("unknown", "short"),
        ("STRING(level)", "string"),
    ],
)
def test_a_value_fits(text: str, target: str) -> None:
    assert check_fit(text, target) == []


@pytest.mark.parametrize(
    ("text", "target", "said"),
    [
        ("32768", "short", "integers from -32768 to 32767"),
        ("-1", "octet", "the integer `-1` does not fit"),
        ("1.5", "long", "write `INT(1.5)`"),
        ("big", "short", "write `INT(big)` to have it checked"),
        ("small", "octet", "`small`, a `short`, does not fit"),
        ("byte", "string", "`byte`, an `octet`, does not fit"),
        ("level * 2", "long", "a real does not fit"),
        ("level", "string", "write `STRING(level)`"),
        ("1e39", "float", "up to about 3.4e38"),
        ("'xy'", "char", "one character"),
        ("text", "char", "LEFT"),
        ("text", "timestamp", "RFC 3339"),
        ("'noon'", "timestamp", "RFC 3339"),
        ("1", "boolean", "`TRUE` and `FALSE`"),
        ("TRUE", "long", "the boolean `TRUE` does not fit"),
        ("at", "long", "`at`, a `timestamp`, does not fit"),
        ("list", "sequence<octet>", "sequences of `octet`"),
        ("list", "string", "`list`, a `sequence<short>`, does not fit"),
    ],
)
def test_a_value_that_does_not_fit_is_an_error(text: str, target: str, said: str) -> None:
    (found,) = check_fit(text, target)

    assert found.code == "value-does-not-fit"
    assert said in str(found)


def test_a_mistake_inside_a_value_is_reported_once() -> None:
    assert [each.code for each in check_fit("1 + at", "string")] == ["operand-never-fits"]


@given(expressions)
def test_checking_never_raises(tree: Expression) -> None:
    for target in (ValueType("short"), ValueType("string"), ValueType("timestamp")):
        check_value(tree, target, resolve, Diagnostics(Source.of("")))
