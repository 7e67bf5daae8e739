"""`ensue compare`, and the warnings that analyses give to `ensue check`."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from ensue.cli import app
from tests.machine.analyses import rules


def call(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(each) for each in arguments], prog_name="ensue")
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """Rules of which one is written twice, one never fires and one needs its events back."""
    texts = {
        "Sum": "a + b",
        "Again": "(a ; b) | (b ; a)",
        "Order": "a ; b",
        "Never": "l1:a => { abort(l1); case l1: push new Out {}; }",
        "Back": "l1:a ; b => { case l1: push new Out {}; toggle(l1); }",
    }
    rules_text = "\n".join(rules.rule(name, text, "A a, B b") for name, text in texts.items())
    path = tmp_path / "rules.cor"
    path.write_text(rules.TYPES + rules_text)
    return path


def test_the_first_word_is_the_relation(library: Path) -> None:
    code, out, _ = call("compare", library, "Sum", "Again")

    assert (code, out.split()[0]) == (0, "equivalent")


def test_a_witness_is_shown_as_a_table(library: Path) -> None:
    code, out, _ = call("compare", library, "Sum", "Order")

    assert code == 0
    assert out.splitlines()[3:7] == [
        "only Sum puts something out at the end of",
        "  time  event                          Sum       Order",
        "  0 s   B b { V = 1, S = 'x', K = 1 }  -         -",
        "  1 s   A a { V = 1, S = 'x', K = 1 }  puts out  -",
    ]


def test_a_label_aborted_left_of_a_then_is_compared_exactly(library: Path) -> None:
    code, out, _ = call("compare", library, "Back", "Order")

    assert (code, out.split()[0]) == (0, "contained")


def test_what_is_undecided_says_why_and_is_no_answer(tmp_path: Path) -> None:
    path = tmp_path / "rules.cor"
    ports = "A a where V * V = 2, B b"
    path.write_text(
        rules.TYPES + rules.rule("One", "a", ports) + rules.rule("Two", "ecl false", ports)
    )

    code, out, _ = call("compare", path, "One", "Two")

    assert code == 2
    assert out.startswith("undecided\n  as far as predicates can be told apart")


@pytest.mark.parametrize("arguments", [[], ["Sum"], ["Sum", "Oder"]])
def test_a_wrong_call_is_answered_with_what_to_do(library: Path, arguments: list[str]) -> None:
    code, out, err = call("compare", library, *arguments)

    assert (code, out) == (2, "")
    assert "ensue compare LIB A B" in err or "did you mean `Order`?" in err


def test_check_warns_of_what_is_certain_and_places_it(library: Path) -> None:
    code, out, _ = call("check", library)
    found = {line.rpartition("[")[2] for line in out.splitlines() if " warning: " in line}

    assert code == 0
    assert {"can-never-fire]", "equivalent-rules]"} <= found
    assert "`Again` puts out at the same events as `Sum`" in out


def test_rules_that_push_different_things_are_not_taken_for_one(tmp_path: Path) -> None:
    path = tmp_path / "rules.cor"
    path.write_text(
        "eventtype In {}; eventtype X {}; eventtype Y {};"
        "X ecl One (In a) { repeat { notify { sequential { a, a } } } }"
        "Y ecl Two (In a) { repeat { notify { sequential { a, a } } } }"
    )

    assert "equivalent-rules" not in call("check", path)[1]
