"""`ensue check`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Ensue


def test_a_good_library_is_good(ensue: Ensue, rules: Path) -> None:
    answer = ensue("check", rules)

    assert (answer.code, answer.err) == (0, "")
    assert answer.out == "good: 5 event types, 2 correlations\n"


def test_every_error_is_shown_with_its_place_its_line_and_a_caret(
    ensue: Ensue, tmp_path: Path
) -> None:
    path = tmp_path / "bad.cor"
    path.write_text(
        "eventtype A {};\nA correlation X (A a, Bb b)\n    a ; c\n{ case true: push a; }\n"
    )

    answer = ensue("check", path)

    assert answer.code == 1
    assert f"{path}:2:23: error: there is no event type `Bb`" in answer.out
    assert "  2 | A correlation X (A a, Bb b)\n    |                       ^^\n" in answer.out
    assert f"{path}:3:9: error: there is no port `c`" in answer.out
    assert answer.out.endswith("2 errors in 1 file\n")
    assert answer.err == ""


def test_warnings_alone_are_good(ensue: Ensue, tmp_path: Path) -> None:
    path = tmp_path / "odd.cor"
    path.write_text("eventtype A {};\nA correlation X (A a) unused:a { case true: push a; }\n")

    answer = ensue("check", path)

    assert answer.code == 0
    assert "warning:" in answer.out
    assert "1 warning in 1 file\n" in answer.out


def test_several_files_form_one_library(ensue: Ensue, tmp_path: Path) -> None:
    types, rules = tmp_path / "types.cor", tmp_path / "rules.cor"
    types.write_text("eventtype A {};")
    rules.write_text("A correlation X (A a) a { case true: push a; }")

    assert ensue("check", types, rules).code == 0
    assert ensue("check", rules).code == 1


def test_a_folder_is_all_libraries_in_it(ensue: Ensue, tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "types.cor").write_text("eventtype A {};")
    (tmp_path / "rules.cor").write_text("A correlation X (A a) a { case true: push a; }")

    assert ensue("check", tmp_path).out == "good: 1 event type, 1 correlation\n"


def test_a_folder_without_a_library_is_no_library(ensue: Ensue, tmp_path: Path) -> None:
    answer = ensue("check", tmp_path)

    assert answer.code == 2
    assert f"there is no library (*.cor) in the folder `{tmp_path}`" in answer.err


def test_an_attribute_that_no_key_of_an_ecl_fills_is_an_error_of_check_alone(
    ensue: Ensue, tmp_path: Path
) -> None:
    path = tmp_path / "rules.cor"
    path.write_text("eventtype A { attribute long n; };\nA ecl X (A a) { notify { a } }\n")
    events = tmp_path / "events.jsonl"
    event = {"id": "1", "source": "s", "type": "A", "time": "2024-05-06T07:00:00Z"}
    events.write_text(json.dumps(event | {"data": {"n": 1}}) + "\n")

    answer = ensue("check", path)

    assert answer.code == 1
    assert "error: `A` declares `n`, and an ECL expression carries no data" in answer.out
    assert answer.out.endswith("1 error in 1 file\n")
    assert ensue("run", path, "--events", events).code == 0


def test_errors_in_two_files_name_both(ensue: Ensue, tmp_path: Path) -> None:
    one, two = tmp_path / "one.cor", tmp_path / "two.cor"
    one.write_text("eventtype A : B {};")
    two.write_text("eventtype C : D {};")

    answer = ensue("check", one, two)

    assert f"{one}:1:15: error" in answer.out
    assert f"{two}:1:15: error" in answer.out
    assert "2 errors in 2 files" in answer.out


def test_files_that_are_not_there_are_all_named(ensue: Ensue, rules: Path, tmp_path: Path) -> None:
    answer = ensue("check", tmp_path / "x.cor", rules, tmp_path / "y.cor")

    assert answer.code == 2
    assert "x.cor" in answer.err
    assert "y.cor" in answer.err
    assert answer.out == ""


def test_bytes_that_are_no_text_are_a_finding(ensue: Ensue, tmp_path: Path) -> None:
    path = tmp_path / "latin.cor"
    path.write_bytes(b"eventtype A {}; // caf\xe9\n")

    answer = ensue("check", path)

    assert answer.code == 1
    assert f"{path}:1:" in answer.out
    assert "UTF-8" in answer.out


def test_control_characters_of_a_file_do_not_reach_the_terminal(
    ensue: Ensue, tmp_path: Path
) -> None:
    path = tmp_path / "red.cor"
    path.write_text("eventtype A {}; \x1b[31m \x9b1m\n")

    answer = ensue("check", path)

    assert answer.code == 1
    assert "\x1b" not in answer.out
    assert "\x9b" not in answer.out


def test_ten_thousand_brackets_get_an_answer(ensue: Ensue, tmp_path: Path) -> None:
    path = tmp_path / "deep.cor"
    path.write_text(
        f"eventtype A {{}};\nA correlation X (A a) {'(' * 10_000}a{')' * 10_000} {{}}\n"
    )

    answer = ensue("check", path)

    assert answer.code == 1
    assert "error: " in answer.out
    assert len(answer.out) < 5_000


def test_analyses_that_do_not_end_by_the_deadline_are_named(ensue: Ensue, rules: Path) -> None:
    answer = ensue("check", rules, "--deadline", "1ms")

    assert answer.code == 0
    assert "[analysis-deadline]" in answer.out
    assert "did not end: 0.001 s were allowed for all" in answer.out


def test_a_deadline_that_is_no_duration_is_refused(ensue: Ensue, rules: Path) -> None:
    answer = ensue("check", rules, "--deadline", "soon")

    assert answer.code == 2
    assert "`--deadline`" in answer.err


def test_levels_of_inheritance_past_the_limit_are_refused(ensue: Ensue, tmp_path: Path) -> None:
    path = tmp_path / "deep.cor"
    lines = ["eventtype T0 {};"] + [f"eventtype T{n} : T{n - 1} {{}};" for n in range(1, 1_001)]
    path.write_text("\n".join(lines[:-1]))
    assert ensue("check", path).code == 0

    path.write_text("\n".join(lines))
    answer = ensue("check", path)

    assert answer.code == 1
    assert f"{path}:1001:19: error: there are 1,001 levels of event types" in answer.out
    assert "[limit-levels]" in answer.out


def test_a_hint_is_given_once_a_line(ensue: Ensue, tmp_path: Path) -> None:
    file = tmp_path / "rules.cor"
    file.write_text(
        "eventtype A { attribute long x; };\n"
        "A correlation R (A a where x > 1) a { case true: push new B {}; push new B {}; }\n"
        "A correlation S (A a where x > 2) a { case true: push new B {}; }\n"
    )

    answer = ensue("check", file)

    assert answer.out.count("there is no event type `B`") == 3
    assert answer.out.count("= known: `A`") == 2


def test_what_fires_at_every_event_it_reads_is_named(ensue: Ensue, tmp_path: Path) -> None:
    """What asks for more than an event of a port; sending events on is said by a port."""
    path = tmp_path / "trivial.cor"
    path.write_text(
        "eventtype O {}; eventtype P {}; eventtype A { attribute long n; };\n"
        "O ecl One (A a) { repeat { notify { true } } }\n"
        "P ecl Two (A a) { repeat { notify { a } } }\n"
        "O ecl Three (A a where n > 3) { repeat { notify { <n > 2> } } }\n"
        "O correlation Four (A a, A b) a + (a | b) { case true: push new O {}; }\n"
        "P correlation Five (A b where n > 3) b { case true: push new P {}; }\n"
    )

    answer = ensue("check", path)
    lines = [line for line in answer.out.splitlines() if "[fires-on-everything]" in line]

    assert ["`One`" in lines[0], "`Three`" in lines[1], "`Four`" in lines[2]] == [True] * 3
    assert len(lines) == 3


@pytest.mark.parametrize(
    ("port", "rule", "is_told"),
    [
        ("A a", "a having count(a) >= 1", True),
        ("A a", "a within 5 s having count(a) > 0", True),
        ("A a", "a having count(a) >= 2", False),
        ("A a", "a having count(a) >= 1 AND a.n > 3", False),
        ("A a, A b where n > 3", "a | b having count(b) >= 1", False),
        ("A a, A b", "a | b having count(a) >= 0", True),
        ("A a where TRUE OR n > 3", "a", True),
        # Where `n` is missing, this meets a null before it comes to the `TRUE`.
        ("A a where n > 3 OR TRUE", "a", False),
        ("A a where n IS NULL OR n IS NOT NULL", "a", True),
        ("A a where id IS NOT NULL", "a", True),
        ("A a where s IS NULL OR s = 'x' OR s != 'x'", "a", True),
        ("A a where n IS NULL", "a", False),
        ("A a where zzz IS NULL", "a", False),
        ("A a where n > 3 OR n <= 3", "a", False),
    ],
)
def test_a_condition_that_always_holds_makes_a_rule_that_fires_on_everything(
    ensue: Ensue, tmp_path: Path, port: str, rule: str, is_told: bool
) -> None:
    path = tmp_path / "rules.cor"
    path.write_text(
        "eventtype A { attribute long n; attribute string s; };\neventtype O {};\n"
        f"O correlation One ({port}) {rule} {{ case true: push new O {{}}; }}\n"
    )

    assert ("[fires-on-everything]" in ensue("check", path).out) == is_told
