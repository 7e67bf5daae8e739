"""Walks that a reader takes: how few files of the engine a warm event, and a warm batch, pass.

`docs/architecture.md` tells both walks; this holds them to it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import ensue
import ensue.engine
from ensue.bench.workload import (
    LOGIN_RULES,
    MANY_RULES,
    UserSteps,
    leak,
    logins,
    readings,
    window_of,
)
from ensue.engine.batch import BatchEngine
from ensue.engine.run import Run

FILES_OF_A_BATCH = 15
FILES_OF_AN_EVENT = 8
_ENGINE = str(Path(ensue.engine.__file__).parent)


def files_run(work: Callable[[], Any]) -> set[str]:
    """The files of the engine in which a function is called."""
    found: set[str] = set()

    def note(frame: FrameType, kind: str, what: object) -> None:
        if kind == "call" and frame.f_code.co_filename.startswith(_ENGINE):
            found.add(frame.f_code.co_filename)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return found


@pytest.mark.parametrize("within", ["", window_of(50)])
def test_a_warm_batch_passes_few_files(within: str) -> None:
    table = UserSteps(8000, 50).table()
    engine = BatchEngine(ensue.parse(leak(within)).checked)
    engine.push_batch(table.slice(0, 4000))
    engine.push_batch(table.slice(4000, 2000))

    found = files_run(lambda: engine.push_batch(table.slice(6000)))

    assert len(found) <= FILES_OF_A_BATCH, sorted(found)


@pytest.mark.parametrize("rule", sorted(LOGIN_RULES))
def test_a_warm_event_of_one_rule_passes_few_files(rule: str) -> None:
    run = Run(ensue.parse(LOGIN_RULES[rule]).checked, "step")
    *first, last = logins(3000, 20)
    for event in first:
        run.push(event)

    found = files_run(lambda: run.push(last))

    assert len(found) <= FILES_OF_AN_EVENT, sorted(found)


def test_a_warm_event_of_many_rules_passes_few_files() -> None:
    run = Run(ensue.parse(MANY_RULES["kinds"](40)).checked, "step")
    *first, last = readings(4000, 5)
    for event in first:
        run.push(event)

    found = files_run(lambda: run.push(last))

    assert len(found) <= FILES_OF_AN_EVENT, sorted(found)
