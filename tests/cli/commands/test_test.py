"""`ensue test`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Ensue

CASE = """
[[case]]
name = "NAME"
why = "an a is passed on"
library = '''
eventtype A {};
A correlation Rule (A a) a { case true: push a; }
'''
events = ["0 A", "1 A"]
outputs = ["1 A", "2 A"]
"""


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.toml"
    path.write_text(CASE.replace("NAME", "one") + CASE.replace("NAME", "two"))
    return path


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    path = tmp_path / "wrong.toml"
    path.write_text(CASE.replace("NAME", "three").replace('"2 A"]', '"3 A"]'))
    return path


def test_all_good(ensue: Ensue, good: Path) -> None:
    answer = ensue("test", good)

    assert (answer.code, answer.err) == (0, "")
    assert answer.out == "..\n\n2 passed, 0 failed\n"


def test_a_failure_shows_the_case_why_it_is_there_and_both_sides(
    ensue: Ensue, good: Path, wrong: Path
) -> None:
    answer = ensue("test", good, wrong)

    assert answer.code == 1
    assert answer.out == (
        "..F\n"
        "\n"
        f"FAILED {wrong}:three\n"
        "  an a is passed on\n"
        "\n"
        "  outputs:\n"
        "    expected  got\n"
        "    1 A       1 A\n"
        "  ! 3 A       2 A\n"
        "\n"
        "2 passed, 1 failed\n"
    )


def test_a_folder_stands_for_its_files(ensue: Ensue, good: Path, wrong: Path) -> None:
    assert ensue("test", good.parent).out.endswith("2 passed, 1 failed\n")


def test_verbose_names_every_case(ensue: Ensue, good: Path, wrong: Path) -> None:
    lines = ensue("test", good, wrong, "-v").out.splitlines()

    assert lines[:3] == [f"passed  {good}:one", f"passed  {good}:two", f"FAILED  {wrong}:three"]


def test_only_some_cases(ensue: Ensue, good: Path, wrong: Path) -> None:
    assert ensue("test", good, wrong, "-k", "o").out.endswith("2 passed, 0 failed\n")
    answer = ensue("test", good, "-k", "zzz")
    assert answer.code == 2
    assert "no case has `zzz` in its name" in answer.err


def test_unusable_files_are_all_told_at_once_and_the_good_ones_run(
    ensue: Ensue, good: Path, tmp_path: Path
) -> None:
    broken, empty = tmp_path / "broken.toml", tmp_path / "empty.toml"
    broken.write_text("[[case]]\nname = 'x'\n")
    empty.write_text("= 1")

    answer = ensue("test", good, broken, empty, tmp_path / "none.toml")

    assert (answer.code, answer.out) == (2, "..\n\n2 passed, 0 failed\n")
    assert f"{broken}:1: case `x`: `events` is missing" in answer.err
    assert f"{broken}:1: case `x`: `outputs` is missing" in answer.err
    assert f"{empty}:1:1: no TOML" in answer.err
    assert "none.toml: cannot be read: no such file or directory" in answer.err


def test_a_folder_without_cases_is_unusable(ensue: Ensue, tmp_path: Path) -> None:
    answer = ensue("test", tmp_path)

    assert answer.code == 2
    assert "has no case file" in answer.err


def test_an_engine_that_is_not_there(ensue: Ensue, good: Path) -> None:
    assert ensue("test", good, "--engine", "steam").code == 2


def test_where_nothing_came_it_says_why(ensue: Ensue, tmp_path: Path) -> None:
    path = tmp_path / "silent.toml"
    path.write_text(
        """
[[case]]
name = "silent"
why = "a then b"
library = '''
eventtype A {}; eventtype B {}; eventtype C {}; eventtype O {};
O correlation Rule (A a, B b) l:(a ; b) by user { case l: push new O {}; }
O correlation Other (A a, B b) l:(a ; b) { case l: push new O {}; }
'''
events = ["0 A", "1 C"]
outputs = ["2 O l"]
"""
    )

    answer = ensue("test", path)

    assert answer.code == 1
    assert "no rule reads events of type `C`" in answer.out
    assert "`Rule` did not read 1 events, which have no key for it" in answer.out
    assert "`Other`: waits for `b`" in answer.out


RECORDED = """
[[case]]
name = "recorded"
why = "a log as it was written"
library = '''
eventtype Failed { attribute string user; };
eventtype Alarm { attribute string user; };
Alarm correlation Twice (Failed a, Failed b) l:(a ; b) by user {
    case l: push new Alarm { user = b.user };
}
'''
events_file = "log.csv"
columns = { time = "ts:ms", user = "who" }
type = "Failed"
outputs = ['log.csv:5 Alarm l {"user": "ann"}']
rejected = ["4"]
"""


def test_a_case_may_name_a_recorded_file_and_its_columns(ensue: Ensue, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("ts;who\n1000;ann\n2000;bob\nx;bob\n3000;ann\n")
    path = tmp_path / "recorded.toml"
    path.write_text(RECORDED)

    for engine in ("step", "batch", "reference"):
        answer = ensue("test", path, "--engine", engine)
        assert (answer.code, answer.out) == (0, ".\n\n1 passed, 0 failed\n")


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("log.csv", "none.csv", "there is no file `"),
        ('time = "ts:ms"', 'time = "ts:days"', "`ts:days`"),
        ('time = "ts:ms"', 'time = "when"', "`when`"),
        ('type = "Failed"', 'events = ["0 A"]', "give either `events` or `events_file`"),
        ('type = "Failed"', 'timezone = "Mars"', "there is no time zone `Mars`"),
        ('events_file = "log.csv"', 'events = ["0 A"]', "says how `events_file` is read"),
    ],
)
def test_what_is_wrong_with_a_recorded_file_is_said(
    ensue: Ensue, tmp_path: Path, old: str, new: str, problem: str
) -> None:
    (tmp_path / "log.csv").write_text("ts;who\n1000;ann\n")
    path = tmp_path / "recorded.toml"
    path.write_text(RECORDED.replace(old, new))

    answer = ensue("test", path)

    assert answer.code in (1, 2)
    assert problem in answer.out + answer.err


LIMITED = """
[[case]]
name = "limited"
why = "as many as the parameter says"
parameters = { limit = 1 }
library = '''
parameter long limit = 3;
eventtype A {};
A correlation Rule (A a) a{limit} { case true: push a; }
'''
events = ["0 A", "1 A"]
outputs = ["1 A", "2 A"]
"""


def test_a_parameter_can_be_set_for_the_cases_that_have_it(ensue: Ensue, tmp_path: Path) -> None:
    """What `--set` gives goes before what a case gives, and a library without it is left alone."""
    path = tmp_path / "cases.toml"
    path.write_text(CASE.replace("NAME", "other") + LIMITED)

    assert ensue("test", path).code == 0
    answer = ensue("test", path, "--set", "limit=2")
    assert answer.code == 1
    assert answer.out.startswith(".F\n")
    assert "1 passed, 1 failed" in answer.out


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("limmit=2", "no library of the cases has a parameter `limmit`; did you mean `limit`?"),
        ("limit=many", "`many` does not fit parameter `limit`, a `long`"),
    ],
)
def test_a_parameter_that_is_none_is_told(
    ensue: Ensue, tmp_path: Path, setting: str, problem: str
) -> None:
    path = tmp_path / "cases.toml"
    path.write_text(LIMITED)

    answer = ensue("test", path, "--set", setting)

    assert answer.code == 2
    assert problem in answer.err
