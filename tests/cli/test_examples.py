"""The examples do what their pages say."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import Ensue

EXAMPLES = Path(__file__).parents[2] / "examples"
# What runs on Spark is run by `tests/spark`.
IN_A_PROCESS = sorted(cases.parent for cases in EXAMPLES.glob("*/cases.toml"))


def commands(example: Path) -> list[list[str]]:
    """The commands in the README of an example."""
    lines = (example / "README.md").read_text().splitlines()
    return [shlex.split(line)[1:] for line in lines if line.startswith("ensue ")]


@pytest.mark.parametrize("example", IN_A_PROCESS, ids=lambda path: path.name)
def test_every_command_of_the_readme_works(
    ensue: Ensue, example: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(example)

    assert [ensue(*command).code for command in commands(example)] == [0, 0, 0]
    assert ensue("check", "rules.cor").out.startswith("good: ")


def test_the_network_outage(ensue: Ensue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES / "network-outage")

    found = [
        (output["type"], output["partitionkey"]) for output in ensue(*commands(Path())[0]).outputs
    ]

    assert found == [("Outage", "oslo"), ("Outage", "lima"), ("Escalation", "lima")]


def test_the_cold_chain(ensue: Ensue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES / "cold-chain")

    answer = ensue(*commands(Path())[0])

    assert [(output["type"], output["time"]) for output in answer.outputs] == [
        ("Spoiled", "2024-05-06T08:15:00Z"),
        ("Silent", "2024-05-06T08:30:00Z"),
    ]
    assert answer.err.startswith("events.csv:10: attribute `celsius` of `Reading`")


def test_the_lost_vpn(ensue: Ensue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES / "lost-vpn")
    check, run = commands(Path())

    assert ensue(*check).out == "good: 2 event types, 1 correlation\n"
    assert [output["data"]["device"] for output in ensue(*run).outputs] == [
        "edge-7/ge-0/0/3",
        "edge-4",
    ]


def test_an_ontology_that_cannot_be_read_is_a_wrong_call(
    ensue: Ensue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(EXAMPLES / "lost-vpn")

    answer = ensue("check", "rules.cor", "--ontology", "nothing.ttl")

    assert (answer.code, answer.out) == (2, "")
    assert "`nothing.ttl` cannot be read" in answer.err
