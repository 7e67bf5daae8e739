"""How the tests call the command: in this process for most, as a process where that matters."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ensue.cli import app

RULES = """
eventtype Login  { attribute string user; };
eventtype Failed : Login {};
eventtype Done   : Login {};
eventtype Alarm  { attribute string user; };
eventtype Quiet  {};

Alarm correlation Guessed (Failed failed, Done done)
    tried:(failed ; done)
    within 1 min
    by user
{
    case tried: push new Alarm { user = done.user };
}

Quiet ecl NothingMore (Alarm alarm from Guessed)
{
    repeat { notify { sequential { alarm, timeout(1 h) } } }
}
"""


class Answer:
    """What a command gave back."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def outputs(self) -> list[dict[str, Any]]:
        """The standard output as JSON lines; fails if there is anything else in it."""
        return [json.loads(line) for line in self.out.splitlines()]


Ensue = Callable[..., Answer]


@pytest.fixture
def ensue() -> Ensue:
    def call(*arguments: object, stdin: str | bytes | None = None) -> Answer:
        texts = [str(argument) for argument in arguments]
        result = CliRunner().invoke(app, texts, input=stdin, prog_name="ensue")
        return Answer(result.exit_code, result.stdout, result.stderr)

    return call


@pytest.fixture
def ensue_process() -> Ensue:
    def call(*arguments: object, stdin: str = "", env: dict[str, str] | None = None) -> Answer:
        done = subprocess.run(
            [sys.executable, "-m", "ensue", *(str(argument) for argument in arguments)],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env=env,
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    return call


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "rules.cor"
    path.write_text(RULES)
    return path


def event(number: int, type_: str, second: float, user: str | None = "ann", **more: Any) -> str:
    """A line of JSON."""
    members = {
        "id": str(number),
        "source": "gate",
        "type": type_,
        "time": f"2024-05-06T09:{int(second) // 60:02}:{second % 60:09.6f}Z",
        "data": {"user": user},
    }
    return json.dumps(members | more)


@pytest.fixture
def events(tmp_path: Path) -> Path:
    """Two alarms for ann and one for bob, all in order."""
    path = tmp_path / "events.jsonl"
    lines = [
        event(1, "Failed", 0),
        event(2, "Failed", 1, "bob"),
        event(3, "Done", 2),
        event(4, "Done", 3, "bob"),
        event(5, "Failed", 4),
        event(6, "Done", 5),
    ]
    path.write_text("\n".join(lines) + "\n")
    return path
