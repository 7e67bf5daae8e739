"""Which correlations run in compiled loops, which do not and why; and that loading is quick."""

from __future__ import annotations

import subprocess
import sys

import pytest

import ensue
from ensue.engine.batch import BatchEngine
from ensue.events.event import Event

TYPES = "eventtype T { attribute short k; };\neventtype Told {};\n"
PATHS = {
    "table": "T correlation X (T a, T b) a ; b by k { case true: push b; }",
    "window": "T correlation X (T a, T b) a + b within 5 s { case true: push b; }",
    "table, ECL": "Told ecl X (T a, T b) by k { repeat { notify { sequential { a, b } } } }",
    "table, aborting": "T correlation X (T a, T b) a ; l:(b) { case l: abort(l); push b; }",
    "timed, timer port": "T correlation X (T a, every 1 s t) a ; t { case true: push a; }",
    "timed, timeout": "T ecl X (T a) { notify { sequential { a, timeout(1 s) } } }",
    "events, left of a": ("T correlation X (T a, T b) l:(a) ; m:(b) { case m: abort(l); push b; }"),
    "related": "T correlation X (T a, T b) a ; b keep all bind latest by k { case true: push b; }",
    "related, counting": "T correlation X (T a) a having sum(a.k) > 2 { case true: push a; }",
    "events, by `|`": "T correlation X (T a, T b) a | b keep all { case true: push b; }",
    "related, waiting": "T correlation X (T a) a ; timeout(1 s) { case true: push a; }",
    "events, by `timeout`": "T correlation X (T a) a ; timeout(1 s) ; a { case true: push a; }",
    "events, several branches": "T correlation X (T a, T b) a || b keep all { case true: push a; }",
    "events, no declared number": "T correlation X (T a) a having max(a.time) > a.time { }",
    "window, aborting": (
        "T correlation X (T a, T b) a | l:(b) within 1 s { case l: abort(l); push b; }"
    ),
}


@pytest.mark.parametrize("path", PATHS)
def test_the_engine_says_how_each_correlation_runs(path: str) -> None:
    """For those that run event by event, with the reason."""
    taken = BatchEngine(ensue.parse(TYPES + PATHS[path]).checked).paths["X"]
    name, _, reason = path.partition(", ")

    assert taken.name == name
    if name == "events":
        assert reason in taken.reason


@pytest.mark.usefixtures("everything_small")
def test_a_rule_past_the_budget_of_its_table_runs_by_events() -> None:
    """From the event on for which it is too large, and after a snapshot as well."""
    library = ensue.parse(TYPES + PATHS["table"])
    engine = BatchEngine(library.checked)
    engine.read_all([Event(str(n), "s", "T", n, {"k": 1}) for n in range(5)])
    resumed = BatchEngine(library.checked)
    resumed.restore(engine.snapshot())

    assert engine.paths["X"].name == resumed.paths["X"].name == "events"
    assert "its table has more than 2 states" in engine.paths["X"].reason


FIRST_USE = """
import ensue
from ensue.engine.batch import BatchEngine
from ensue.engine.batch.input import keys
from ensue.engine.core import cell_drivers
from ensue.events.event import Event
for within in ("", "within 5 s"):
    library = ensue.parse(
        "eventtype T { attribute string k; };"
        "T correlation X (T a, T b) a ; b " + within + " by k { case true: push b; }"
    )
    engine = BatchEngine(library.checked)
    engine.read_all([Event("1", "s", "T", 1, {"k": "x"}), Event("2", "s", "T", 2, {"k": "x"})])
compiled = [keys.number_texts, cell_drivers.walk]
print(sum(len(each.stats.cache_misses) for each in compiled))
"""


def test_a_new_process_loads_compiled_loops_and_compiles_none() -> None:
    """The second process finds on disk what the first has compiled."""
    runs = [
        subprocess.run([sys.executable, "-c", FIRST_USE], capture_output=True, text=True)
        for _ in range(2)
    ]

    assert runs[1].returncode == 0, runs[1].stderr
    assert runs[1].stdout.strip() == "0"
