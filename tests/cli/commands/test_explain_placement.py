"""`ensue explain --placement`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Ensue

LIBRARY = """
eventtype A { attribute long v; };
eventtype B { attribute long v; };
eventtype C { attribute long v; };
eventtype Out { attribute long v; };
Out correlation Split (A a, B b, C c) (a ; b) + c within 1 min
{ case true: push new Out { v = b.v }; }
Out correlation Whole (A a, C c) a | c { case true: push new Out { v = c.v }; }
"""
SITES = """
[[site]]
name = "near"
types = ["A", "B"]
[[site]]
name = "far"
types = ["C"]
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str, str]:
    library, sites, events = (tmp_path / each for each in ("r.cor", "s.toml", "e.jsonl"))
    library.write_text(LIBRARY)
    sites.write_text(SITES)
    lines = [
        {"id": str(n), "source": "x", "type": kind, "time": f"2025-01-01T00:00:0{n}Z"}
        for n, kind in enumerate(["A", "A", "C", "Other"])
    ]
    events.write_text("".join(json.dumps({**each, "data": {"v": 1}}) + "\n" for each in lines))
    return str(library), str(sites), str(events)


def test_it_says_who_runs_what_and_why_not(ensue: Ensue, files: tuple[str, str, str]) -> None:
    library, sites, _ = files
    shown = ensue("explain", library, "--placement", sites)

    assert shown.code == 0
    assert "once a ; b has matched: a, b" in " ".join(shown.out.split())
    assert "it can trigger without anything from" in " ".join(shown.out.split())
    assert max(len(line) for line in shown.out.splitlines()) <= 80


def test_one_rule_can_be_asked_for(ensue: Ensue, files: tuple[str, str, str]) -> None:
    library, sites, _ = files
    shown = ensue("explain", library, "Split", "--placement", sites)

    assert "Split" in shown.out
    assert "Whole" not in shown.out


def test_messages_are_counted_and_events_of_no_site_told(
    ensue: Ensue, files: tuple[str, str, str]
) -> None:
    library, sites, events = files
    shown = ensue("explain", library, "Split", "--placement", sites, "-e", events)

    assert "placed so" in shown.out
    assert "1 event left out" in shown.err


def test_it_is_given_as_json(ensue: Ensue, files: tuple[str, str, str]) -> None:
    library, sites, events = files
    shown = ensue("explain", library, "--placement", sites, "--format", "json", "--events", events)
    said = json.loads(shown.out)

    assert said["rules"][0]["parts"][0]["needed"] == "a ; b"
    assert said["messages"]["whole_by_types"] == 1


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        (["--format", "svg"], "a placement cannot be shown as `svg`"),
        (["--events", "none.jsonl"], "none.jsonl"),
    ],
)
def test_what_cannot_be_shown_is_told(
    ensue: Ensue, files: tuple[str, str, str], more: list[str], complaint: str
) -> None:
    library, sites, _ = files
    shown = ensue("explain", library, "--placement", sites, *more)

    assert shown.code == 2
    assert complaint in shown.err


def test_events_alone_are_refused(ensue: Ensue, files: tuple[str, str, str]) -> None:
    shown = ensue("explain", files[0], "Split", "--events", files[2])

    assert shown.code == 2
    assert "is allowed only with `--placement`" in shown.err


def test_messages_of_one_rule_are_those_of_the_rule_alone(
    ensue: Ensue, files: tuple[str, str, str]
) -> None:
    """Two `A` go over no link for `Split`; `Whole` needs each of them."""
    library, sites, events = files

    def messages(*name: str) -> dict[str, int]:
        shown = ensue(
            "explain", library, *name, "--placement", sites, "--format", "json", "-e", events
        )
        told: dict[str, int] = json.loads(shown.out)["messages"]
        return told

    assert messages("Split")["events"] < messages()["events"]
    assert messages("Whole")["events"] <= messages()["events"]
