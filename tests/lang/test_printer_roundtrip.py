"""Text and tree are two forms of one thing: each gives the other back."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from ensue.lang import syntax
from ensue.lang.checker import check
from ensue.lang.diagnostics import Diagnostics
from ensue.lang.parsing.parser import parse_tree
from ensue.lang.printer import print_library
from ensue.lang.source import Source
from tests.lang.strategies import libraries, trees

QUIET = settings(
    deadline=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def read(text: str) -> syntax.LibraryTree:
    diagnostics = Diagnostics(Source.of(text))
    tree = parse_tree(diagnostics.source, diagnostics)
    assert not diagnostics.has_errors, f"{text}\n{diagnostics.found[0]}"
    return tree


@QUIET
@given(trees())
def test_any_tree_is_read_back_from_its_text(tree: syntax.LibraryTree) -> None:
    assert read(print_library(tree)) == tree


@QUIET
@given(trees())
def test_printing_what_was_printed_changes_nothing(tree: syntax.LibraryTree) -> None:
    text = print_library(tree)

    assert print_library(read(text)) == text


@QUIET
@given(libraries())
def test_valid_libraries_are_valid_and_read_back(tree: syntax.LibraryTree) -> None:
    text = print_library(tree)
    diagnostics = Diagnostics(Source.of(text))
    again = parse_tree(diagnostics.source, diagnostics)
    check(again, diagnostics)

    assert again == tree
    assert not diagnostics.has_errors, f"{text}\n{diagnostics.in_order()[0]}"
