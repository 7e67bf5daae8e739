"""`ensue explain`."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

import pytest

from ensue.library import load
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
Go ecl Watch (Notify n from Match, deadline 1 min dog)
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
        "timeout(3 s)": "when 3 s have passed",
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


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("notify { timeout(3 s) }", "timeouts"),
        (
            f"notify {{ accumulate {{ {', '.join(f'p{n}' for n in range(12))} }} }}",
            "more than 1,000",
        ),
    ],
)
def test_why_there_is_no_whole_table_is_said(
    ensue: Ensue, tmp_path: Path, expression: str, reason: str
) -> None:
    ports = ", ".join(f"A{n} p{n}" for n in range(12))
    types = " ".join(f"eventtype A{n} {{}}" for n in range(12))
    library = tmp_path / "rules.cor"
    library.write_text(f"{types} eventtype Out {{}} Out ecl Wide ({ports}) {{ {expression} }}")

    told = " ".join(ensue("explain", library, "Wide").out.split())

    assert f"whole table not made: it has {reason}" in told


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
        assert "there is no format `hologram`; choose one of `text`" in answer.err

    def test_a_library_with_errors_is_unusable_input(self, ensue: Ensue, tmp_path: Path) -> None:
        path = tmp_path / "bad.cor"
        path.write_text("eventtype A : B {};")

        assert ensue("explain", path, "X").code == 2


class TestHowItRuns:
    @pytest.fixture
    def rules(self, tmp_path: Path) -> Path:
        path = tmp_path / "rules.cor"
        path.write_text(
            "eventtype A {}; eventtype B {}; eventtype Out {};\n"
            "Out ecl Both (A a, B b) { repeat { notify { accumulate { a, b } } } }\n"
            "Out correlation Soon (A a, B b) a ; b within 5 s { case true: push new Out {}; }\n"
            "Out correlation Back (A a, B b) l:a ; b { case l: push new Out {}; toggle(l); }\n"
        )
        return path

    def section(self, out: str) -> list[str]:
        """The lines of the section, with words put together that were wrapped."""
        lines = out.split("How it runs\n")[1].splitlines()
        return [" ".join(line.split()) for line in lines]

    @pytest.mark.parametrize(
        ("name", "step", "batch"),
        [
            ("Both", "step on a table:", "batch in compiled loops over columns, on its table"),
            ("Soon", "step by the transitions of its machine:", "batch in compiled loops over"),
            (
                "Back",
                "step from remembered events: label `l` is",
                "batch event by event: label `l`",
            ),
        ],
    )
    def test_the_form_of_each_engine_is_named_with_its_reason(
        self, ensue: Ensue, rules: Path, name: str, step: str, batch: str
    ) -> None:
        out = " ".join(self.section(ensue("explain", rules, name).out))

        assert step in out
        assert batch in out

    def test_every_pass_is_told_with_what_it_found_and_left(
        self, ensue: Ensue, rules: Path
    ) -> None:
        lines = self.section(ensue("explain", rules, "Both").out)

        assert "drop_unreachable 12 states, 7 transitions -> 6 states, 5 transitions" in lines
        assert any(line.startswith("optimised ") for line in lines)

    def test_unoptimised_tells_of_the_machine_as_it_is_built(
        self, ensue: Ensue, rules: Path
    ) -> None:
        plain = ensue("explain", rules, "Both").out
        built = ensue("explain", rules, "Both", "--unoptimised").out

        assert "Its machine, optimised" in plain
        assert "[accumulate ✗]" not in plain
        assert "Its machine, as it is built" in built
        assert "[accumulate ✗]" in built
        assert "\n  optimised" not in built

    def test_a_rule_without_a_machine_says_so_and_draws_none(
        self, ensue: Ensue, rules: Path
    ) -> None:
        assert "Its machine" not in ensue("explain", rules, "Back").out

    @pytest.mark.parametrize("form", ["json", "mermaid", "dot", "svg"])
    def test_a_rule_that_relates_events_is_drawn_by_its_filter_alone(
        self, ensue: Ensue, rules: Path, form: str
    ) -> None:
        rules.write_text(
            "eventtype A {}; eventtype B {}; eventtype Out { attribute long n; };\n"
            "Out correlation Slow (A a, B b) l:(a{2} ; timeout(30 min)) | a ; b\n"
            "    unless b within 1 h keep all having count(a) > 1\n"
            "{ case l: push new Out { n = count(a) }; }\n"
        )

        answer = ensue("explain", rules, "Slow", "--format", form)

        assert answer.code == 0
        assert "timeout(30 min)" in answer.out
        assert answer.err == (
            "`Slow` is drawn by its filter alone, without `keep all`, `unless`, `having`, `count`\n"
        )

    def test_json_tells_how_it_runs_too(self, ensue: Ensue, rules: Path) -> None:
        told = json.loads(ensue("explain", rules, "Both", "--format", "json").out)

        assert told["runs"]["batch"].startswith("in compiled loops over columns")

    def test_a_file_of_tables_is_explained_like_its_text(self, ensue: Ensue, rules: Path) -> None:
        tables = rules.with_suffix(".tables")
        tables.write_bytes(load(rules).tables())

        assert "on a table" in ensue("explain", tables, "Both").out
        assert "as it is built" in ensue("explain", tables, "Both", "--unoptimised").out


def test_the_only_correlation_needs_no_name(ensue: Ensue, tmp_path: Path) -> None:
    library = tmp_path / "one.cor"
    library.write_text("eventtype A {}; A correlation Only (A a) a{2} { case true: push a; }")
    assert ensue("explain", library).out == ensue("explain", library, "Only").out

    library.write_text(library.read_text() + " A correlation Other (A a) a{3} {}")
    told = ensue("explain", library)
    assert told.code == 2
    assert "give the name of a correlation" in told.err
    assert "`Only`, `Other`" in told.err


@pytest.mark.parametrize("given", ["missing.cor", "folder/missing", ""])
def test_a_path_that_leads_to_no_library_is_not_taken_for_a_name(
    ensue: Ensue, given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = ensue("explain", given)

    assert answer.code == 2
    assert "give a library first" not in answer.err


def test_clauses_over_several_events_are_told_in_words(ensue: Ensue, tmp_path: Path) -> None:
    path = tmp_path / "clauses.cor"
    path.write_text(
        "eventtype A { attribute long n; }\neventtype Out {}\n"
        "Out correlation R (A a, A b, A c where n = 0)\n"
        "    a ; b ; timeout(5 min) unless c keep last bind latest having b.n > a.n\n"
        "{ case true: push new Out {}; }\n"
    )

    out = " ".join(ensue("explain", path).out.split())

    assert "`a`, then `b`, then 5 min passing" in out
    assert "unless c `c` makes it forget all events that came before" in out
    assert "keep last after a trigger only the event that completed it is remembered" in out
    assert "having b.n > a.n asked at each match; if it is not true nothing happens" in out
    assert "bind latest ports stand for the events of the latest match" in out
