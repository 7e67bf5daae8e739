"""Predicates in SQL hold for exactly the events that they hold for in Python."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

import ensue
from ensue.events.arrow import events_of
from ensue.events.event import Event
from ensue.lang.expressions import (
    Arithmetic,
    Call,
    Comparison,
    Exists,
    Expression,
    In,
    Like,
    Literal,
    Logic,
    Name,
    Negate,
    Not,
)
from ensue.lang.expressions.builtins.functions import FUNCTIONS
from ensue.lang.expressions.evaluation import holds
from ensue.lang.expressions.text.printing import print_expression
from ensue.spark.sql import predicates
from ensue.spark.sql.layout import layout_of
from ensue.spark.sql.scan import resolver
from ensue.spark.sql.values import NotInSqlError

TYPES = ensue.parse(
    """
    eventtype E {
        attribute long K; attribute long long L; attribute double F; attribute string S;
        attribute boolean B; attribute timestamp T; attribute sequence<long> Q;
    };
    """
).checked.types
SCHEMA = (
    "id string, type string, time timestamp, K int, L bigint, F double, S string, B boolean,"
    " T timestamp, Q array<int>, subject string, ce_hops bigint"
)
NAMES = ("K", "L", "F", "S", "B", "T", "Q", "time", "subject", "hops", "id", "gone", "Type")
INSTANT = datetime(2024, 5, 6, 7, 8, 9, 500_000, tzinfo=UTC)
LITERALS: tuple[Any, ...] = (
    True, False, 0, 1, 2, 5, 7, 2**31, 2**63 - 1, 2**63, 0.0, 0.5, 2.0, 1e308, 1e-300,
    "", "a", "1", "2.5", "true", "FALSE", "a%b", "é", "\\", "2024-05-06T07:08:09.5Z", INSTANT,
)  # fmt: skip
PATTERNS = ("%", "_", "a%", "%b", "a\\%b", "\\", "\\\\", "a_", "%_%", "tr_e", "", "🎈%", ".*")
ROWS: tuple[tuple[Any, ...], ...] = tuple(
    (str(n), "E", datetime(2024, 5, 6, 7, 8, n % 60, tzinfo=UTC), *values)
    for n, values in enumerate(
        [
            (1, 2**63 - 1, 0.5, "a", True, INSTANT, [1], "a", 1),
            (-1, -(2**63), -0.0, "a%b", False, datetime(1, 1, 2, tzinfo=UTC), [], None, None),
            (0, 0, 0.0, "", None, None, None, "", 0),
            (None, None, None, None, None, None, None, None, None),
            (7, 2**53 + 1, 9007199254740992.0, "TRUE", True, INSTANT, [None], "7", 7),
            (2**31 - 1, -7, 1.7976931348623157e308, "\\", False, INSTANT, [1, 2], "é", -1),
            (-(2**31), 3, 1e-320, "🎈b", True, datetime(9999, 12, 31, tzinfo=UTC), [3], "b", 2),
            (2, -1, -2.5, "a\nb", False, INSTANT, None, "true", 5),
            (5, 2, 2.0, "false", True, None, [5], "2024-05-06T07:08:09.5Z", None),
            (3, 1, 1e300, "2.5", None, INSTANT, [], "x_y", 2**62),
        ]
    )
)


def expression(random: Random, depth: int) -> Expression:
    if depth == 0 or random.random() < 0.15:
        if random.random() < 0.6:
            return Name((random.choice(NAMES),))
        return Literal(random.choice(LITERALS))

    def part() -> Expression:
        return expression(random, depth - 1)

    def chain(signs: Sequence[str]) -> tuple[tuple[str, Expression], ...]:
        return tuple((random.choice(signs), part()) for _ in range(random.choice([1, 1, 1, 2])))

    match random.randrange(11):
        case 0:
            return Not(part())
        case 1:
            return Negate(part())
        case 2:
            return Arithmetic(part(), chain("+-"))
        case 3:
            return Arithmetic(part(), chain("*/%"))
        case 4 | 5 | 6:
            return Comparison(part(), chain(["=", "!=", "<", "<=", ">", ">="]))
        case 7:
            operators = [random.choice(["AND", "OR", "XOR"]) for _ in range(random.choice([1, 2]))]
            return Logic(tuple(part() for _ in range(len(operators) + 1)), tuple(operators))
        case 8:
            return Like(part(), random.choice(PATTERNS), random.random() < 0.3)
        case 9:
            options = tuple(part() for _ in range(random.choice([1, 2, 3])))
            return In(part(), options, random.random() < 0.3)
        case _:
            name = random.choice(sorted(FUNCTIONS))
            count = random.choice([1, 1, 2, 3])
            if random.random() < 0.2:
                return Exists(Name((random.choice(NAMES),)))
            return Call(name, tuple(part() for _ in range(count)))


def predicates_in_sql(seed: int, resolve: Any, count: int) -> Iterator[tuple[Expression, Any]]:
    random = Random(seed)
    while count:
        tree = expression(random, random.choice([1, 2, 3]))
        try:
            column = predicates.holds(tree, resolve)
        except NotInSqlError:
            continue
        count -= 1
        yield tree, column


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_predicate_in_sql_holds_where_it_holds_in_python(
    spark: SparkSession, seed: int, ansi: str
) -> None:
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    frame = spark.createDataFrame(ROWS, SCHEMA)
    events: list[Event] = list(events_of(frame.toArrow(), TYPES, source="spark"))
    resolve = resolver(layout_of(frame), "E", TYPES)
    found = list(predicates_in_sql(seed, resolve, 150))
    columns = [
        sf.coalesce(column, sf.lit(False)).alias(f"p{n}") for n, (_, column) in enumerate(found)
    ]
    rows = frame.select("id", *columns).collect()

    wrong = [
        f"{print_safely(tree)} over {event!r}: python {holds(tree, event)}"
        for row, event in zip(
            sorted(rows, key=lambda r: r.id), sorted(events, key=lambda e: e.id), strict=True
        )
        for n, (tree, _) in enumerate(found)
        if row[f"p{n}"] != holds(tree, event)
    ]
    assert wrong == []


def print_safely(tree: Expression) -> str:
    try:
        return print_expression(tree)
    except ensue.UsageError:
        return repr(tree)
