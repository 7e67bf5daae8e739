"""`ensue schedule`: the verdict first, then the table; the exit code says the same."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Ensue

FLIGHT = Path(__file__).parents[3] / "examples" / "navigation-display" / "schedule.toml"


def test_the_navigation_display_meets_its_deadlines(ensue: Ensue) -> None:
    answer = ensue("schedule", FLIGHT)

    assert answer.code == 0
    assert answer.out.startswith("schedulable: 54.0% of one thread, rate-monotonic\n")
    assert "navigation display !   20/s  10.0%     2    1         5           25" in answer.out


def test_a_deadline_that_is_missed_is_told_with_how_much(ensue: Ensue, tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(FLIGHT.read_text().replace('"40 ms"', '"20 ms"'))
    answer = ensue("schedule", file)

    assert answer.code == 1
    assert answer.out.startswith(
        "unschedulable: `navigation display` misses its deadline by 5 ms; 54.0% of one thread"
    )


def test_the_same_as_data_and_as_a_picture(ensue: Ensue) -> None:
    told = json.loads(ensue("schedule", FLIGHT, "--format", "json").out)
    drawn = ensue("schedule", FLIGHT, "--format", "svg").out

    assert told["schedulable"] is True
    assert told["operations"][0]["name"] == "global positioning"
    assert drawn.startswith("<svg ")


def test_mistakes_are_told_with_the_file_and_no_traceback(ensue: Ensue, tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text('[[operation]]\nname = "a"\n')
    answer = ensue("schedule", file)

    assert answer.code == 2
    assert (
        "s.toml: operation `a`: a supplier has a `period`, a consumer has `consumes`" in answer.err
    )
    assert "Traceback" not in answer.err
