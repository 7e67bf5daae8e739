"""A command of a page, called in this process, is the command that a shell would start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from .running import run_command

RULES = """
eventtype A {};
A correlation Twice (A a) twice:(a ; a) { case twice: push a; }
"""
EVENTS = """\
{"id": "1", "source": "s", "type": "A", "time": "2024-05-06T09:00:00Z"}
{"id": "2", "source": "s", "type": "A"}
"""


@pytest.fixture
def page(folder: Path) -> Path:
    (folder / "rules.cor").write_text(RULES)
    (folder / "events.jsonl").write_text(EVENTS)
    return folder


@pytest.mark.parametrize(
    "command",
    [
        "ensue check rules.cor",
        "ensue run rules.cor --events events.jsonl",
        "ensue explain rules.cor 'No such rule'",
        "ensue rnu",
        "ensue --help",
    ],
)
def test_a_command_writes_what_it_writes_as_a_process(page: Path, command: str) -> None:
    binaries = str(Path(sys.executable).parent)
    started = subprocess.run(
        ["/bin/sh", "-c", command],
        env={**os.environ, "PATH": f"{binaries}:{os.environ['PATH']}", "COLUMNS": "80"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )

    assert run_command(command, page) == (started.returncode, started.stdout.decode())


@pytest.mark.parametrize(
    ("command", "written"),
    [
        ("cat rules.cor | wc -l", "3\n"),
        ("ensue check rules.cor > found; wc -l < found", "1\n"),
        ("cat *.cor", RULES),
    ],
)
def test_what_needs_a_shell_is_given_to_one(page: Path, command: str, written: str) -> None:
    assert run_command(command, page) == (0, written)


def test_what_a_command_changes_of_the_process_is_put_back(page: Path) -> None:
    def state() -> list[object]:
        signals = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
        return [Path.cwd(), dict(os.environ), sys.stdin, sys.stdout, sys.stderr, *signals]

    before = state()
    run_command("ensue run rules.cor --events events.jsonl --explain", page.parent)

    assert state() == before
