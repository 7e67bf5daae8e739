"""No input, however broken, deep or large, gives a traceback or takes long."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ensue.errors import UsageError
from ensue.lang import syntax
from ensue.lang.diagnostics import Diagnostics
from ensue.lang.limits import Limits
from ensue.lang.parsing.files import read_source
from ensue.lang.parsing.parser import parse_tree
from ensue.lang.printer import print_library
from ensue.lang.source import Source
from tests.lang.strategies import libraries


def codes(text: str, limits: Limits | None = None) -> list[str]:
    diagnostics = Diagnostics(Source.of(text))
    parse_tree(diagnostics.source, diagnostics, limits or Limits())
    for each in diagnostics.in_order():
        assert str(each)
    return [each.code for each in diagnostics.in_order()]


def in_filter(text: str) -> str:
    return f"A correlation X (A a) {text} {{}}"


def in_predicate(text: str) -> str:
    return f"A correlation X (A a where {text}) a {{}}"


def in_ecl(text: str) -> str:
    return f"A ecl X (A a) {{ {text} }}"


def in_case(text: str) -> str:
    return f"A correlation X (A a) l:a {{ case {text}: push a }}"


NESTED = {
    "filter brackets": lambda n: in_filter("(" * n + "a" + ")" * n),
    "filter operators": lambda n: in_filter("(a ; (a + " * (n // 2) + "a" + "))" * (n // 2)),
    "labels": lambda n: in_filter("l:" * n + "a"),
    "counts": lambda n: in_filter("a" + "{1}" * n),
    "predicate brackets": lambda n: in_predicate("(" * n + "x" + ")" * n),
    "not": lambda n: in_predicate("NOT " * n + "x"),
    "minus": lambda n: in_predicate("- " * n + "x"),
    "like": lambda n: in_predicate("x" + " LIKE ''" * n),
    "calls": lambda n: in_predicate("f(" * n + "x" + ")" * n),
    "label negations": lambda n: in_case("!" * n + "l"),
    "label brackets": lambda n: in_case("(" * n + "l" + ")" * n),
    "ECL": lambda n: in_ecl("fail { " * n + "a" + " }" * n),
    "sequences": lambda n: f"eventtype B {{ attribute {'sequence<' * n}long{'>' * n} x; }}",
}


@pytest.mark.parametrize("kind", NESTED)
@pytest.mark.parametrize("depth", [102, 10_000])
def test_nesting_past_the_limit_is_refused(kind: str, depth: int) -> None:
    assert codes(NESTED[kind](depth)) == ["limit-nesting"]


@pytest.mark.parametrize("kind", NESTED)
def test_nesting_up_to_the_limit_is_read(kind: str) -> None:
    assert codes(NESTED[kind](98)) == []


def test_a_million_open_brackets_are_refused_and_hide_nothing() -> None:
    diagnostics = Diagnostics(Source.of(in_filter("(" * 1_000_000) + "\neventtype B {}"))
    tree = parse_tree(diagnostics.source, diagnostics)

    assert [each.code for each in diagnostics.found] == ["limit-nesting"]
    assert [each.name for each in tree.definitions] == ["B"]


def test_long_chains_are_flat_and_no_nesting() -> None:
    assert codes(in_filter(" ; ".join(["a"] * 2_000))) == []
    assert codes(in_predicate(" AND ".join(["x"] * 2_000))) == []


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (in_filter("a{0}"), "bad-count"),
        (in_ecl("repeat(0) { a }"), "bad-count"),
        (in_filter("a{100001}"), "limit-repetition"),
        (in_filter("a{" + "9" * 5_000 + "}"), "limit-repetition"),
        (in_filter("(a ; a){1000}{1000}"), "limit-places"),
        (in_ecl("repeat(9999999999) { a }"), "limit-rounds"),
        (f"A correlation X ({', '.join(['A a'] * 1_001)}) a {{}}", "limit-ports"),
    ],
)
def test_counts_past_their_limits_are_refused(text: str, code: str) -> None:
    assert codes(text) == [code]


def test_a_count_up_to_its_limit_is_read() -> None:
    assert codes(in_filter("a{100000}")) == []


def test_limits_of_the_whole_library_are_checked_before_it_is_read() -> None:
    assert codes("eventtype A {}\n" * 3, Limits(definitions=2)) == ["limit-definitions"]
    assert codes("eventtype A {}", Limits(bytes=13)) == ["limit-bytes"]
    assert codes("x" * 5_000_000) == ["limit-bytes"]


@pytest.mark.parametrize(
    "text",
    [
        in_filter(" ; ".join(["a"] * 1_000_000)),
        "}" * 4_000_000,
        "} " * 2_000_000,
        "};" * 2_000_000,
        "eventtype A {} " + ")" * 4_000_000,
    ],
    ids=["chain", "brackets", "spaced", "ended", "after a definition"],
)
def test_a_definition_too_long_to_be_read_quickly_is_refused_at_once(text: str) -> None:
    begun = time.process_time()

    assert codes(text) == ["limit-words"]
    assert time.process_time() - begun < 10


def test_words_are_counted_in_each_definition_and_comments_are_none() -> None:
    limits = Limits(words=20)
    plain = in_filter("a /* " + "word " * 30 + "*/")

    assert codes(plain + "\n" + plain.replace("X", "Y"), limits) == []
    assert codes(in_filter(" ; ".join(["a"] * 12)), limits) == ["limit-words"]


@pytest.mark.parametrize(
    "text",
    [
        "/*" + "*" * 300_000,
        '"' * 300_001,
        "A ecl X (A a) { < x > " + "/**/" * 50_000,
        "A " + " " * 500_000,
        "}" * 20_000,
        "A correlation X (" * 5_000,
        "\ud800",
    ],
)
def test_texts_made_to_be_slow_are_refused_quickly(text: str) -> None:
    assert "syntax" in codes(text)


@settings(deadline=None, max_examples=60)
@given(st.text(max_size=200) | st.text("{}()<>:;|+!&.,'\"/* \nabl1", max_size=200))
def test_any_text_gives_diagnostics_and_no_exception(text: str) -> None:
    codes(text)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(libraries(), st.integers())
def test_valid_text_with_random_edits_gives_diagnostics_and_no_exception(
    tree: syntax.LibraryTree, seed: int
) -> None:
    text = print_library(tree)
    edits = random.Random(seed)
    for _ in range(edits.randint(1, 6)):
        start = edits.randrange(len(text))
        end = min(len(text), start + edits.choice([0, 1, 1, 5, 40]))
        other = edits.randrange(len(text))
        put = edits.choice(
            ["", "{", "}", "(", ")", ";", "'", '"', "/*", "0", text[other : other + 9]]
        )
        text = text[:start] + put + text[end:]
    codes(text)


def test_a_byte_that_is_no_utf8_is_named_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "rules.cor"
    path.write_bytes("eventtype Ä".encode() + b" {}\n  \xff eventtype B {}")
    _, (found,) = read_source([path])

    assert (found.code, found.line, found.column) == ("encoding", 2, 3)
    assert "0xFF" in found.message


def test_a_nul_is_named_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "rules.cor"
    path.write_bytes(b"eventtype A {}\n\0")
    _, (found,) = read_source([path])

    assert (found.code, found.line, found.column) == ("encoding", 2, 1)


def test_a_byte_order_mark_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "rules.cor"
    path.write_bytes(b"\xef\xbb\xbfeventtype A {}\r\n")
    source, found = read_source([path])

    assert not found
    assert source.files[0][1] == "eventtype A {}\r\n"


def test_files_that_are_too_large_together_are_refused_unread(tmp_path: Path) -> None:
    for name in ("one.cor", "two.cor"):
        (tmp_path / name).write_bytes(b" " * 3_000_000)
    _, (found,) = read_source([tmp_path / "one.cor", tmp_path / "two.cor"])

    assert found.code == "limit-bytes"
    assert found.file.endswith("two.cor")


@pytest.mark.parametrize("path", ["no/such/file.cor", "a\0b"])
def test_a_file_that_cannot_be_opened_is_a_mistake_of_the_call(path: str) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read_source([path])
