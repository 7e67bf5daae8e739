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

How Python and commands are run is in `running`. Those of pages that start Spark are in `spark/`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ensue
from ensue.casefile import read_cases, render, run_case
from ensue.engine.choosing import ENGINES

from .pages import Block, Page, read_pages
from .running import commands_agree, python_agrees, python_here, write_files

PAGES = read_pages()
SHOWN_ONLY = {"text", "mermaid", "ebnf", "java", "sql", "yaml"}
DATA_FILES = {"jsonl", "csv"}
CASES = ("toml", "cor-case")
RUN = {"cor", *CASES, "python", "console"}
PAGES_WITH_SHELL = {"README.md", "CONTRIBUTING.md"}


def blocks_of(*languages: str) -> list[Any]:
    return [
        pytest.param(page, block, id=str(block)) for page in PAGES for block in page.of(*languages)
    ]


def pages_with(language: str) -> list[Any]:
    pages = [page for page in PAGES if page.of(language) and not page.needs_spark]
    return [pytest.param(page, id=page.name) for page in pages]


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
    write_files(page, folder)

    python_agrees(python_here(page.of("python")))


@pytest.mark.parametrize("page", pages_with("console"))
def test_commands_write_what_the_page_says(page: Page, folder: Path) -> None:
    write_files(page, folder)

    commands_agree(page.of("console"), folder)
