"""Parameters as patterns and windows of temporal terms: they are the constants they stand for."""

from __future__ import annotations

import pytest

import ensue
from ensue.errors import EnsueError, LibraryError
from ensue.lang import builder as b
from ensue.lang.printer import print_library
from ensue.subscriptions import Filter

TEXT = """parameter string begins = 'a%';
parameter string number = '[0-9]';
parameter duration pause = 5 s;
eventtype A { attribute string s; };

A correlation X (A a where {where})
    a
{
    case true: push a;
}
"""
NAMED = [
    ("s LIKE begins", "s LIKE 'a%'"),
    ("s NOT LIKE begins", "s NOT LIKE 'a%'"),
    ("s MATCHES number", "s MATCHES '[0-9]'"),
    ("s NOT MATCHES number", "s NOT MATCHES '[0-9]'"),
    ("start AFTER(pause) (s LIKE begins)", "start AFTER(5 s) (s LIKE 'a%')"),
    ("end BEFORE(pause, 3 TIMES) (s = 'x')", "end BEFORE(5 s, 3 TIMES) (s = 'x')"),
]


def where_of(predicate: str) -> ensue.Library:
    return ensue.parse(TEXT.replace("{where}", predicate))


@pytest.mark.parametrize(("named", "written"), NAMED)
def test_a_parameter_is_the_constant_that_it_stands_for(named: str, written: str) -> None:
    (one,), (other,) = where_of(named).correlations, where_of(written).correlations

    assert one == other


@pytest.mark.parametrize(("named", "written"), NAMED)
def test_it_is_printed_by_its_name(named: str, written: str) -> None:
    library = where_of(named)

    assert named in print_library(library.checked.as_written)
    assert written in library.running_text


@pytest.mark.parametrize(
    "text", ["s LIKE begins", "s MATCHES begins", "start AFTER(pause) (s = 1)"]
)
def test_a_filter_by_itself_has_no_parameters(text: str) -> None:
    with pytest.raises(EnsueError, match="takes a constant here"):
        Filter.parse(text)


def test_the_builder_takes_parameters_for_patterns_and_windows() -> None:
    begins, pause = b.parameter("begins", "a%", b.string), b.parameter("pause", "5 s")
    s = b.attr("s")

    assert str(s.like(begins)) == "s LIKE begins"
    assert str(s.not_like(begins)) == "s NOT LIKE begins"
    assert str(s.matches(begins)) == "s MATCHES begins"
    assert str(b.start.after(pause, s == "x")) == "start AFTER(pause) (s = 'x')"


@pytest.mark.parametrize("text", ["s LIKE no", "s MATCHES no", "start AFTER(no) (s = 'x')"])
def test_without_any_parameter_the_name_is_told(text: str) -> None:
    with pytest.raises(LibraryError, match="there is no parameter `no`") as caught:
        ensue.parse(
            "eventtype A { attribute string s; };\n"
            f"A correlation X (A a where {text}) a {{ case true: push a; }}"
        )
    (found,) = [each for each in caught.value.diagnostics if each.severity == "error"]
    assert (found.code, found.line) == ("unknown-parameter", 2)
