"""A gallery of wrong libraries, each with the whole text that its author gets to read.

After a message was changed on purpose: `python -m tests.lang.regenerate_gallery`.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import ensue.lang
from ensue.lang.source import Source
from tests.lang.gallery_texts import findings, findings_in, libraries, report_on

LIBRARIES = libraries()


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda path: str(path.stem))
def test_a_wrong_library_is_told_exactly_what_is_wrong(library: Path) -> None:
    assert report_on(library) == library.with_suffix(".txt").read_text("utf-8")


def test_every_library_of_the_gallery_has_something_wrong() -> None:
    silent = [each.name for each in LIBRARIES if not report_on(each).strip()]

    assert silent == []


def test_every_expected_text_belongs_to_a_library() -> None:
    folder = LIBRARIES[0].parent
    texts = {each.stem for each in folder.glob("*.txt")}

    assert texts == {each.stem for each in LIBRARIES}


def test_every_code_of_the_language_is_in_the_gallery() -> None:
    shown = {each.code for library in LIBRARIES for each in findings_in(library)}

    assert codes_in_the_source() - shown == set()


def codes_in_the_source() -> set[str]:
    """The codes that any module of the language reports, as far as they are written out."""
    codes = set()
    for module in Path(ensue.lang.__path__[0]).rglob("*.py"):
        for node in ast.walk(ast.parse(module.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                first = node.args[0] if node.args else None
                if node.func.attr in {"error", "warning"} and isinstance(first, ast.Constant):
                    codes.add(str(first.value))
    return codes


def test_mistakes_in_several_files_are_placed_in_their_files() -> None:
    source = Source(
        (
            ("types.cor", "eventtype Alarm {};\n\neventtype Login : Evnt {};\n"),
            ("rules.cor", "Alarm ecl Many (Login a)\n{\n    notify { b }\n}\neventtype Alarm {};"),
        )
    )

    places = [(each.file, each.line, each.column, each.code) for each in findings(source)]

    assert places == [
        ("types.cor", 3, 19, "unknown-type"),
        ("rules.cor", 3, 14, "unknown-port"),
        ("rules.cor", 5, 11, "duplicate-type"),
    ]


def test_a_hint_names_the_file_of_the_first_definition() -> None:
    source = Source((("a.cor", "\neventtype Alarm {};"), ("b.cor", "eventtype Alarm {};")))

    (finding,) = findings(source)

    assert finding.hint == "the first one is at a.cor:2; rename or remove one of them"
