"""The oracle passes the golden cases: it reads the definitions as the cases do.

Rules that relate several events are the business of the other oracle, see `values`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ensue
from ensue.casefile.case import Case
from ensue.casefile.reading import find_case_files, read_cases
from ensue.errors import EventError
from ensue.events.cloudevents import decode
from ensue.events.conformance import conform
from ensue.events.event import Event
from ensue.lang.derived.relating import relates_events

from . import oracle

CASES = Path(__file__).parents[2] / "cases"


def library_of(case: Case) -> ensue.Library:
    text, values = case.library, case.parameters
    read = ensue.parse if isinstance(text, str) else ensue.load
    return read(text, parameters=values)  # type: ignore[arg-type]


def judged_cases() -> list[Case]:
    """The cases that run, without those of the other oracle."""
    cases = [case for file in find_case_files(CASES) for case in read_cases(file)]
    return [
        case
        for case in cases
        if not case.expected.errors
        and not any(map(relates_events, library_of(case).checked.correlations))
    ]


@pytest.mark.parametrize("case", judged_cases(), ids=lambda case: f"{case.file.stem}-{case.name}")
def test_the_oracle_passes_the_golden_case(case: Case) -> None:
    """Outputs and late events are what the case expects."""
    library = library_of(case)
    events: list[Event] = []
    for members in case.events:
        try:
            events.append(conform(decode(json.dumps(members)), library.checked.types))
        except EventError:
            assert str(members["id"]) in case.expected.rejected

    result = oracle.run(
        library.checked.tree,
        library.checked.types,
        events,
        lateness=case.lateness,
        until=case.until,
    )

    expected = case.expected.outputs
    assert [each.id for each in result.late] == list(case.expected.late)
    assert len(result.outputs) == len(expected), result.outputs
    for wanted, output in zip(expected, result.outputs, strict=True):
        assert wanted.is_met_by(output), f"wanted {wanted}, got {output}"
