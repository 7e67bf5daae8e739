"""Library text is coloured as the grammar reads it, in the docs and wherever Pygments is used."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from importlib.metadata import EntryPoint

import pytest
from lark import Token
from pygments.token import Error, Keyword, Name, Number, Operator, String, _TokenType

import ensue
from ensue.lang.colouring import CaseLexer, LibraryLexer, as_html
from ensue.lang.parsing.parser import grammar
from tests.docs.pages import ROOT, read_pages

PAGES = read_pages()
NAMES = {"NAME", "LENGTH_NAME"}
# Words of the grammar that are coloured as words of a condition, and its values.
OTHER_WORDS = {
    "LOGIC",
    "NOT",
    "RELATION",
    "CONCEPT_TEST",
    "QUANTIFIER",
    "AFTER",
    "BEFORE",
    "DURING",
}
LITERALS = {"STRING": String, "INTEGER": Number, "REAL": Number, "TIMESTAMP": Number}
WORDS = {
    *("_LIKE", "_MATCHES", "_IN", "_IS", "_NULL", "_BETWEEN", "_NOT_BETWEEN", "_EXISTS"),
    *("_TIMES", "_FILTER", "_HAS"),
}
ELSEWHERE = {"CURIE", "ONTPROP", "CLOSE_ANGLE", "COMPARE", "ADDITIVE", "MULTIPLICATIVE", "_MINUS"}


def case_libraries(path: str, text: str) -> Iterator[tuple[str, str]]:
    for case in tomllib.loads(text).get("case", []):
        if isinstance(case.get("library"), str) and "errors" not in case:
            yield f"{path}:{case['name']}", case["library"]


def libraries() -> dict[str, str]:
    """Every library in the docs, the examples and the golden cases, by its place."""
    found = {}
    for path in sorted([*ROOT.glob("examples/**/*.cor"), *ROOT.glob("docs/**/*.cor")]):
        found[path.relative_to(ROOT).as_posix()] = path.read_text("utf-8")
    for path in sorted(ROOT.glob("cases/**/*.toml")):
        found.update(case_libraries(path.name, path.read_text("utf-8")))
    for page in PAGES:
        for block in page.of("cor"):
            found[str(block)] = block.text
        for block in page.of("toml", "cor-case"):
            found.update(case_libraries(str(block), block.text))
    return found


LIBRARIES = libraries()


def coloured(text: str) -> list[_TokenType]:
    """The colour of each character."""
    colours: list[_TokenType] = []
    for _, kind, part in LibraryLexer().get_tokens_unprocessed(text):
        colours += [kind] * len(part)
    return colours


@pytest.mark.parametrize("text", LIBRARIES.values(), ids=LIBRARIES.keys())
def test_every_library_is_coloured_as_the_grammar_reads_it(text: str) -> None:
    colours = coloured(text)

    assert len(colours) == len(text)
    assert Error not in colours
    for token in grammar().parse_interactive(text).exhaust_lexer():
        wrong = _is_wrong(token, colours[token.start_pos or 0])
        assert not wrong, f"{token!r} is coloured {colours[token.start_pos or 0]}"


def _is_wrong(token: Token, colour: _TokenType) -> bool:
    if token.type in NAMES:
        return colour not in Name
    if token.type in LITERALS:
        return colour not in LITERALS[token.type]
    if token.type == "DURATION":
        return colour not in Number
    if token.type in OTHER_WORDS | WORDS:
        return colour not in Operator
    if token.type in ELSEWHERE or not token[:1].isalpha():
        return False
    return colour not in Keyword


def test_words_are_keywords_only_where_they_can_stand() -> None:
    text = "eventtype A { attribute long first, by; }\nA correlation X (A a where first = 1) a {}"
    colours = coloured(text)

    for word in ("first,", "by;", "first ="):
        assert colours[text.index(word)] in Name, word


def test_a_piece_of_a_rule_is_coloured_too() -> None:
    text = "a ; b within 10 s having count(a) > 5"
    colours = coloured(text)

    assert Error not in colours
    assert colours[text.index("within")] in Keyword
    assert colours[text.index("having")] in Keyword
    assert colours[text.index("count")] in Name.Builtin


def test_a_case_has_the_library_in_it_coloured() -> None:
    text = "[[case]]\nname = 'x'\nlibrary = '''\neventtype A {}\n'''\nevents = ['1 A']\n"
    kinds = {part: kind for kind, part in CaseLexer().get_tokens(text)}

    assert kinds["eventtype"] in Keyword.Declaration
    assert Error not in kinds.values()
    assert "".join(part for _, part in CaseLexer().get_tokens(text)) == text


def test_cases_of_the_docs_lose_nothing() -> None:
    for page in PAGES:
        for block in page.of("toml", "cor-case"):
            parts = [part for _, part in CaseLexer(stripnl=False).get_tokens(block.text)]
            assert "".join(parts) == block.text, str(block)


def test_a_notebook_shows_a_library_in_colour() -> None:
    library = ensue.parse("eventtype A {}\nA correlation X (A a) a { case true: push a; }")

    assert '<span style="' in library._repr_html_()
    assert as_html("eventtype A {}") in as_html("eventtype A {}\n")


def test_the_package_tells_pygments_of_its_lexers() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
        "entry-points"
    ]
    loaded = {
        EntryPoint(name, value, "pygments.lexers").load()
        for name, value in declared["pygments.lexers"].items()
    }

    assert loaded == {LibraryLexer, CaseLexer}
    assert {*LibraryLexer.aliases, *CaseLexer.aliases} == {"cor", "ensue", "cor-case"}
