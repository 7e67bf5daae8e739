"""`ensue explain`."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from tests.cli.conftest import Ensue

LIBRARY = """
eventtype Notify { attribute short SourceID; };
eventtype DataNotify : Notify { attribute float Value; };
eventtype Go {};
Notify correlation Match (
    DataNotify a from "gps", DataNotify b where Value > 3.5, Notify c, every 5 s tick
)
    l1:(a + b) | l2:(c ; tick{3}) || c
    within 10 s
    by a.SourceID = b.SourceID = c.SourceID
    bind first
{
    abort(l2);
    case l1:       push new Notify { SourceID = b.SourceID }; toggle(l2);
    case l2 & !l1: push c;
}
Go ecl Watch (Notify n, deadline 1 min dog)
{
    parallel {
        push(Go) {
            do { repeat(2) { n } } unless { select* { dog, timeout(3 s), fail { false } } }
        },
        loop { persist { accumulate { select { n, dog }, <SourceID = 3> } } },
        modes { in (n) do { sequential { n, dog } } in (dog) do { true } }
    }
}
"""


@pytest.fixture
def library(tmp_path: Path) -> Path:
    path = tmp_path / "rules.cor"
    path.write_text(LIBRARY)
    return path


def test_what_a_filter_waits_for_is_said_in_words_and_drawn(ensue: Ensue, library: Path) -> None:
    answer = ensue("explain", library, "Match")

    assert answer.code == 0
    assert "  (`a` and `b` in any order) or (`c`, then `tick` 3 times)\n" in answer.out
    assert dedent("""
        |              one of these
        ├─ l1: +       all of these, in any order
        │  ├─ a
        │  └─ b
        └─ l2: ;       one after the other
           ├─ c
           └─ {3}      3 times, one after the other
              └─ tick
        """).strip().splitlines() == [line[4:] for line in answer.out.splitlines()[6:14]]
    assert "branch 2, which triggers by itself" in answer.out


@pytest.mark.parametrize(
    "line",
    [
        "  a     DataNotify events from 'gps'",
        "  b     DataNotify events where Value > 3.5",
        "  c     Notify events (also DataNotify)",
        "  tick  a timer that fires every 5 s",
        "  within 10 s               events older than 10 s do not count any more",
        "  by a.SourceID = b.SourceID = c.SourceID",
        "  bind first                a port stands for the first event that matches it",
        "  l2  active if `c`, then `tick` 3 times was met; used by case l2 & !l1; abort",
        "  leaves `l2` out from now on",
        "  case l1:        puts out a new Notify with SourceID = b.SourceID",
        "  case l2 & !l1:  sends on the event that `c` stands for",
        "  Notify events with SourceID (short)",
        "  fed by  none: it reads events from outside only",
        "  feeds   Watch",
    ],
)
def test_ports_clauses_labels_cases_and_neighbours_are_told(
    ensue: Ensue, library: Path, line: str
) -> None:
    assert line in ensue("explain", library, "Match").out.splitlines()


def test_every_operator_of_ecl_has_a_line_with_its_meaning(ensue: Ensue, library: Path) -> None:
    answer = ensue("explain", library, "Watch")

    meanings = {
        "parallel": "side by side",
        "push(Go)": "puts out Go",
        "repeat(2)": "2 rounds",
        "unless": "but fails if this comes first",
        "select*": "fails if one fails",
        "timeout(3 s)": "3 s after it was started",
        "fail": "fails when this succeeds",
        "loop": "again until it fails",
        "persist": "again until it succeeds",
        "accumulate": "all of these, in any order",
        "select": "one of these; fails if all fail",
        "< SourceID = 3 >": "an event of which this holds",
        "modes": "one at a time",
        "sequential": "one after the other",
        "true": "any event it reads",
    }
    for operator, meaning in meanings.items():
        assert any(
            f"─ {operator} " in f"─ {line.strip()} " and meaning in line
            for line in answer.out.splitlines()
        ), operator
    assert "  dog  a timer that fires after 1 min without a trigger" in answer.out
    assert "  fed by  Match" in answer.out


def test_a_chain_of_thousands_stays_readable(ensue: Ensue, tmp_path: Path) -> None:
    path = tmp_path / "long.cor"
    chain = " ; ".join(["a"] * 3_000)
    path.write_text(f"eventtype A {{}};\nA correlation X (A a) {chain} {{ case true: push a; }}")

    answer = ensue("explain", path, "X")

    assert "... 2,988 more" in answer.out
    assert len(answer.out) < 2_000


def test_lines_fit_a_terminal(ensue: Ensue, library: Path) -> None:
    for name in ("Match", "Watch"):
        assert max(map(len, ensue("explain", library, name).out.splitlines())) <= 100


class TestWrongCalls:
    def test_an_unknown_name_offers_the_close_match(self, ensue: Ensue, library: Path) -> None:
        answer = ensue("explain", library, "match")

        assert (answer.code, answer.out) == (2, "")
        assert "did you mean `Match`?" in answer.err

    def test_without_a_name_the_correlations_are_listed(self, ensue: Ensue, library: Path) -> None:
        answer = ensue("explain", library)

        assert answer.code == 2
        assert "`Match`, `Watch`" in answer.err

    def test_without_a_library_it_asks_for_one(self, ensue: Ensue) -> None:
        answer = ensue("explain", "Match")

        assert answer.code == 2
        assert "`ensue explain LIB Match`" in answer.err

    def test_a_format_that_is_not_there_lists_what_is(self, ensue: Ensue, library: Path) -> None:
        answer = ensue("explain", library, "Match", "--format", "hologram")

        assert answer.code == 2
        assert "there is no format `hologram`; there is `text`" in answer.err

    def test_a_library_with_errors_is_unusable_input(self, ensue: Ensue, tmp_path: Path) -> None:
        path = tmp_path / "bad.cor"
        path.write_text("eventtype A : B {};")

        assert ensue("explain", path, "X").code == 2
