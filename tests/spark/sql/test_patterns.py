"""Patterns of RE2 that Java reads too: the same matches, and the same text of each group."""

from __future__ import annotations

from random import Random

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from ensue.lang.expressions.builtins.patterns import extracted, pattern_problem
from ensue.spark.sql.patterns import java_pattern

SIGNS = [
    *("a", "b", "x", "1", " ", "=", "-", "é", "🎈", "\n", "\r", "\u2028", "\x0b", "[", "}"),
    *("from", "A", "_", ".", "&"),
]
ATOMS = [
    *("a", "b", "1", " ", "=", ".", r"\d", r"\w", r"\s", r"\S", r"\W", r"\.", r"\[", "é", "🎈"),
    *("[ab]", "[^a]", "[a-x]", r"[\d.]", r"[\s=]", "[^ ]", "[-a]", "[a-]", "[&&b]", "[.$^]"),
]
REPEATS = ["", "", "", "*", "+", "?", "*?", "+?", "??", "{2}", "{1,}", "{0,2}"]


def pattern(random: Random, depth: int = 2) -> str:
    written = []
    for _ in range(random.choice([1, 2, 2, 3])):
        if depth and random.random() < 0.4:
            inside = pattern(random, depth - 1)
            if random.random() < 0.3:
                inside += "|" + pattern(random, depth - 1)
            bracket = random.choice(
                ["({})", "({})", "(?:{})", f"(?P<n{random.randrange(99)}>{{}})"]
            )
            written.append(bracket.format(inside) + random.choice(["", "", "?"]))
        else:
            written.append(random.choice(ATOMS) + random.choice(REPEATS))
    text = "".join(written)
    if random.random() < 0.15:
        text = f"^{text}"
    return f"{text}$" if random.random() < 0.15 else text


def readable(random: Random, count: int) -> list[str]:
    found: list[str] = []
    while len(found) < count:
        drawn = pattern(random)
        if pattern_problem(drawn) is None and java_pattern(drawn) is not None:
            found.append(drawn)
    return found


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_java_finds_what_re2_finds(spark: SparkSession, seed: int) -> None:
    """Random patterns over random texts, every group that has a part in every match."""
    random = Random(seed)
    texts = ["", *("".join(random.choices(SIGNS, k=random.randrange(1, 9))) for _ in range(150))]
    frame = spark.createDataFrame([(each,) for each in texts], "t string")
    asked = [
        (each, java, group)
        for each in readable(random, 60)
        if (java := java_pattern(each)) is not None
        for group in sorted(java.certain)
    ]
    columns = [
        sf.when(sf.col("t").rlike(java.text), sf.regexp_extract("t", java.text, group))
        for _, java, group in asked
    ]
    rows = frame.select("t", sf.array(*columns).alias("found")).collect()

    wrong = [
        f"{asked[n][0]!r} group {asked[n][2]} of {row.t!r}: {found!r}"
        for row in rows
        for n, found in enumerate(row.found)
        if found != extracted(row.t, asked[n][0], asked[n][2])
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "given",
    [
        "(?i)error",  # Java folds ASCII only
        r"\bword\b",  # another idea of a word
        "(a|b)*",  # Java goes as deep as the text is long
        "(a+)+",
        "a*b*c*d*",  # backtracks
        r"\pL",
        r"[[:alpha:]]",
        r"\Qa.b\E",
    ],
)
def test_a_pattern_that_may_mean_something_else_is_left_to_python(given: str) -> None:
    """None of these becomes a pattern of Java."""
    assert pattern_problem(given) is None
    assert java_pattern(given) is None


def test_a_group_that_may_have_no_part_is_not_certain() -> None:
    """Java says an empty text where such a group has no part in a match."""
    optional = java_pattern("a(b)?(c)")
    either = java_pattern("(a)|(b)")

    assert optional is not None
    assert optional.certain == {0, 2}
    assert either is not None
    assert either.certain == {0}
