"""Every fenced block of the documentation is run. The conventions, which CONTRIBUTING.md shows:

- A title on a fence (`title="rules.cor"`) makes the block a file in the page's own folder, where
  the commands and the Python of the page find it.
- `cor` blocks check without errors and without warnings. One that declares no event types goes on
  from the `cor` blocks before it under the same heading.
- `toml` and `cor-case` blocks are golden cases; `cor-case` has the colours of the library in them.
  They pass in every engine, and warn only where they say so.
- `python` blocks of a page run in order, in one namespace. What they print stands in them, behind
  `#> `.
- `console` blocks hold commands behind `$ ` and exactly what they write; `...` on a line of its
  own stands for any number of lines.
- `jsonl` and `csv` blocks have a title and are used by a command or by Python of their page.
- `text`, `mermaid` and `ebnf` blocks are not run, nor are rules of other systems (`java`, `sql`,
  `yaml`); `sh` only tells how to install and build.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import ensue
from ensue.casefile import read_cases, render, run_case
from ensue.engine.choosing import ENGINES
from tests.servers.programs import skip_as_missing

from .pages import Block, Page, read_pages

PAGES = read_pages()
SHOWN_ONLY = {"text", "mermaid", "ebnf", "java", "sql", "yaml"}
DATA_FILES = {"jsonl", "csv"}
CASES = ("toml", "cor-case")
RUN = {"cor", *CASES, "python", "console"}
PAGES_WITH_SHELL = {"README.md", "CONTRIBUTING.md"}
COMMANDS = ("ensue ", "cat ", "echo $?")
PRINTED = "#> "
END_OF_BLOCK = "--- end of a block ---"


def blocks_of(*languages: str) -> list[Any]:
    return [
        pytest.param(page, block, id=str(block)) for page in PAGES for block in page.of(*languages)
    ]


def pages_with(*languages: str) -> list[Any]:
    return [pytest.param(page, id=page.name) for page in PAGES if page.of(*languages)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_files(page: Page, folder: Path) -> None:
    for block in page.files:
        assert block.title is not None
        path = folder / block.title
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, "utf-8")


@pytest.mark.parametrize("page", [pytest.param(page, id=page.name) for page in PAGES])
def test_every_block_has_a_language_that_says_how_it_is_run(page: Page) -> None:
    shell = {"sh"} if page.name in PAGES_WITH_SHELL else set()
    allowed = RUN | DATA_FILES | SHOWN_ONLY | shell

    assert [str(block) for block in page.blocks if block.language not in allowed] == []


@pytest.mark.parametrize("page", [pytest.param(page, id=page.name) for page in PAGES if page.files])
def test_files_that_a_page_shows_are_used_by_it_under_names_of_their_own(page: Page) -> None:
    titles = [str(block.title) for block in page.files]
    users = "".join(block.text for block in page.of("python", "console", *CASES))

    assert sorted(set(titles)) == sorted(titles)
    assert [title for title in titles if title not in users] == []


@pytest.mark.parametrize(("page", "block"), blocks_of(*DATA_FILES))
def test_blocks_of_events_are_files(page: Page, block: Block) -> None:
    assert block.title is not None


@pytest.mark.parametrize(("page", "block"), blocks_of("cor"))
def test_libraries_check_without_errors_or_warnings(page: Page, block: Block) -> None:
    library = ensue.parse(_with_what_it_continues(page, block), str(block))

    assert [str(each) for each in library.warnings] == []


def _with_what_it_continues(page: Page, block: Block) -> str:
    if "eventtype" in block.text:
        return block.text
    before = [each for each in page.of("cor") if each.section == block.section]
    return "".join(each.text for each in before[: before.index(block) + 1])


@pytest.mark.parametrize("engine", sorted(ENGINES))
@pytest.mark.parametrize(("page", "block"), blocks_of(*CASES))
def test_golden_cases_pass_and_warn_only_where_they_say_so(
    page: Page, block: Block, engine: str, folder: Path
) -> None:
    write_files(page, folder)
    path = folder / (block.title or "shown.toml")
    path.write_text(block.text, "utf-8")

    for case in read_cases(path):
        result = run_case(case, engine)
        assert result.passed, "\n".join(render(result))
        if case.expected.warnings is None and not case.expected.errors:
            library = case.library
            loaded = ensue.parse(library) if isinstance(library, str) else ensue.load(library)
            assert [str(each) for each in loaded.warnings] == []


@pytest.mark.parametrize("page", pages_with("python"))
def test_python_runs_and_prints_what_it_says(page: Page, folder: Path) -> None:
    if any("pyspark" in block.text for block in page.of("python")):
        pytest.importorskip("pyspark", reason="the `spark` extra is not installed")
        if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
            skip_as_missing("Spark needs Java 17, and there is no Java here")
    write_files(page, folder)
    has_broker = any("TrialBroker" in block.text for block in page.of("python"))

    for block, printed in (_run_apart if has_broker else _run_here)(page.of("python")):
        said = [line for line in block.text.splitlines() if line.startswith(PRINTED.rstrip())]
        assert printed == "".join(
            f"{line.removeprefix(PRINTED.rstrip()).removeprefix(' ')}\n" for line in said
        ), str(block)


def _run_here(blocks: Sequence[Block]) -> Iterator[tuple[Block, str]]:
    """Each block with what it prints."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks:
        # Blank lines keep the line numbers of a traceback those of the page.
        code = compile("\n" * block.line + block.text, block.page, "exec")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)
        yield block, printed.getvalue()


def _run_apart(blocks: Sequence[Block]) -> Iterator[tuple[Block, str]]:
    """The same in a process of their own: one Java takes Kafka's connector in only once."""
    _need_a_broker()
    program = "".join(f"{block.text}\nprint({END_OF_BLOCK!r})\n" for block in blocks)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    printed = done.stdout.split(f"{END_OF_BLOCK}\n")
    yield from zip(blocks, printed[:-1], strict=True)


def _need_a_broker() -> None:
    from ensue.errors import UsageError
    from ensue.spark.kafka.broker import BROKER
    from ensue.spark.kafka.jars import fetch

    try:
        fetch([BROKER], with_dependencies=True)
    except UsageError as error:
        skip_as_missing(f"there is no Kafka broker: {error}")


@pytest.mark.parametrize("page", pages_with("console"))
def test_commands_write_what_the_page_says(page: Page, folder: Path) -> None:
    write_files(page, folder)
    code = 0

    for block in page.of("console"):
        for command, expected in _commands(block):
            if command == "echo $?":
                written = f"{code}\n"
            else:
                code, written = _run(command, folder)
            assert _agrees(written, expected), f"{block}: $ {command}\n{written}"


def _commands(block: Block) -> Iterator[tuple[str, str]]:
    parts = re.split(r"^\$ (.+)\n", block.text, flags=re.MULTILINE)
    assert parts[0] == "", f"{block} starts with no command"
    for command, expected in zip(parts[1::2], parts[2::2], strict=True):
        assert command.startswith(COMMANDS), f"{block}: `{command}` is none of {COMMANDS}"
        yield command, expected


def _run(command: str, folder: Path) -> tuple[int, str]:
    """The exit code, and what a terminal would show: both streams in the order of writing."""
    binaries = str(Path(sys.executable).parent)
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "80"},
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
