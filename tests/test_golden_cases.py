"""Every golden case of `cases/`, and of the examples, one test each, through every engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from ensue.casefile import Case, find_case_files, read_cases, render, run_case
from ensue.engine.choosing import ENGINES
from ensue.errors import CaseError

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"


def golden_cases() -> Iterator[ParameterSet]:
    """A file that cannot be used becomes one failing test, so that the others still run."""
    for file in [*find_case_files(ROOT / "cases"), *sorted(EXAMPLES.glob("*/cases.toml"))]:
        place = Path(*file.relative_to(ROOT).parts[1:]).with_suffix("")
        try:
            for case in read_cases(file):
                yield pytest.param(case, id=f"{place}:{case.name}")
        except CaseError as error:
            yield pytest.param(error, id=str(place))


@pytest.mark.parametrize("engine", list(ENGINES))
@pytest.mark.parametrize("case", list(golden_cases()))
def test_golden_case(case: Case | CaseError, engine: str) -> None:
    if isinstance(case, CaseError):
        pytest.fail(str(case), pytrace=False)
    result = run_case(case, engine)

    if not result.passed:
        pytest.fail("\n".join(render(result)), pytrace=False)
