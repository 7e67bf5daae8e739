"""A parser that is kept between processes parses as the one that was built."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest
from lark import Lark
from lark.exceptions import UnexpectedInput

from ensue.lang.parsing.parser_cache import FOLDER, parser_of
from tests.lang.gallery_texts import libraries

GRAMMAR = files("ensue.lang.parsing").joinpath("grammar.lark").read_text("utf-8")
OPTIONS = {
    "parser": "lalr",
    "lexer": "contextual",
    "propagate_positions": True,
    "maybe_placeholders": True,
    "start": "library",
}
TEXTS = [
    path.read_text("utf-8", "replace")
    for path in sorted(Path(__file__).parents[3].glob("examples/**/*.cor")) + libraries()
]


def answer(parser: Lark, text: str) -> str:
    """The tree with the places of its tokens, or what was expected where."""
    try:
        found = parser.parse(text)
    except UnexpectedInput as error:
        wanted = sorted(getattr(error, "accepts", None) or getattr(error, "allowed", None) or ())
        return f"{type(error).__name__} {error.pos_in_stream} {wanted}"
    tokens = [
        (each.type, each.value, each.start_pos, each.line, each.column)
        for each in found.scan_values(lambda value: value is not None)
    ]
    return f"{found.pretty()} {tokens}"


def _terminals(parser: Lark) -> list[tuple[str, str, set[str]]]:
    return [(each.name, each.pattern.value, set(each.pattern.flags)) for each in parser.terminals]


def test_a_loaded_parser_gives_the_same_trees_and_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    built = parser_of(GRAMMAR, **OPTIONS)
    (kept,) = (tmp_path / "ensue").iterdir()
    loaded = parser_of(GRAMMAR, **OPTIONS)
    assert len(TEXTS) > 20
    for text in TEXTS:
        assert answer(loaded, text) == answer(built, text)
    assert _terminals(loaded) == _terminals(built)
    assert kept.exists()


def test_kept_tables_that_cannot_be_read_are_built_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    parser_of(GRAMMAR, **OPTIONS)
    (kept,) = (tmp_path / "ensue").iterdir()
    whole = kept.read_bytes()
    kept.write_bytes(whole[: len(whole) // 2])
    assert answer(parser_of(GRAMMAR, **OPTIONS), TEXTS[0])
    assert len(kept.read_bytes()) > len(whole) * 0.9


def test_another_grammar_has_tables_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    parser_of('start: "a"', parser="lalr")
    assert parser_of('start: "b"', parser="lalr").parse("b").data == "start"


@pytest.mark.parametrize("folder", ["", "/dev/null"])
def test_where_nothing_can_be_kept_the_parser_is_built(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER, folder)
    assert parser_of('start: "a"', parser="lalr").parse("a").data == "start"
