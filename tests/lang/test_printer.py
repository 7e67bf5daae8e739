"""The canonical layout, and brackets only where the tree needs them."""

from __future__ import annotations

import pytest

from ensue.lang.diagnostics import Diagnostics
from ensue.lang.parsing.parser import parse_tree
from ensue.lang.printer import print_library
from ensue.lang.source import Source


def laid_out(text: str) -> str:
    diagnostics = Diagnostics(Source.of(text))
    tree = parse_tree(diagnostics.source, diagnostics)
    assert not diagnostics.found, str(diagnostics.found[0])
    return print_library(tree)


CANONICAL = """\
eventtype Notify { attribute short SourceID; };
eventtype DataNotify : Notify {
    attribute float Value;
    attribute sequence<unsigned long> Counts;
};

Notify correlation DoubleMatch (DataNotify a from 'gps', DataNotify b where Value > 3.5, Notify c)
    l1:(a + b) | l2:(a + c) || every{3} ; c
    within 10 s
    by SourceID, a.x = b.y
    bind first
{
    abort(l1);
    case l1:       push new Notify { SourceID = b.SourceID };
    case l2 & !l1: push c; toggle(l1, l2);
}

Notify ecl Display (Airframe af, every 1 min t, Pilot tm where mode = 't', Pilot nm where x = 2)
{
    modes {
        in (tm) do { repeat { notify { accumulate { af, t } } } }
        in (nm) do { do { timeout(1500 ms) } unless { < x > 3 > } }
    }
}
"""


def test_a_library_in_its_canonical_layout_prints_as_it_is() -> None:
    assert laid_out(CANONICAL) == CANONICAL


def test_the_layout_of_the_original_does_not_matter() -> None:
    crowded = " ".join(CANONICAL.split())

    assert laid_out(crowded) == CANONICAL


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("((a)) + (b)", "a + b"),
        ("(a + b) ; (c)", "a + b ; c"),
        ("a + (b ; c)", "a + (b ; c)"),
        ("a ; (b ; c)", "a ; (b ; c)"),
        ("l:(a{2})", "l:a{2}"),
        ("(l:a){2}", "(l:a){2}"),
        ("(a ; b){2}", "(a ; b){2}"),
    ],
)
def test_a_filter_has_the_brackets_that_its_tree_needs(written: str, printed: str) -> None:
    assert f"\n    {printed}\n" in laid_out(f"A correlation X (A a) {written} {{}}")


def test_long_headings_and_expressions_are_broken_over_lines() -> None:
    ports = ", ".join(f"Measurement port_number_{number}" for number in range(9))
    parts = ", ".join(f"repeat {{ port_number_{number} }}" for number in range(9))
    printed = laid_out(f"A ecl X ({ports}) {{ sequential {{ {parts} }} }}")

    assert max(len(line) for line in printed.splitlines()) <= 100
    assert "\n        repeat { port_number_0 },\n" in printed
