"""One layout: that of the printer, with every comment kept and no meaning changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ensue.editor.documents import Document
from ensue.editor.features.formatting import format_text
from ensue.editor.reading import COMMENT, read
from ensue.lang.diagnostics import Diagnostics
from ensue.lang.parsing.parser import parse_tree
from ensue.lang.printer import print_library
from ensue.lang.source import Source
from ensue.lang.syntax import LibraryTree

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*/*.cor"))
LIBRARY = (
    "eventtype A { attribute long x, y; };\n"
    "A correlation R (A a where x > 3, every 5 s t) l1:(a ; t) | l2:a within 90 s by x"
    " { toggle(l2); case l1 & !l2: push new A { x = a.x, y = 1 }; push a; case true: push a; }\n"
    "A ecl E (A a, A b)"
    " { repeat { notify { sequential { a, do { timeout(1 h) } unless { b } } } } }"
)


def tree(text: str) -> LibraryTree:
    diagnostics = Diagnostics(Source.of(text))
    found = parse_tree(diagnostics.source, diagnostics)
    assert not diagnostics.has_errors, text
    return found


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda each: each.parent.name)
def test_examples_keep_their_meaning_and_comments(path: Path) -> None:
    text = path.read_text()
    laid_out = format_text(text)

    assert tree(laid_out) == tree(text)
    assert comments(laid_out) == comments(text)
    assert format_text(laid_out) == laid_out


def comments(text: str) -> list[str]:
    return [each.text.rstrip() for each in Document("", text).words() if each.type == COMMENT]


def test_without_comments_the_layout_is_that_of_the_printer() -> None:
    assert format_text(LIBRARY) == print_library(tree(LIBRARY))


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_comments_anywhere_are_kept_and_the_layout_is_stable(data: st.DataObject) -> None:
    words = [each.text for each in read(LIBRARY).words]
    notes = ["// one\n", "/* two */", "\n// three\n", "\n/* four\n   five */\n"]
    for place in sorted(data.draw(st.sets(st.integers(0, len(words)), max_size=4)), reverse=True):
        words.insert(place, data.draw(st.sampled_from(notes)))
    text = " ".join(words)
    laid_out = format_text(text)

    assert tree(laid_out) == tree(LIBRARY)
    assert comments(laid_out) == comments(text)
    assert format_text(laid_out) == laid_out


def test_a_comment_stays_with_the_line_it_stood_behind() -> None:
    text = (
        "A correlation R (\n    A a,  // first\n    A b   // second\n)\n    a ; b\n{\n"
        "    // why\n    case true: push a;  // out\n}\n"
    )

    assert format_text(text) == text.replace("A b   //", "A b  //")


def test_what_cannot_be_read_stays_as_it_is() -> None:
    text = "eventtype   A{};\nA correlation   Broken (A a\n\neventtype   B{};\n"

    assert format_text(text) == (
        "eventtype A {};\n\nA correlation   Broken (A a\n\neventtype B {};\n"
    )


def test_line_ends_are_kept() -> None:
    assert format_text("eventtype  A{};\r\n// b\r\n") == "eventtype A {};\r\n// b\r\n"


def test_a_text_of_comments_only_stays() -> None:
    assert format_text("// nothing yet\n") == "// nothing yet\n"
