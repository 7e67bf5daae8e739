"""Ensue runs where executors are other processes, and through Spark Connect."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import ensue
from ensue.events.event import Event
from ensue.spark import package

from .elsewhere import BATCH_RULES, EXECUTORS, SESSIONS, Elsewhere


def wanted() -> list[str]:
    """The ids of what the definitions say."""
    start = 1_704_067_200_000_000
    events = [Event(str(n), "s", "A", start + n * 1_000_000, {"K": n % 4}, {}) for n in range(40)]
    made = ensue.parse(BATCH_RULES).run(events, engine="reference")
    return sorted(output.id for output in made)


@pytest.mark.parametrize("session", SESSIONS)
def test_executors_and_servers_give_what_the_reference_does(
    elsewhere: Callable[[str], Elsewhere], session: str
) -> None:
    """A session elsewhere is seconds in the making, and its executors die and are started again."""
    told = elsewhere(session).batch

    assert (told["plain"], told["ordered"]) == (wanted(), wanted())
    assert sum("Pairs" in each for each in wanted()) == 20


def test_executors_that_die_on_either_side_of_the_shuffle_change_nothing(
    elsewhere: Callable[[str], Elsewhere],
) -> None:
    seen = elsewhere(EXECUTORS)

    assert seen.has_seen_die("batch-before-1", "batch-after-1")
    assert seen.batch["after deaths"] == wanted()


def test_the_archive_is_a_package_that_runs(tmp_path: Path) -> None:
    """What was compiled is not in the archive, so that loops are compiled once more."""
    archive = package(tmp_path)
    program = (
        f"import sys; sys.path.insert(0, {archive!r})\n"
        "import ensue, pyarrow as pa\n"
        "from ensue.engine.batch import BatchEngine\n"
        "library = ensue.parse('eventtype A { }; A correlation C (A a) a { case true: push a; }')\n"
        "rows = pa.table({'id': ['1'], 'type': ['A'], 'time': ['2024-01-01T00:00:00Z']})\n"
        "made = BatchEngine(library.checked).push_batch(rows)\n"
        "print(ensue.__file__, made.num_rows)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )

    assert done.stdout.split() == [f"{archive}/ensue/__init__.py", "1"], done.stderr
