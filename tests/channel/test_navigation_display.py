"""The navigation display runs live on a channel, and shows what its rules say it must."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from ensue.channel import VirtualClock, build
from ensue.events.event import Event
from tests.channel.making import empty

EXAMPLE = Path(__file__).parents[2] / "examples" / "navigation-display"


@pytest.fixture(scope="module")
def example() -> ModuleType:
    found = importlib.util.spec_from_file_location("flight", EXAMPLE / "flight.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_every_component_of_the_papers_table_is_there(example: ModuleType) -> None:
    channel = (
        build("filtering")
        .library(example.RULES)
        .schedule(example.SCHEDULE)
        .clock(VirtualClock())
        .done()
    )
    example.Flight(channel)

    assert {supplier.name: supplier.publishes for supplier in channel.suppliers} == {
        "global positioning": ("Gps",),
        "navigator": ("Nav",),
        "pilot control": ("Pilot",),
        "airframe": ("Airframe",),
        "tactical steering": ("Tactical",),
        "navigational steering": ("Navigational",),
        "navigation display": ("Display",),
    }


PAPERS_TABLE = {
    "AirframeUpdate": "repeat { notify { gps } }",
    "TacticalSteering": "modes { in (tm) do { repeat { notify { af } } } in (nm) do { false } }",
    "NavigationalSteering": """modes {
        in (tm) do { false }
        in (nm) do { repeat { notify { select { nav, af } } } }
    }""",
    "NavigationDisplay": """modes {
        in (tm) do { repeat { notify { accumulate { af, tacst } } } }
        in (nm) do { repeat { notify { accumulate { af, navst } } } }
    }""",
}


@pytest.mark.parametrize("name", PAPERS_TABLE)
def test_the_rules_are_those_of_the_papers_table(name: str) -> None:
    text = (EXAMPLE / "rules.cor").read_text("utf-8")
    definition = re.search(rf"ecl {name} \(.*?\)\n\{{\n(.*?)\n\}}", text, re.DOTALL)

    assert definition is not None
    assert definition[1].split() == PAPERS_TABLE[name].split()


def test_a_flight_shows_what_the_whole_library_says_of_the_same_events(example: ModuleType) -> None:
    clock, recorded = VirtualClock(), empty()
    channel = (
        build("filtering").library(example.RULES).schedule(example.SCHEDULE).clock(clock).done()
    )
    flight = example.Flight(channel)
    outside = {"Gps", "Nav", "Pilot"}
    channel.consumers.connect(
        "recorder", lambda e: recorded.append(e) if e.type in outside else None, priority=99
    )
    for mode in ("t", "n", "t", "n"):
        flight.choose(mode)
        clock.advance("1 s")

    expected = [output.time for output in example.RULES.run(recorded) if output.type == "Display"]
    assert len(recorded) == 80 + 20 + 4
    assert [time for time, _ in flight.shown] == expected
    assert {mode for _, mode in flight.shown} == {"t", "n"}
    assert channel.figures().dropped == {}


def test_only_what_contributes_to_the_chosen_mode_is_active(example: ModuleType) -> None:
    clock, active = VirtualClock(), empty()
    channel = (
        build("filtering").library(example.RULES).schedule(example.SCHEDULE).clock(clock).done()
    )
    flight = example.Flight(channel)

    def note(event: Event) -> None:
        if event.type in ("Tactical", "Navigational"):
            active.append(event.type)

    channel.consumers.connect("watching", note)
    flight.choose("t")
    clock.advance("1 s")
    assert set(active) == {"Tactical"}
    active.clear()
    flight.choose("n")
    clock.advance("1 s")
    assert set(active) == {"Navigational"}


def test_the_script_flies() -> None:
    done = subprocess.run(
        [sys.executable, "flight.py"],
        cwd=EXAMPLE,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )

    lines = done.stdout.splitlines()
    assert [line.split(":")[0].strip() for line in lines] == [
        "tactical",
        "navigational",
        "tactical",
        "took longer than planned",
    ]
    assert done.stderr == ""
