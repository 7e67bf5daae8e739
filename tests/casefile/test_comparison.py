"""Running a case and comparing what comes."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from ensue.casefile import CaseResult, read_cases, render, run_case
from ensue.errors import UsageError

LIBRARY = """
library = '''
eventtype A { attribute long x; };
eventtype Out { attribute long x; };
Out correlation Rule (A a)
    l1:a
    by x
{
    case l1: push new Out { x = a.x };
}
'''
"""


def run(folder: Path, body: str, library: str = LIBRARY) -> CaseResult:
    path = folder / "cases.toml"
    path.write_text(f'[[case]]\nname = "it"\nwhy = "a reason"\n{library}{dedent(body)}')
    (case,) = read_cases(path)
    return run_case(case)


def rows_of(result: CaseResult, what: str) -> list[tuple[str | None, str | None]]:
    (difference,) = [each for each in result.differences if each.what == what]
    return [(row.expected, row.got) for row in difference.rows]


def test_a_case_passes_if_outputs_agree_in_order_and_number(tmp_path: Path) -> None:
    result = run(
        tmp_path,
        """
        events = ['0 A {"x": 1}', '1 A {"x": 2}']
        outputs = ['1 Out l1', '2 Out l1 {"x": 2}']
        """,
    )

    assert result.passed


def test_a_table_compares_only_the_fields_that_it_gives(tmp_path: Path) -> None:
    body = """
        events = ['0 A {"x": 1}']
        outputs = [{ key = "1", causes = "1", correlation = "Rule", time = 0 }]
        """

    assert run(tmp_path, body).passed
    assert not run(tmp_path, body.replace('key = "1"', 'key = "2"')).passed


@pytest.mark.parametrize(
    "data", ['{"x": 2}', '{"x": true}', "{}", '{"x": 1, "y": 1}', '{"x": "1"}']
)
def test_data_must_be_the_same_as_a_whole(tmp_path: Path, data: str) -> None:
    body = """
        events = ['0 A {"x": 1}']
        outputs = ['1 Out l1 DATA']
        """

    assert run(tmp_path, body.replace("DATA", '{"x": 1.0}')).passed
    assert not run(tmp_path, body.replace("DATA", data)).passed


def test_missing_and_unexpected_outputs_stand_in_their_places(tmp_path: Path) -> None:
    result = run(
        tmp_path,
        """
        events = ['0 A {"x": 1}', '1 A {"x": 2}', '2 A {"x": 3}']
        outputs = ['1 Out l1', '3 Out l1', '4 Out l1']
        """,
    )

    assert rows_of(result, "outputs") == [
        ("1 Out l1", "1 Out l1"),
        (None, "2 Out l1"),
        ("3 Out l1", "3 Out l1"),
        ("4 Out l1", None),
    ]


def test_events_are_read_by_time_unless_there_is_a_lateness(tmp_path: Path) -> None:
    body = """
        events = ['5 A {"x": 1}', '0 A {"x": 2}']
        """

    assert run(tmp_path, body + 'outputs = ["2 Out l1", "1 Out l1"]').passed
    assert run(tmp_path, body + 'outputs = ["1 Out l1"]\nlateness = "1 s"\nlate = ["2"]').passed


def test_late_events_that_the_case_does_not_name_are_a_difference(tmp_path: Path) -> None:
    result = run(
        tmp_path,
        """
        events = ['5 A {"x": 1}', '0 A {"x": 2}']
        outputs = ['1 Out l1']
        lateness = '1 s'
        """,
    )

    assert rows_of(result, "late") == [(None, "2")]


def test_a_refused_event_must_be_expected_and_its_reason_is_shown(tmp_path: Path) -> None:
    body = """
        events = ['0 A {"x": "one"}', '1 A {"x": {}}', { id = "t", time = "never", type = "A" }]
        outputs = []
        """

    assert run(tmp_path, body + 'rejected = ["1", "2", "t"]').passed
    shown = "\n".join(render(run(tmp_path, body)))
    assert "event 1 was refused: attribute `x` of `A`" in shown
    assert "event t was refused: `time`" in shown


def test_expected_errors_are_compared_by_code_and_by_place_if_given(tmp_path: Path) -> None:
    library = "library = 'A correlation X (B b) b {}'\n"
    codes = [row[1] for row in rows_of(run(tmp_path, "events=[]\noutputs=[]", library), "errors")]

    by_place = ", ".join(f'"{code}"' for code in codes)
    by_code = ", ".join(f'"{str(code).split()[1]}"' for code in codes)

    assert run(tmp_path, f"errors = [{by_place}]", library).passed
    assert run(tmp_path, f"errors = [{by_code}]", library).passed
    assert not run(tmp_path, f'errors = [{by_place}, "unknown-port"]', library).passed


def test_errors_that_do_not_come_are_a_difference(tmp_path: Path) -> None:
    assert rows_of(run(tmp_path, 'errors = ["unknown-port"]'), "errors") == [("unknown-port", None)]


def test_a_library_with_unexpected_errors_shows_them(tmp_path: Path) -> None:
    result = run(tmp_path, "events=[]\noutputs=[]", "library = 'eventtype A : B {};'\n")

    assert "eventtype A : B {};" in "\n".join(render(result))


def test_warnings_are_exact_if_they_are_given(tmp_path: Path) -> None:
    library = LIBRARY.replace("case l1", "case true")
    result = run(tmp_path, "events=[]\noutputs=[]\nwarnings=[]", library)

    assert not result.passed
    assert run(tmp_path, "events=[]\noutputs=[]", library).passed
    found = [f'"{got}"' for _, got in rows_of(result, "warnings")]
    assert run(tmp_path, f"events=[]\noutputs=[]\nwarnings=[{','.join(found)}]", library).passed


def test_until_lets_the_clock_go_on(tmp_path: Path) -> None:
    library = LIBRARY.replace("(A a)", "(A a, every 2 s tick)").replace("l1:a", "l1:tick")
    events = """events = ['0 A {"x": 1}']\n"""

    assert run(tmp_path, events + "outputs = []", library).passed
    assert run(
        tmp_path, events + 'until = 4\noutputs = ["timer@2 Out l1", "timer@4 Out l1"]', library
    ).passed


def test_an_engine_that_is_not_there_is_a_mistake_of_the_call(tmp_path: Path) -> None:
    result = run(tmp_path, "events=[]\noutputs=[]")

    with pytest.raises(UsageError, match="no engine"):
        run_case(result.case, "steam")


def test_short_rows_stand_side_by_side_and_long_ones_below_each_other(tmp_path: Path) -> None:
    result = run(tmp_path, """events = ['0 A {"x": 1}']\noutputs = ['1 Out l2']""")

    assert "  ! 1 Out l2  1 Out l1" in render(result)
    assert render(result, width=20)[-2:] == ["  ! expected  1 Out l2", "    got       1 Out l1"]


def test_a_long_stretch_of_agreement_is_cut(tmp_path: Path) -> None:
    events = ", ".join(f"""'{n} A {{"x": 1}}'""" for n in range(20))
    outputs = ", ".join(f"'{n} Out l1'" for n in range(1, 20))

    lines = render(run(tmp_path, f"events = [{events}]\noutputs = [{outputs}]"))

    assert "    ... 13 more that agree" in lines
    assert "  + (nothing)  20 Out l1" in lines
