"""The pages of the documentation, cut into the fenced blocks that they show.

In comes a Markdown file; out goes a `Page` with its blocks in order, each with its language, its
title, its section and the line it starts at. Nothing is run here: that is done in `running`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

_FENCE = re.compile(r"(?P<indent> *)(?P<ticks>`{3,})(?P<info>.*)")
_HEADING = re.compile(r"#{1,6} +(?P<text>.+)")
_TITLE = re.compile(r'title="(?P<title>[^"]+)"')
_STARTS_SPARK = ("pyspark", "ensue.spark", "--engine spark")


@dataclass(frozen=True)
class Block:
    """One fenced block. `section` is the nearest heading above it."""

    page: str
    line: int
    section: str
    language: str
    title: str | None
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Page:
    path: Path
    blocks: tuple[Block, ...]

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    def of(self, *languages: str) -> list[Block]:
        return [block for block in self.blocks if block.language in languages]

    @property
    def needs_spark(self) -> bool:
        """Whether Python or a command of the page starts a session of Spark."""
        shown = "".join(block.text for block in self.of("python", "console"))
        return any(word in shown for word in _STARTS_SPARK)

    @property
    def files(self) -> list[Block]:
        """The blocks that a reader would save under their titles."""
        return [block for block in self.blocks if block.title]


def read_pages() -> list[Page]:
    """Every page that users and contributors read."""
    roots = sorted(ROOT.glob("*.md"))
    return [_read(path) for path in [*roots, *sorted((ROOT / "docs").rglob("*.md"))]]


def _read(path: Path) -> Page:
    name = path.relative_to(ROOT).as_posix()
    blocks: list[Block] = []
    section = ""
    lines = iter(enumerate(path.read_text("utf-8").splitlines(), 1))
    for number, line in lines:
        if heading := _HEADING.fullmatch(line):
            section = heading["text"]
        fence = _FENCE.fullmatch(line)
        if not fence:
            continue
        inside: list[str] = []
        for _, content in lines:
            if content.strip() == fence["ticks"]:
                break
            inside.append(content.removeprefix(fence["indent"]))
        else:
            raise ValueError(f"{name}:{number}: the fence is never closed")
        language, _, rest = fence["info"].strip().partition(" ")
        title = _TITLE.search(rest)
        text = "".join(f"{each}\n" for each in inside)
        blocks.append(Block(name, number, section, language, title and title["title"], text))
    return Page(path, tuple(blocks))
