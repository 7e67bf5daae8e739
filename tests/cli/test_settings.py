"""Mistakes that a value of `--set` makes."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Ensue

RULES = """parameter long limit = 3;
parameter long most = 9;
eventtype A {};
A correlation X (A a from outside) a{limit} { case true: push a; }
A correlation Y (A a from Nowhere) a{most} { case true: push a; }
"""


def test_a_mistake_of_a_given_value_points_at_the_option_and_at_the_text(
    ensue: Ensue, tmp_path: Path
) -> None:
    path = tmp_path / "rules.cor"
    path.write_text(RULES)

    answer = ensue("check", path, "--set", "limit=0", "--set", "most=8")
    first, second, *_ = answer.out.split("\n\n")

    assert first.splitlines() == [
        f"{path}:4:36: error: `limit` is 0, and there must be at least 1 repetition [bad-count]",
        "  4 | A correlation X (A a from outside) a{limit} { case true: push a; }",
        "    |                                    ^^^^^^^^",
        "command line: the value is given here",
        "    | --set limit=0",
        "    | ^^^^^^^^^^^^^",
        "    = give it a value of 1 or more",
    ]
    # What is wrong without any value is not blamed on one.
    assert "[unknown-source]" in second
    assert "command line" not in second


def test_without_a_given_value_nothing_points_at_the_command_line(
    ensue: Ensue, tmp_path: Path
) -> None:
    path = tmp_path / "rules.cor"
    path.write_text(RULES.replace("limit = 3", "limit = 0"))

    assert "command line" not in ensue("run", path, "--events", "-", "--set", "most=8").err
