"""`--set`: values of parameters, with every command that takes a library."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Ensue, event

RULES = """
parameter long limit = 3;
parameter duration pause = 5 min;
eventtype Failed { attribute string user; };
eventtype Alarm {};
Alarm correlation Many (Failed f) f{limit} within pause { case true: push new Alarm {}; }
internal Alarm correlation Hidden (Failed f) f { case true: push new Alarm {}; }
Alarm correlation Seen (Alarm a from Hidden) a{3} { case true: push a; }
"""


@pytest.fixture
def library(tmp_path: Path) -> Path:
    path = tmp_path / "limits.cor"
    path.write_text(RULES)
    return path


EVENTS = "".join(f"{event(n, 'Failed', n)}\n" for n in range(4))


def test_a_run_takes_values(ensue: Ensue, library: Path) -> None:
    def found(*settings: str) -> int:
        options = [each for one in settings for each in ("--set", one)]
        answer = ensue("run", library, "-e", "-", "--correlation", "Many", *options, stdin=EVENTS)
        assert answer.code == 0, answer.err
        return len(answer.outputs)

    assert found() == 1
    assert found("limit=2") == 2
    assert found("limit=2", "pause=500 ms") == 0


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("limt=2", "there is no parameter `limt`; did you mean `limit`?"),
        ("limit=two", "`two` does not fit parameter `limit`, a `long`"),
        ("limit", "`--set limit` sets nothing: write `--set NAME=VALUE`"),
    ],
)
def test_what_does_not_fit_is_told(ensue: Ensue, library: Path, setting: str, words: str) -> None:
    answer = ensue("run", library, "-e", "-", "--set", setting, stdin=EVENTS)

    assert answer.code == 2
    assert words in answer.err


def test_other_commands_take_values_too(ensue: Ensue, library: Path) -> None:
    assert ensue("check", library, "--set", "limit=4").code == 0
    assert "4 times" in ensue("explain", library, "Many", "--set", "limit=4").out
    compared = ensue("compare", library, "Many", "Seen", "--set", "limit=4")
    assert compared.code == 0


def test_an_internal_rule_has_no_outputs_to_ask_for(ensue: Ensue, library: Path) -> None:
    answer = ensue("run", library, "-e", "-", "--correlation", "Hidden", stdin=EVENTS)

    assert answer.code == 2
    assert "`Hidden` is internal" in answer.err
