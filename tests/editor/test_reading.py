"""Half-written text: wherever a person stops typing, what stands around it is still known."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ensue.editor.documents import Document
from ensue.editor.features.structure import colours, entries, folds
from ensue.editor.project import Project
from ensue.editor.reading import read
from ensue.editor.vocabulary import (
    AGGREGATE_TEXTS,
    FUNCTION_TEXTS,
    KEYWORDS,
    signature,
    words_of,
)
from ensue.lang.expressions.aggregates import AGGREGATES
from ensue.lang.expressions.builtins.functions import FUNCTIONS

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*/*.cor"))
TYPES = "eventtype A { attribute long x; attribute string host.name; };\n"
FILTER = (
    "A correlation R (A a from \"s\" where x > 3 AND host.name LIKE 'w%', every 5 s t)\n"
    "    l1:(a ; t){3} | l2:a ; timeout(1 min)\n"
    "    within 10 min by x keep last unless t having sum(a.x) > 3\n"
    "{\n    toggle(l2);\n    case l1 & !l2: push new A { x = a.x + 1 };\n"
    "    case true: push a;\n}\n"
)
ECL = (
    "A ecl E (A a, A b) by x\n"
    "{ modes { in (a) do { repeat(3) { notify { select* { a, < x > 3 > } } } }"
    " in (b) do { push(A) { do { timeout(1 s) } unless { fail { b } } } } } }\n"
)
AFTER = "eventtype Last : A {};\nLast correlation End (Last z) z { case true: push z; }\n"


def names(text: str) -> list[str]:
    return [each.name for each in entries(Document("x", text))]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda each: each.parent.name)
def test_a_good_library_is_read_without_repairs(path: Path) -> None:
    document = Document(str(path), path.read_text())
    written = [each for each in document.definitions if each.outlines]

    assert written
    assert all(each.reading.is_whole for each in written)


@pytest.mark.parametrize("text", [FILTER, ECL], ids=["filter", "ecl"])
def test_a_definition_cut_anywhere_hides_no_other(text: str) -> None:
    for end in range(len(text)):
        half = TYPES + text[:end] + "\n\n" + AFTER
        found = names(half)

        assert found[:1] == ["A"], half
        assert found[-2:] == ["Last", "End"], half


def test_ports_and_labels_before_a_mistake_are_known_behind_it() -> None:
    broken = TYPES + FILTER.replace("keep last", "keep").replace("x = a.x + 1", "x = ")
    rule = next(each for each in entries(Document("x", broken)) if each.name == "R")

    assert [each.name for each in rule.inside] == ["a", "t", "l1", "l2"]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_damage_is_survived(data: st.DataObject) -> None:
    text = TYPES + FILTER + ECL
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 30)))
    junk = data.draw(st.text(alphabet="{}();:,.\"'<>+|&!-*/ aAx1\n\\é\U0001f600", max_size=8))
    damaged = text[:start] + junk + text[end:]
    document = Document("x", damaged)

    # All words are there, in order and without overlap; nothing fails.
    at = 0
    for word in document.words():
        assert word.start >= at
        assert damaged[word.start : word.end] == word.text
        at = word.end
    assert all(each.start < each.end for each in colours(document))
    assert all(first <= last for first, last, _ in folds(document))
    list(entries(document))


def test_words_of_one_reading_are_those_of_the_text() -> None:
    reading = read(FILTER)

    assert reading.is_whole
    assert "".join(each.text for each in reading.words if each.type != "COMMENT").replace(
        " ", ""
    ) == FILTER.replace(" ", "").replace("\n", "")


def test_every_word_and_function_of_the_language_is_told_in_a_sentence() -> None:
    words = {word.lower() for each in words_of().values() for word in each}

    assert words == KEYWORDS.keys()
    assert FUNCTION_TEXTS.keys() == FUNCTIONS.keys()
    assert AGGREGATE_TEXTS.keys() == AGGREGATES.keys()
    assert signature("SUBSTRING") == "SUBSTRING(string, integer[, integer]) -> string"
    assert signature("count") == "count(port) -> integer"


def test_a_file_is_read_with_the_files_that_declare_what_it_lacks(tmp_path: Path) -> None:
    texts = {
        "base.cor": "eventtype Base {};\n",
        "types.cor": "eventtype Login : Base {};\n",
        "other.cor": "eventtype Unrelated {};\n",
        "rules.cor": "Login correlation R (Login a) a { case true: push a; }\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    project = Project()

    files = project.library_of(tmp_path / "rules.cor")

    assert [each.name for each in files] == ["base.cor", "types.cor", "rules.cor"]
