"""The command as a process: help, versions, pipes, terminals, signals, and our own mistakes."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ensue.cli.commands import run as run_command
from ensue.version import __version__
from tests.cli.conftest import Ensue, event

COMMAND = [sys.executable, "-m", "ensue"]


def test_the_version(ensue_process: Ensue) -> None:
    assert ensue_process("--version").out == f"ensue {__version__}\n"


def test_help_lists_the_commands(ensue: Ensue) -> None:
    answer = ensue("--help")

    assert answer.code == 0
    for command in ("check", "run", "explain", "test", "demo"):
        assert f"\n  {command} " in answer.out


@pytest.mark.parametrize("command", ["check", "run", "explain", "test"])
def test_the_help_of_a_command_has_an_example_and_the_exit_codes(
    ensue: Ensue, command: str
) -> None:
    text = ensue(command, "--help").out

    assert f"ensue {command} " in text
    assert "Example:" in text
    assert "Exit codes:\n    0  " in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_command_that_is_not_there_offers_the_close_match(ensue: Ensue) -> None:
    answer = ensue("rnu")

    assert answer.code == 2
    assert "run" in answer.err


def test_help_needs_neither_rich_nor_pyarrow() -> None:
    code = (
        "import sys\n"
        "from ensue.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print([name for name in ('rich', 'pyarrow') if name in sys.modules], file=sys.stderr)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stderr == "[]\n"


def test_whoever_reads_only_the_beginning_is_left_in_peace(rules: Path, tmp_path: Path) -> None:
    path = tmp_path / "many.jsonl"
    lines = [event(n, "Done" if n % 2 else "Failed", n * 0.01) for n in range(20_000)]
    path.write_text("\n".join(lines))

    with subprocess.Popen(
        [*COMMAND, "run", str(rules), "--events", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b"{")
        process.stdout.close()
        complaints = process.stderr.read()

    assert complaints == b""
    assert process.returncode == 0


@pytest.mark.parametrize("command", [[], ["run"], ["bench"]])
def test_whoever_reads_no_help_is_left_in_peace(command: list[str]) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "ensue", *command, "--help"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        told = process.stderr.read()

    assert (process.returncode, told) == (0, b"")


def test_a_stream_is_answered_while_it_goes_on(rules: Path) -> None:
    with subprocess.Popen(
        [*COMMAND, "run", str(rules), "--events", "-", "--lateness", "0 s"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{event(1, 'Failed', 0)}\n{event(2, 'Done', 1)}\n".encode())
        process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], 30)
        assert ready
        assert b'"trigger":"2"' in process.stdout.readline()
        process.stdin.close()


def test_stopping_it_by_hand_gives_130_and_no_traceback(rules: Path) -> None:
    with subprocess.Popen(
        [*COMMAND, "run", str(rules), "--events", "-", "--lateness", "0 s"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(f"{event(1, 'Failed', 0)}\n{event(2, 'Done', 1)}\n".encode())
        process.stdin.flush()
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        complaints = process.stderr.read()
        process.wait(30)

    assert process.returncode == 130
    assert b"Traceback" not in complaints


def on_a_terminal(arguments: list[str], env: dict[str, str]) -> str:
    """What a command prints if both of its streams are a terminal."""
    controller, terminal = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, *arguments], stdin=terminal, stdout=terminal, stderr=terminal, env=env
    ) as process:
        os.close(terminal)
        printed = b""
        end = time.monotonic() + 300
        while time.monotonic() < end:
            try:
                part = os.read(controller, 65_536)
            except OSError:
                break
            if not part:
                break
            printed += part
        process.wait(30)
    os.close(controller)
    return printed.decode()


def test_there_is_colour_on_a_terminal_unless_it_is_unwanted(tmp_path: Path) -> None:
    path = tmp_path / "bad.cor"
    path.write_text("eventtype A : B {};")
    plain = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    plain["TERM"] = "xterm-256color"

    assert "\x1b[1;31merror:" in on_a_terminal(["check", str(path)], plain)
    assert "\x1b[1;31m" not in on_a_terminal(["check", str(path)], {**plain, "NO_COLOR": "1"})


def test_progress_is_shown_on_a_terminal_and_never_in_a_pipe(
    ensue_process: Ensue, rules: Path, events: Path, tmp_path: Path
) -> None:
    call = ["run", str(rules), "--events", str(events), "--out", str(tmp_path / "out.jsonl")]
    terminal = {**os.environ, "TERM": "xterm-256color"}

    assert "running" in on_a_terminal(call, terminal)
    assert "running" not in ensue_process(*call).err


def test_there_is_no_colour_in_a_pipe(ensue_process: Ensue, tmp_path: Path) -> None:
    path = tmp_path / "bad.cor"
    path.write_text("eventtype A : B {};")

    answer = ensue_process("check", path)

    assert answer.code == 1
    assert "\x1b" not in answer.out + answer.err


def test_the_streams_are_kept_apart(ensue_process: Ensue, rules: Path, events: Path) -> None:
    answer = ensue_process("run", rules, "--events", "-", stdin=events.read_text() + "{\n")

    assert len(answer.outputs) == 3
    assert answer.err.splitlines()[0].startswith("stdin:7: ")


def test_a_stream_that_shows_only_ascii_gets_an_outline_in_ascii(
    ensue_process: Ensue, rules: Path
) -> None:
    answer = ensue_process(
        "explain", rules, "Guessed", env={**os.environ, "PYTHONIOENCODING": "ascii"}
    )

    assert answer.code == 0
    assert "    |- failed\n    `- done\n" in answer.out


class TestOurOwnMistakes:
    @pytest.fixture(autouse=True)
    def mistake(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: object, **__: object) -> None:
            raise ZeroDivisionError("seven by nothing")

        monkeypatch.setattr(run_command, "read_events", fail)

    def test_they_are_admitted_without_a_traceback(
        self, ensue: Ensue, rules: Path, events: Path
    ) -> None:
        answer = ensue("run", rules, "-e", events)

        assert answer.code == 2
        assert "a bug in ensue (ZeroDivisionError: seven by nothing)" in answer.err
        assert "--debug" in answer.err
        assert "Traceback" not in answer.err

    def test_debug_lets_them_through(self, rules: Path, events: Path) -> None:
        from typer.testing import CliRunner

        from ensue.cli import app

        result = CliRunner().invoke(app, ["--debug", "run", str(rules), "-e", str(events)])

        assert isinstance(result.exception, ZeroDivisionError)


def test_texts_fit_a_terminal_that_is_narrower_than_80_columns(rules: Path) -> None:
    narrow = {**os.environ, "TERM": "dumb", "NO_COLOR": "1", "COLUMNS": "60"}
    printed = on_a_terminal(["explain", str(rules), "Guessed"], narrow)
    story = on_a_terminal(["demo"], narrow)

    lines = (printed + story).replace("\r", "").split("\n")

    assert [line for line in lines if len(line) > 60] == []
    assert "a memory of its own" in " ".join(printed.split())
    assert "ensue explain logins.cor GuessedPassword" in story


def test_a_wide_terminal_does_not_make_lines_longer_than_80_columns(rules: Path) -> None:
    wide = {**os.environ, "TERM": "dumb", "NO_COLOR": "1", "COLUMNS": "200"}

    printed = on_a_terminal(["explain", str(rules), "Guessed"], wide).replace("\r", "")

    assert max(map(len, printed.split("\n"))) <= 80


def test_reasons_are_folded_on_a_terminal(rules: Path, events: Path, tmp_path: Path) -> None:
    narrow = {**os.environ, "TERM": "dumb", "NO_COLOR": "1", "COLUMNS": "60"}
    call = ["run", str(rules), "--events", str(events), "--explain", "--out", str(tmp_path / "o")]

    printed = on_a_terminal(call, narrow).replace("\r", "").split("\n")

    told = [line for line in printed if "completed by" in line]
    assert len(told) == 3
    assert max(map(len, told)) <= 60


def test_a_standard_input_that_is_closed_is_no_input_without_events(tmp_path: Path) -> None:
    (tmp_path / "rules.cor").write_text(
        "eventtype A {}; A correlation R (A a) a { case true: push a; }"
    )
    for command in ("run rules.cor --events -", "fmt -", "publish -"):
        done = subprocess.run(
            f"{sys.executable} -m ensue {command} <&-",
            shell=True,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2, done
        assert "the standard input is closed: pipe something into it" in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a device that is full")
@pytest.mark.parametrize("asked", ["--help", "--version", "demo"])
def test_a_full_disk_behind_the_standard_output_is_told(asked: str) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*COMMAND, asked], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )

    assert done.returncode == 2
    assert done.stderr.startswith("ensue: no space left on device")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="names are bytes on Linux only")
@pytest.mark.parametrize("ending", [b".jsonl", b".parquet"])
def test_a_name_that_is_no_text_can_be_written_to(
    rules: Path, tmp_path: Path, ending: bytes
) -> None:
    events, out = tmp_path / "events.jsonl", os.fsencode(tmp_path) + b"/\xff" + ending
    events.write_text(event(1, "Failed", 1) + "\n" + event(2, "Done", 2) + "\n")
    subprocess.run([*COMMAND, "run", rules, "-e", events, "--out", out], check=True)

    assert Path(os.fsdecode(out)).stat().st_size > 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("rules", "put", "heat", "FILE"),
        ("rules", "try", "heat", "FILE"),
        ("request", "publish", "--via", "a", "--url", "mqtt://127.0.0.1:1", "--event", "FILE"),
    ],
)
@pytest.mark.parametrize("content", [b"\xff", None])
def test_a_file_that_is_no_text_or_has_no_end_is_refused(
    ensue: Ensue, tmp_path: Path, arguments: tuple[str, ...], content: bytes | None
) -> None:
    path = tmp_path / "given"
    if content is None:
        path.symlink_to("/dev/zero")
    else:
        path.write_bytes(content)
    answer = ensue(*(path if each == "FILE" else each for each in arguments))

    assert answer.code == 2
    assert ("the file is not UTF-8" if content else "has more than") in answer.err


def test_too_little_memory_is_told(
    ensue: Ensue, rules: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(run_command, "load_library", fail)
    answer = ensue("run", rules, "--events", "-")

    assert answer.code == 2
    assert answer.err.startswith("ensue: there is not enough memory")
