"""From a TOML file to cases, or to everything that is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ensue.casefile import Case, find_case_files, read_cases
from ensue.errors import CaseError

GOOD = """
[[case]]
name = "one"
why = "it is there"
library = "eventtype A {};"
events = ["0 A"]
outputs = []
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "cases.toml"
    path.write_text(text, "utf-8")
    return path


def read_one(folder: Path, more: str) -> Case:
    (case,) = read_cases(write(folder, GOOD + more))
    return case


def problems_of(folder: Path, text: str) -> list[str]:
    with pytest.raises(CaseError) as caught:
        read_cases(write(folder, text))
    return str(caught.value).splitlines()


def test_events_are_numbered_from_1_and_come_from_the_case(tmp_path: Path) -> None:
    text = GOOD.replace('["0 A"]', '["0 A", "1 A from x", { time = 2, type = "A", id = "z" }]')

    (case,) = read_cases(write(tmp_path, text))

    assert [(event["id"], event["source"]) for event in case.events] == [
        ("1", "case"),
        ("2", "x"),
        ("z", "case"),
    ]


def test_a_table_gives_every_attribute_of_an_event(tmp_path: Path) -> None:
    data = "{ x = 1.5, t = 2024-01-01T00:00:00Z }"
    table = f'{{ time = 0.1, type = "A", subject = "s", tier = 2, data = {data} }}'

    (case,) = read_cases(write(tmp_path, GOOD.replace('"0 A"', table)))

    assert case.events[0] == {
        "id": "1",
        "source": "case",
        "type": "A",
        "time": "1970-01-01T00:00:00.1Z",
        "subject": "s",
        "tier": 2,
        "data": {"x": 1.5, "t": "2024-01-01T00:00:00Z"},
    }


def test_options_are_read(tmp_path: Path) -> None:
    case = read_one(tmp_path, 'until = 7.5\nlateness = "5 s"\nlate = ["1"]\nrejected = [2]\n')

    assert (case.until, case.lateness) == (7_500_000, 5_000_000)
    assert (case.expected.late, case.expected.rejected) == (("1",), ("2",))


def test_warnings_are_compared_only_if_they_are_given(tmp_path: Path) -> None:
    assert read_one(tmp_path, "").expected.warnings is None
    assert read_one(tmp_path, "warnings = []").expected.warnings == ()


def test_a_case_about_errors_needs_neither_events_nor_outputs(tmp_path: Path) -> None:
    text = '[[case]]\nname = "e"\nwhy = "w"\nlibrary = "x"\nerrors = ["1:1 syntax"]\n'

    (case,) = read_cases(write(tmp_path, text))

    assert [str(each) for each in case.expected.errors] == ["1:1 syntax"]


def test_a_library_file_is_found_beside_the_case_file(tmp_path: Path) -> None:
    (tmp_path / "rules.cor").write_text("eventtype A {};")
    text = GOOD.replace('library = "eventtype A {};"', 'library_file = "rules.cor"')

    (case,) = read_cases(write(tmp_path, text))

    assert case.library == tmp_path / "rules.cor"


def test_all_problems_of_a_file_are_told_at_once_each_with_the_line_of_its_case(
    tmp_path: Path,
) -> None:
    text = (
        GOOD
        + """
[[case]]
name = "Two"
library = "eventtype A {};"
library_file = "nowhere.cor"
evnts = []
events = ["now A", 7]
outputs = ["4"]
until = "soon"
lateness = 5
late = "1"
warnings = ["?"]
"""
    )

    problems = problems_of(tmp_path, text)

    assert all("cases.toml:9: case `Two`: " in problem for problem in problems)
    complaints = "\n".join(problems)
    for part in (
        "either `library`",
        "unknown key `evnts`; did you mean `events`?",
        "event 1: `now` is no time",
        "event 2: an event is a text or a table",
        "output 1: `4` is no output",
        "`until`: `soon` is no time",
        "`lateness`: a duration is a text",
        "`late` must be a list",
        "`warnings`: `?` is no finding",
    ):
        assert part in complaints


def test_a_name_is_any_text_and_a_reason_may_be_left_out(tmp_path: Path) -> None:
    path = tmp_path / "cases.toml"
    path.write_text(GOOD.replace('"one"', '"Number One"').replace("why", "# why"))

    (case,) = read_cases(path)

    assert (case.name, case.why) == ("Number One", "")


def test_a_file_says_once_how_the_files_of_all_its_cases_are_read(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("ts,kind\n0,A\n")
    cases = "".join(
        f"[[case]]\nname = '{name}'\nlibrary = ''\nevents_file = '{name}.csv'\noutputs = []\n"
        for name in "ab"
    )
    path = tmp_path / "cases.toml"
    path.write_text(
        f"[columns]\ntime = 'ts:s'\ntype = 'kind'\n{cases}columns = {{ time = 'ts' }}\n"
    )

    first, second = read_cases(path)

    assert first.recorded is not None
    assert second.recorded is not None
    assert sorted(first.recorded.mapping.columns) == ["time", "type"]
    assert sorted(second.recorded.mapping.columns) == ["time"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("x = [", "no TOML"),
        ("", "holds no case"),
        ("case = 3", "array of tables"),
        ("[cases]\na = 1", "unknown key `cases`"),
        (GOOD + GOOD, "two cases are named `one`"),
        (GOOD.replace("events", "#"), "`events` is missing"),
        (GOOD.replace("[]", '[{ color = "x" }]'), "unknown field `color`"),
        (GOOD.replace("[]", "[{}]"), "asks for nothing"),
        (GOOD.replace('"0 A"', "{ time = 2024-01-01 }"), "no offset or no date"),
        (GOOD.replace('"0 A"', "{ time = 0, data = { x = nan } }"), "JSON has no number"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(tmp_path: Path, text: str, complaint: str) -> None:
    assert complaint in "\n".join(problems_of(tmp_path, text))


def test_bad_toml_is_placed_by_line_and_column(tmp_path: Path) -> None:
    (problem,) = problems_of(tmp_path, "a = 1\nb = ?\n")

    assert f"{tmp_path / 'cases.toml'}:2:5: no TOML" in problem


def test_a_file_that_is_no_utf_8_says_on_which_line(tmp_path: Path) -> None:
    path = tmp_path / "cases.toml"
    path.write_bytes(b"# fine\n# \xff\n")

    with pytest.raises(CaseError, match=r":2: the file is not UTF-8"):
        read_cases(path)


def test_a_missing_file_is_an_error_of_the_case_files(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match="no such file"):
        read_cases(tmp_path / "none.toml")


def test_a_folder_stands_for_all_case_files_below_it(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    for name in ("z.toml", "b/a.toml", "note.txt"):
        (tmp_path / name).write_text("")

    assert find_case_files(tmp_path) == [tmp_path / "b/a.toml", tmp_path / "z.toml"]
