"""The page on the architecture is true to the code: its modules exist and import as drawn."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "ensue"
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
PICTURES = re.findall(r"```mermaid\n(.*?)```", PAGE, re.DOTALL)


def file_of(module: str) -> Path:
    path = SOURCE / f"{module}.py"
    return path if path.exists() else SOURCE / module / "__init__.py"


def imported_by(module: str) -> set[str]:
    """The modules that a module imports, wherever in it that stands."""
    found = set()
    for node in ast.walk(ast.parse(file_of(module).read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ensue"):
            base = (node.module or "").removeprefix("ensue").lstrip(".").replace(".", "/")
            found.add(base)
            found |= {f"{base}/{each.name}".lstrip("/") for each in node.names}
    return found


def edges(picture: str) -> list[tuple[str, str]]:
    names = dict(re.findall(r"(\w+)\[([\w/]+)\]", picture))
    bare = re.sub(r"\[[\w/]+\]", "", picture)
    return [(names[a], names[b]) for a, b in re.findall(r"(\w+) --> (\w+)", bare)]


@pytest.mark.parametrize("picture", PICTURES)
def test_modules_of_a_walk_import_each_other_as_drawn(picture: str) -> None:
    drawn = edges(picture)

    assert len(drawn) > 5
    assert [pair for pair in drawn if not file_of(pair[0]).exists()] == []
    assert [(one, other) for one, other in drawn if other not in imported_by(one)] == []


def test_every_room_of_the_source_is_on_the_page() -> None:
    rooms = [each.name for each in SOURCE.iterdir() if (each / "__init__.py").exists()]

    assert [room for room in rooms if f"`{room}`" not in PAGE] == []
