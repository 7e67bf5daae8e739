"""The paper's two scenarios: the examples do what their pages say, in each of their ways."""

from __future__ import annotations

import importlib.util
import runpy
from itertools import pairwise
from pathlib import Path
from random import Random
from types import ModuleType

import pytest

import ensue
from ensue.channel import VirtualClock, build
from ensue.events.event import Event
from ensue.history import History
from ensue.knowledge import Ontology

EXAMPLES = Path(__file__).parents[2] / "examples"


def _module(example: str, name: str) -> ModuleType:
    found = importlib.util.spec_from_file_location(name, EXAMPLES / example / f"{name}.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def guard() -> ModuleType:
    return _module("failed-logins", "guard")


@pytest.fixture(scope="module")
def filters() -> ModuleType:
    return _module("failed-logins", "filters")


@pytest.fixture(scope="module")
def root_cause() -> ModuleType:
    return _module("lost-vpn", "root_cause")


# --- failed logins -----------------------------------------------------------------------------


def _log(random: Random, count: int) -> list[Event]:
    """Messages at times of which no two are 2 s or 30 s apart, up to the millisecond."""
    time, events = 0, []
    for number in range(count):
        time += random.choice([101, 307, 1103, 1709, 1811, 2503, 7001, 31_013])
        failed = random.random() < 0.6
        severity = 4 if failed else random.choice([1, 3, 3, 4, 5])
        message = "login failed: root" if failed else "something else"
        data = {"severity": severity, "message": message}
        events.append(Event(str(number), "vault", "Log", time * 1000, data))
    return events


def _by_the_text(events: list[Event]) -> list[str]:
    """What the console shows, straight from the scenario's words."""
    shown: list[str] = []
    failures: list[int] = []
    alerted: list[int] = []
    for event in events:
        severity, now = event.data["severity"], event.time
        if severity >= 4 or (severity == 3 and any(0 < now - t <= 30_000_000 for t in alerted)):
            shown.append(event.id)
        if severity == 4 and "login failed" in event.data["message"]:
            failures.append(now)
            last = failures[-3:]
            gaps = [y - x for x, y in pairwise(last)]
            if len(last) == 3 and all(gap <= 2_000_000 for gap in gaps):
                alerted.append(now)
    return shown


def _shown_by_the_channel(guard: ModuleType, events: list[Event]) -> list[str]:
    clock, shown = VirtualClock(), []
    channel = build("full").dispatching("reactive").clock(clock).library(guard.RULES).done()
    with channel:
        guard.Guard(channel, lambda event: shown.append(event.id))
        logs = channel.suppliers.connect("logs", "Log")
        for event in events:
            clock.move_to(event.time)
            logs.push(event)
    return shown


@pytest.mark.parametrize("seed", range(8))
def test_correlation_filter_and_text_show_the_same_messages(
    guard: ModuleType, filters: ModuleType, seed: int
) -> None:
    events = _log(Random(seed), 300)
    expected = _by_the_text(events)
    assert any(each.data["severity"] == 3 and each.id in expected for each in events)

    assert [each.id for each in filters.shown(events)] == expected
    assert _shown_by_the_channel(guard, events) == expected


@pytest.mark.parametrize("program", ["guard", "filters"])
def test_program_shows_more_for_a_while(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / "failed-logins" / f"{program}.py"), run_name="__main__")

    assert capsys.readouterr().out.splitlines() == [
        "4 login failed: root",
        "4 login failed: admin",
        "4 login failed: root",
        "3 connection from 192.0.2.7",
        "3 connection from 192.0.2.8",
        "5 disk full",
    ]


# --- the lost VPN ------------------------------------------------------------------------------


def test_root_causes_are_found_live_and_by_the_correlation(root_cause: ModuleType) -> None:
    traps = root_cause.read_traps()

    live = [(lost.id, cause.id) for lost, cause in root_cause.live(traps)]
    outputs = list(root_cause.correlated(traps))

    assert live == [("6", "2"), ("13", "10")]
    causes = [str(each.extensions["causes"]).split(",") for each in outputs]
    assert [(lost, cause) for cause, lost in causes] == live
    assert [each.data["device"] for each in outputs] == ["edge-7/ge-0/0/3", "edge-4"]


def test_root_cause_is_found_in_a_file_of_events(root_cause: ModuleType, tmp_path: Path) -> None:
    traps = root_cause.read_traps()

    live = list(root_cause.live(traps, f"sqlite:{tmp_path / 'traps.db'}"))

    assert [(lost.id, cause.id) for lost, cause in live] == [("6", "2"), ("13", "10")]


def test_new_cause_is_known_once_the_ontology_is_read_again(tmp_path: Path) -> None:
    text = (EXAMPLES / "lost-vpn" / "faults.ttl").read_text()
    path = tmp_path / "faults.ttl"
    path.write_text(text)
    faults = Ontology.load(path)
    run = ensue.load(EXAMPLES / "lost-vpn" / "rules.cor", ontology=faults).start()

    def trap(number: int, fault: str) -> list[Event]:
        data = {"fault": fault, "device": f"d{number}"}
        return run.push(Event(str(number), "snmp", "Trap", number * 1_000_000, data))

    assert trap(1, "net:overheating") == []
    assert trap(2, "net:vpnDown") == []
    path.write_text(text + "\nnet:overheating net:causes net:ifDown .\n")
    faults.reload()

    assert trap(3, "net:fanFailure") == []
    assert [each.data["device"] for each in trap(4, "net:vpnDown")] == ["d3"]


def test_predicate_of_a_library_may_ask_both_a_history_and_an_ontology() -> None:
    faults = Ontology.load(EXAMPLES / "lost-vpn" / "faults.ttl")
    library = ensue.parse(
        """
        eventtype Trap { attribute string fault; };
        Trap correlation Explained (Trap lost where fault SAME_AS net:vpnDown
            AND start AFTER(10 s) (ONTPROP<net:causes>(fault) = net:mplsTunnelDown)) lost
        { case true: push lost; }
        """,
        ontology=faults,
    )
    for engine in ("reference", "step"):
        with History.open("memory:") as history:
            run = library.start(engine=engine, history=history)
            found = [
                run.push(Event(str(second), "s", "Trap", second * 1_000_000, {"fault": fault}))
                for second, fault in [(1, "net:fanFailure"), (2, "net:vpnDown"), (3, "net:ifDown")]
            ]
            assert found == [[], [], []]
            assert len(run.push(Event("9", "s", "Trap", 13_000_000, {"fault": "net:vpnDown"}))) == 1
            assert run.push(Event("10", "s", "Trap", 13_500_000, {"fault": "net:vpnDown"})) == []
