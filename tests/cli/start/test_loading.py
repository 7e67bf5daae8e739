"""The start and the end of the process: what is loaded for which command, and what is not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ensue.cli.start.catalogue import ENTRIES, LoadedCommands
from tests.cli.conftest import Ensue

WIDEST_LINE = 67
"""Beside the longest name, in a terminal of 80 columns."""


@pytest.mark.parametrize("name", ENTRIES)
def test_a_command_stands_where_its_entry_says_and_has_its_line(name: str) -> None:
    command = LoadedCommands()[name]

    assert command.name == name
    assert command.get_short_help_str(WIDEST_LINE) == ENTRIES[name].line


def test_the_help_loads_no_command(ensue: Ensue) -> None:
    loaded = modules_after("from ensue.cli import main", "main(['--help'])")

    assert [each for each in loaded if each.startswith("ensue.cli.commands.")] == []


def test_a_small_run_loads_neither_pyarrow_nor_numba_nor_pydantic(
    rules: Path, events: Path
) -> None:
    loaded = modules_after(
        "from ensue.cli import main", f"main(['run', {str(rules)!r}, '-e', {str(events)!r}])"
    )

    assert {"numba", "pandas", "pyarrow", "pydantic", "rich"} & loaded == set()


def test_a_number_is_still_checked(ensue: Ensue) -> None:
    answer = ensue("lsp", "--port", "many")

    assert answer.code == 2
    assert "--port" in answer.err


def test_the_end_waits_for_threads_and_for_what_was_registered_for_it() -> None:
    code = """
import atexit, sys, threading, time
atexit.register(lambda: print("the end"))
threading.Thread(target=lambda: (time.sleep(1), print("a thread"))).start()
sys.argv = ["ensue", "--version"]
from ensue.__main__ import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.returncode == 0
    told = done.stdout.splitlines()
    assert "a thread" in told
    assert told[-1] == "the end"


def test_the_end_has_the_exit_code_of_the_command(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.cor"
    wrong.write_text("eventtype")

    done = subprocess.run(
        [sys.executable, "-m", "ensue", "check", str(wrong)], capture_output=True, check=False
    )

    assert done.returncode == 1


def modules_after(*lines: str) -> set[str]:
    """The modules that a process has loaded when these lines are done."""
    code = "\n".join(
        ["import sys", "try:", *(f"    {line}" for line in lines), "except SystemExit: pass",
         "print('\\n' + ' '.join(sys.modules))"]
    )  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())
