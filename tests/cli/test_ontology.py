"""`--ontology FILE`: every command that reads a library reads what its predicates ask."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ensue.cli.commands.stream import WatchedRules
from ensue.knowledge import SAMPLES
from tests.cli.conftest import Ensue
from tests.cli.test_examples import EXAMPLES

KNOWN = ("--ontology", "faults.ttl")
ANOTHER = ("--ontology", str(SAMPLES / "wine.ttl"))

CASE = """
[[case]]
name = "lost"
why = "a device took the tunnel down"
library_file = "rules.cor"
events = [
    '0 Trap {"fault": "net:ifDown", "device": "edge-1"}',
    '1 Trap {"fault": "net:vpnDown", "device": "vpn-1"}',
]
outputs = ["2 RootCause"]
"""


@pytest.fixture(autouse=True)
def at_the_example(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES / "lost-vpn")


def test_explain_reads_it(ensue: Ensue) -> None:
    assert "fault IS_A net:DeviceFault" in ensue("explain", "rules.cor", *KNOWN).out
    assert ensue("explain", "rules.cor", *ANOTHER).code == 2


def test_compare_reads_it(ensue: Ensue) -> None:
    answer = ensue("compare", "rules.cor", "LostVpn", "LostVpn", *KNOWN)

    assert answer.out.startswith("equivalent")
    assert ensue("compare", "rules.cor", "LostVpn", "LostVpn", *ANOTHER).code == 2


def test_cases_are_run_with_it(ensue: Ensue, tmp_path: Path) -> None:
    rules = json.dumps(str(EXAMPLES / "lost-vpn" / "rules.cor"))
    file = tmp_path / "cases.toml"
    file.write_text(CASE.replace('"rules.cor"', rules))

    answer = ensue("test", str(file), *KNOWN)

    assert (answer.code, answer.out.splitlines()[-1]) == (0, "1 passed, 0 failed")
    assert ensue("test", str(file)).code == 1


def test_history_finds_and_replays_with_it(ensue: Ensue, tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path / 'kept.db'}"
    ensue("history", "add", url, "--events", "traps.jsonl")

    run = ensue("run", "rules.cor", "--events", "traps.jsonl", *KNOWN)
    replayed = ensue("history", "replay", url, "rules.cor", *KNOWN)
    assert replayed.outputs == run.outputs != []

    is_device_fault = "fault IS_A net:DeviceFault"
    found = ensue("history", "find", url, is_device_fault, *KNOWN)
    tried = ensue("history", "replay", url, "--filter", is_device_fault, *KNOWN)
    assert found.outputs == tried.outputs != []
    without = ensue("history", "find", url, is_device_fault)
    assert (without.code, "give its files by `--ontology FILE`" in without.err) == (2, True)
    unknown = ensue("history", "find", url, "fault IS_A net:Nothing", *KNOWN)
    assert (unknown.code, "there is no concept `net:Nothing`" in unknown.err) == (2, True)


def test_rules_of_a_stream_are_read_with_it() -> None:
    library = WatchedRules([Path("rules.cor")], [Path("faults.ttl")]).load()

    assert list(library.correlations.names) == ["LostVpn"]
