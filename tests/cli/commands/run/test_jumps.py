"""`ensue run` and events whose clock is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Ensue

RULES = """
eventtype A { attribute string k; };
eventtype Out {};
Out correlation Quiet (A a, deadline 1 min d) d by k { case true: push new Out {}; }
"""
TIMES = ["2024-05-06T07:00:00Z", "9999-12-31T23:59:59Z", "2024-05-06T07:02:30Z"]


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "timed.cor"
    path.write_text(RULES)
    return path


@pytest.fixture
def events(tmp_path: Path) -> Path:
    path = tmp_path / "events.jsonl"
    lines = [
        json.dumps({"id": str(n), "source": "s", "type": "A", "time": time, "data": {"k": "x"}})
        for n, time in enumerate(TIMES)
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("engine", ["reference", "step", "batch", "auto"])
@pytest.mark.parametrize("stream", [[], ["--lateness", "5 min"]])
def test_an_event_of_the_far_future_is_refused_and_kept(
    ensue: Ensue, rules: Path, events: Path, tmp_path: Path, engine: str, stream: list[str]
) -> None:
    letters = tmp_path / "letters.jsonl"
    answer = ensue(
        "run", rules, "-e", events, "--engine", engine, "--dead-letter", letters, *stream
    )

    assert (answer.code, len(answer.outputs)) == (0, 2)
    assert "event `1`: its time, 9999-12-31T23:59:59Z, is too far ahead" in answer.err
    assert "2 events read, 1 refused" in answer.err
    assert json.loads(letters.read_text())["id"] == "1"


def test_a_jump_may_be_set(ensue: Ensue, rules: Path, events: Path) -> None:
    answer = ensue("run", rules, "-e", events, "--max-jump", "2 min")

    assert (len(answer.outputs), answer.err.count("is too far ahead")) == (0, 2)


def test_with_strict_the_run_stops_there(ensue: Ensue, rules: Path, events: Path) -> None:
    assert ensue("run", rules, "-e", events, "--strict").code == 1


def test_a_jump_that_is_no_duration_is_a_wrong_call(
    ensue: Ensue, rules: Path, events: Path
) -> None:
    answer = ensue("run", rules, "-e", events, "--max-jump", "far")

    assert answer.code == 2
    assert "`far` is no duration" in answer.err


def test_a_clock_told_to_go_on_for_ever_is_a_wrong_call(
    ensue: Ensue, rules: Path, events: Path
) -> None:
    answer = ensue("run", rules, "-e", events, "--until", "9999-01-01T00:00:00Z")

    assert answer.code == 2
    assert "max_jump" in answer.err
