"""The command that hunts: what it says, when it stops, and its exit codes."""

from __future__ import annotations

import pytest

from tests.hunts.__main__ import main
from tests.hunts.runner.registry import FOLDERS, hunt_named, hunts
from tests.hunts.runner.rounds import Order
from tests.hunts.runner.side_by_side import run

SAMPLES = ("samples",)


def test_a_find_is_told_with_the_command_that_shows_it_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = main(["failing", "--seed", "4", "--rounds", "3", "--faults", "loss"], SAMPLES)

    said = capsys.readouterr().out
    assert code == 1
    assert "failing: seeds from 4, 3 rounds: Every third seed is wrong" in said
    assert "FOUND by failing with seed 6:\n6 is wrong with loss\n" in said
    assert "again: python -m tests.hunts failing --seed 6 --rounds 1 --faults loss\n" in said
    assert "failing: 3 rounds, 2 numbers, 1 FOUND" in said


def test_nothing_found_is_exit_code_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["failing", "--seed", "4", "--rounds", "2"], SAMPLES) == 0
    assert "failing: 2 rounds, 2 numbers\n" in capsys.readouterr().out


def test_a_hunt_goes_on_until_its_time_is_over(capsys: pytest.CaptureFixture[str]) -> None:
    """It gives up after three finds, and needs a moment to start."""
    assert main(["failing", "--seed", "0", "--minutes", "1"], SAMPLES) == 1
    assert capsys.readouterr().out.count("FOUND by failing") == 3


def test_a_process_that_dies_is_a_find(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dying", "--seed", "5"], SAMPLES) == 1

    said = capsys.readouterr().out
    assert "the process has ended with code 7\nthe last words of 5\n" in said
    assert "again: python -m tests.hunts dying --seed 5 --rounds 1\n" in said


def test_a_round_without_end_is_a_find() -> None:
    said: list[str] = []

    assert run([Order(hunt_named("failing", SAMPLES), 100, 0.0)], 1, said.append, patience=4) == 1
    assert "the round does not come to an end" in "\n".join(said)


def test_a_hunt_that_lacks_something_says_what(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lacking", "--seed", "5"], SAMPLES) == 0
    assert "lacking: left out: there is no moon\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["faling"], "there is no hunt `faling`; did you mean `failing`?"),
        (["x"], "there is no hunt `x`; there are dying, failing, lacking"),
        (["--faults", "los"], "no chosen hunt knows the fault `los`; did you mean `loss`?"),
        (["dying", "--faults", "loss"], "no chosen hunt knows the fault `loss`; there are none"),
    ],
)
def test_a_wrong_call_names_what_is_there(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments, SAMPLES)

    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_every_hunt_has_a_name_of_its_own_and_an_aim(capsys: pytest.CaptureFixture[str]) -> None:
    known = hunts()

    assert main(["--list"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert [line.split(maxsplit=1) for line in listed] == [[each.name, each.aim] for each in known]
    assert len({each.name for each in known}) == len(known)
    assert all(each.aim.endswith(".") for each in known)
    assert {each.module.split(".")[2] for each in known} <= set(FOLDERS)
