"""What a run says of rules that put nothing out: attributes that no event had, and odd times."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Ensue

RULES = """
eventtype Logon = "4624" { attribute string TargetUsername; attribute string host.name; };
eventtype Found { attribute string who; };
Found correlation Twice (Logon a, Logon b) a ; b by TargetUsername
{
    case true: push new Found { who = b.TargetUsername };
}
Found correlation Hosts (Logon a) a where_clause
{
    case true: push new Found { };
}
""".replace("(Logon a) a where_clause", "(Logon a where host.name = 'x') a")


@pytest.mark.parametrize("engine", ["step", "batch"])
def test_a_rule_without_outputs_names_the_attributes_that_no_event_had(
    ensue: Ensue, tmp_path: Path, engine: str
) -> None:
    (tmp_path / "logons.cor").write_text(RULES)
    log = tmp_path / "log.jsonl"
    rows = [
        {"at": n, "EventID": 4624, "TargetUserName": "ann", "host": {"name": "x"}} for n in (1, 2)
    ]
    log.write_text("".join(json.dumps(each) + "\n" for each in rows))
    options = ["--columns", "time=at:ms,type=EventID", "--engine", engine]

    answer = ensue("run", tmp_path / "logons.cor", "-e", log, *options)

    said = answer.err.splitlines()
    assert (
        "no event had `TargetUsername`, which `Twice` reads; did you mean `TargetUserName`?" in said
    )
    # The other rule has put something out.
    assert len([each for each in said if each.startswith("no event had")]) == 1
    assert any("2 of 2 events lie in 1970, since `time` is read in `ms`" in each for each in said)


@pytest.mark.parametrize("engine", ["step", "batch"])
def test_a_rule_that_only_waits_is_told_nothing(ensue: Ensue, tmp_path: Path, engine: str) -> None:
    (tmp_path / "logons.cor").write_text(RULES)
    log = tmp_path / "log.jsonl"
    row = {"at": 1714978800, "EventID": 4624, "TargetUsername": "ann", "host": {"name": "y"}}
    log.write_text(json.dumps(row) + "\n")
    options = ["--columns", "time=at:s,type=EventID", "--engine", engine]

    answer = ensue("run", tmp_path / "logons.cor", "-e", log, *options)

    assert "no event had" not in answer.err
    assert "1970" not in answer.err


@pytest.mark.parametrize("engine", ["step", "batch"])
@pytest.mark.parametrize("is_out_of_order", [False, True])
def test_a_rule_with_outputs_names_what_seems_misspelt(
    ensue: Ensue, tmp_path: Path, engine: str, is_out_of_order: bool
) -> None:
    """The event that shows it need not be the first: in such logs most fields are of few events."""
    (tmp_path / "logons.cor").write_text(
        """
eventtype Logon { attribute string TargetUsername; attribute string Rest; };
eventtype Found { attribute string who; attribute string rest; };
Found correlation Each (Logon a) a
{
    case true: push new Found { who = a.TargetUsername, rest = a.Rest };
}
"""
    )
    log = tmp_path / "log.jsonl"
    rows = [{"at": f"2024-05-06T07:{n:02}:00Z", f"Field{n}": n} for n in range(30)]
    rows[20]["TargetUserName"] = "ann"
    if is_out_of_order:
        rows[3], rows[4] = rows[4], rows[3]
    log.write_text("".join(json.dumps(each) + "\n" for each in rows))
    options = ["--columns", "time=at", "--type", "Logon", "--engine", engine]

    answer = ensue("run", tmp_path / "logons.cor", "-e", log, *options)

    said = [each for each in answer.err.splitlines() if each.startswith("no event had")]
    # Nothing is like `Rest`, which may well be rare.
    assert said == [
        "no event had `TargetUsername`, which `Each` reads; did you mean `TargetUserName`?"
    ]
