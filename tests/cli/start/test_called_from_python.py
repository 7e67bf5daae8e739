"""`ensue.cli.main([...])` in a notebook or a program, whose streams may take only text."""

from __future__ import annotations

import io
import threading
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

import ensue.cli

RULES = """
eventtype A { attribute string n; };
A correlation Copy (A a) a { case true: push a; }
"""
EVENT = (
    '{"specversion":"1.0","id":"1","source":"s","type":"A","time":"2026-01-01T00:00:00Z",'
    '"data":{"n":"ünï"}}'
)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "rules.cor").write_text(RULES)
    (tmp_path / "events.jsonl").write_text(EVENT + "\n", "utf-8")
    return tmp_path


def called(*arguments: object) -> tuple[object, str, str]:
    """The exit code, and what was written to streams that take text alone."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
        ensue.cli.main([str(each) for each in arguments])
    return ended.value.code, out.getvalue(), err.getvalue()


@pytest.mark.parametrize("engine", ["auto", "step", "batch"])
def test_outputs_of_a_run_are_text_where_a_stream_takes_text(files: Path, engine: str) -> None:
    code, out, err = called(
        "run", files / "rules.cor", "-e", files / "events.jsonl", "--engine", engine
    )

    assert code == 0, err
    assert '"data":{"n":"ünï"}' in out


def test_a_run_in_another_thread_than_the_main_one(files: Path) -> None:
    found = []
    thread = threading.Thread(
        target=lambda: found.append(
            called("run", files / "rules.cor", "-e", files / "events.jsonl")
        )
    )
    thread.start()
    thread.join()

    assert found[0][0] == 0


def test_histories_are_found_as_text(files: Path) -> None:
    url = f"sqlite:{files / 'kept.db'}"

    assert called("history", "add", url, "--events", files / "events.jsonl")[0] == 0
    assert '"ünï"' in called("history", "find", url)[1]


def test_an_input_that_is_not_there_is_told(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(EVENT))
    code, _, err = called("run", files / "rules.cor", "-e", "-")

    assert code == 2
    assert "there is no standard input to read from here: give a file" in err
