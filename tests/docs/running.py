"""Runs the Python and the commands of a page, and compares what they print with the page.

In come the blocks of one page; out goes an `AssertionError` that names the first block that prints
something else. Python runs in this process, in one namespace, and so does a command that is only
`ensue` and its arguments, since a process of its own takes half a second to start. A command that
needs a shell (a pipe, `&`, a redirection, a pattern) is given to one.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from ensue.cli import main

from .pages import Block, Page

PRINTED = "#> "
COMMANDS = ("ensue ", "cat ", "echo $?")
SHELL = "();<>|&*?$`~"
"""What only a shell understands, where it is not in quotes."""
COLUMNS = "80"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)


def write_files(page: Page, folder: Path) -> None:
    for block in page.files:
        assert block.title is not None
        path = folder / block.title
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, "utf-8")


# --- Python ---------------------------------------------------------------------------------------


def python_here(blocks: Sequence[Block]) -> Iterator[tuple[Block, str]]:
    """Each block with what it prints."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks:
        # Blank lines keep the line numbers of a traceback those of the page.
        code = compile("\n" * block.line + block.text, block.page, "exec")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)
        yield block, printed.getvalue()


def python_agrees(printed: Iterable[tuple[Block, str]]) -> None:
    for block, text in printed:
        said = [line for line in block.text.splitlines() if line.startswith(PRINTED.rstrip())]
        assert text == "".join(
            f"{line.removeprefix(PRINTED.rstrip()).removeprefix(' ')}\n" for line in said
        ), str(block)


# --- commands -------------------------------------------------------------------------------------


def commands_agree(blocks: Sequence[Block], folder: Path) -> None:
    code = 0
    for block in blocks:
        for command, expected in _commands(block):
            if command == "echo $?":
                written = f"{code}\n"
            else:
                code, written = run_command(command, folder)
            assert _agrees(written, expected), f"{block}: $ {command}\n{written}"


def _commands(block: Block) -> Iterator[tuple[str, str]]:
    parts = re.split(r"^\$ (.+)\n", block.text, flags=re.MULTILINE)
    assert parts[0] == "", f"{block} starts with no command"
    for command, expected in zip(parts[1::2], parts[2::2], strict=True):
        assert command.startswith(COMMANDS), f"{block}: `{command}` is none of {COMMANDS}"
        yield command, expected


def run_command(command: str, folder: Path) -> tuple[int, str]:
    """The exit code, and what a terminal would show: both streams in the order of writing."""
    words = _plain_words(command)
    if words is not None and words[0] == "ensue":
        return _run_here(words[1:], folder)
    return _run_in_a_shell(command, folder)


def _plain_words(command: str) -> list[str] | None:
    """The words of a command, or None if it needs a shell."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=SHELL)
    lexer.whitespace_split = True
    words = list(lexer)
    return None if any(set(word) <= set(SHELL) for word in words) else words


def _run_here(arguments: Sequence[str], folder: Path) -> tuple[int, str]:
    """Call the command in this process. What it changes of the process is put back."""
    written = io.BytesIO()
    out, err = (_text_over(written) for _ in range(2))
    handlers = {each: signal.getsignal(each) for each in SIGNALS}
    with (
        contextlib.chdir(folder),
        mock.patch.dict(os.environ, {"COLUMNS": COLUMNS}),
        Path(os.devnull).open() as nothing,
        mock.patch.object(sys, "stdin", nothing),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main(arguments)
            raise AssertionError("the command has not ended with an exit code")
        except SystemExit as end:
            code = end.code or 0
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
    assert isinstance(code, int), code
    out.flush()
    err.flush()
    return code, written.getvalue().decode()


def _text_over(written: io.BytesIO) -> io.TextIOWrapper:
    return io.TextIOWrapper(written, "utf-8", newline="\n", write_through=True)


def _run_in_a_shell(command: str, folder: Path) -> tuple[int, str]:
    binaries = str(Path(sys.executable).parent)
    path = f"{binaries}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path, "COLUMNS": COLUMNS},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout.decode()


def _agrees(written: str, expected: str) -> bool:
    """A line `...` stands for any number of lines. Blank lines at the end do not count."""
    pieces = re.split(r"^\.\.\.\n", expected.rstrip("\n") + "\n", flags=re.MULTILINE)
    pattern = r"(?:.*\n)*?".join(re.escape(piece) for piece in pieces)
    return re.fullmatch(pattern, written.rstrip("\n") + "\n") is not None
