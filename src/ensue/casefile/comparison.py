"""Runs a golden case and compares the results with the expected ones.

In comes a `Case` and the name of an engine; out goes a `CaseResult`. Each kind of result (findings
of the checker, refused events, late events, outputs) is compared by itself, so that all differences
are found. `rendering` shows them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ensue.casefile.case import Case, ExpectedFinding, observed_fields, output_text
from ensue.engine.run import Run, run_bounded
from ensue.errors import EventError, LibraryError, UsageError
from ensue.events.cloudevents import decode
from ensue.events.conformance import conform
from ensue.events.event import Event
from ensue.events.records.reading import read_inputs
from ensue.events.sources.inputs import inputs_of
from ensue.events.types import TypeSystem
from ensue.lang.derived.wanted import types_read
from ensue.lang.diagnostics import Diagnostic
from ensue.lang.expressions.binding import BindingOntology
from ensue.library import Library, load, parse

MOST_EXPLAINED = 3
MOST_EVENTS_EXPLAINED = 10_000
"""Reasons are found by the reference engine, which is too slow for more events."""

Wanted = TypeVar("Wanted")
Found = TypeVar("Found")


@dataclass(frozen=True)
class ComparisonRow:
    """A line of a comparison: the expected and the actual text; None if one side has none."""

    expected: str | None
    got: str | None
    same: bool


@dataclass(frozen=True)
class Difference:
    """A difference of one kind. `notes` has reasons of refusals and messages of findings."""

    what: str
    rows: tuple[ComparisonRow, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class CaseResult:
    case: Case
    differences: tuple[Difference, ...] = ()

    @property
    def passed(self) -> bool:
        return not self.differences


def run_case(
    case: Case, engine: str = "auto", ontology: BindingOntology | None = None
) -> CaseResult:
    """Run a case. Its predicates may use the ontology.

    Raises `UsageError` for an unknown engine; every other problem is part of the result.
    """
    library, found = _load(case, ontology)
    errors = [each for each in found if each.severity == "error"]
    warnings = [each for each in found if each.severity == "warning"]
    differences = [_compare_findings("errors", case.expected.errors, errors)]
    if case.expected.warnings is not None:
        differences.append(_compare_findings("warnings", case.expected.warnings, warnings))
    if library is not None and not case.expected.errors:
        differences += _compare_run(case, library, engine)
    return CaseResult(case, tuple(each for each in differences if each is not None))


def _load(
    case: Case, ontology: BindingOntology | None
) -> tuple[Library | None, Sequence[Diagnostic]]:
    try:
        if isinstance(case.library, str):
            library = parse(case.library, case.name, ontology, case.parameters)
        else:
            library = load(case.library, ontology=ontology, parameters=case.parameters)
    except LibraryError as error:
        return None, error.diagnostics
    return library, library.warnings


def _compare_findings(
    what: str, expected: Sequence[ExpectedFinding], found: Sequence[Diagnostic]
) -> Difference | None:
    def shown(finding: Diagnostic) -> str:
        return f"{finding.line}:{finding.column} {finding.code}"

    rows = compare(expected, found, ExpectedFinding.is_met_by, str, lambda _, each: shown(each))
    unexpected = {row.got for row in rows if not row.same}
    notes = tuple(str(each) for each in found if shown(each) in unexpected)
    return _difference(what, rows, notes)


def _compare_run(case: Case, library: Library, engine: str) -> list[Difference | None]:
    try:
        accepted, refused = case_events(case, library.checked.types)
    except UsageError as error:
        # The columns of a recorded file cannot be read as events.
        return [
            Difference(
                "events", (ComparisonRow(None, "none that could be read", False),), (str(error),)
            )
        ]
    run = Run(library.checked, engine, case.lateness or 0)
    outputs = list(run_bounded(run, accepted, sort=case.lateness is None, until=case.until))
    expected = case.expected
    reasons = tuple(
        f"event {each} was refused: {why}"
        for each, why in refused.items()
        if each not in expected.rejected
    )
    return [
        _compare_ids("rejected", expected.rejected, list(refused), reasons),
        _compare_ids("late", expected.late, [event.id for event in run.late]),
        _compare_outputs(case, outputs, lambda: why_nothing_came(case, library, accepted, outputs)),
    ]


def case_events(case: Case, types: TypeSystem) -> tuple[list[Event], dict[str, str]]:
    """The events of a case that fit their types, and the reasons of refused events by their ids.

    The id of a refused record of a file is its number there. Raises `UsageError` for a file that
    cannot be read at all.
    """
    accepted: list[Event] = []
    refused: dict[str, str] = {}
    for members in case.events:
        try:
            accepted.append(conform(decode(json.dumps(members)), types))
        except EventError as error:
            refused[str(members["id"])] = str(error)
    if case.recorded is not None:
        inputs = inputs_of(case.recorded.paths, case.recorded.given)
        for record in read_inputs(inputs, types, mapping=case.recorded.mapping):
            if isinstance(record, Event):
                accepted.append(record)
            else:
                refused[str(record.number)] = "; ".join(record.problems)
    return accepted, refused


def _compare_ids(
    what: str, expected: Sequence[str], found: Sequence[str], notes: tuple[str, ...] = ()
) -> Difference | None:
    def is_met(wanted: str, got: str) -> bool:
        return wanted == got

    return _difference(what, compare(expected, found, is_met, str, lambda _, each: each), notes)


def _compare_outputs(
    case: Case, outputs: Sequence[Event], why_not: Callable[[], tuple[str, ...]]
) -> Difference | None:
    plain = {"trigger": True, "type": True, "labels": True}

    def shown(wanted: Any, output: Event) -> str:
        fields = observed_fields(output)
        asked = dict(plain if wanted is None else wanted.fields)
        if fields["trigger"] == "timer":
            asked["time"] = True
        return output_text(fields, asked)

    rows = compare(
        case.expected.outputs,
        outputs,
        lambda wanted, output: wanted.is_met_by(output),
        str,
        shown,
    )
    missing = any(row.got is None for row in rows)
    return _difference("outputs", rows, why_not() if missing else ())


def why_nothing_came(
    case: Case, library: Library, events: Sequence[Event], outputs: Sequence[Event]
) -> tuple[str, ...]:
    """Reasons why rules without an output have none, by the reference engine."""
    read = types_read(library.checked)
    unread = sorted({event.type for event in events} - read)
    notes = [f"no rule reads events of type `{name}`" for name in unread[:MOST_EXPLAINED]]
    due = [each.fields.get("time") for each in case.expected.outputs]
    last = max((event.time for event in events), default=None)
    if case.until is None and last is not None and any(each and each > last for each in due):
        latest = max(each for each in due if each) / 1_000_000
        notes.append(
            f"the clock stands at the last event: `until = {latest:g}` lets it go on to the timer"
        )
    fired = {output.extensions.get("correlation") for output in outputs}
    silent = [each.name for each in library.correlations if each.name not in fired]
    if not silent or len(events) > MOST_EVENTS_EXPLAINED:
        return tuple(notes)
    run = Run(library.checked, "reference", case.lateness or 0, explain=True)
    for _ in run_bounded(run, events, sort=case.lateness is None, until=case.until):
        pass
    for name in silent[:MOST_EXPLAINED]:
        if count := run.counts.without_key[name]:
            notes.append(f"`{name}` did not read {count:,} events, which have no key for it")
        notes += [str(each) for each in run.nearest(name, 1) or [run.why(name)]]
    return tuple(notes)


def _difference(
    what: str, rows: Sequence[ComparisonRow], notes: tuple[str, ...] = ()
) -> Difference | None:
    if all(row.same for row in rows):
        return None
    return Difference(what, tuple(rows), notes)


def compare(
    expected: Sequence[Wanted],
    found: Sequence[Found],
    is_met: Callable[[Wanted, Found], bool],
    show_expected: Callable[[Wanted], str],
    show_found: Callable[[Wanted | None, Found], str],
) -> list[ComparisonRow]:
    """Both sequences side by side, aligned by a longest common subsequence.

    `show_found` also gets the expected item of its row, so that both show the same fields.
    """
    rows: list[ComparisonRow] = []
    wanted_done = found_done = 0
    for wanted_at, found_at in [
        *_aligned(expected, found, is_met),
        (len(expected), len(found)),
    ]:
        left = expected[wanted_done:wanted_at]
        right = found[found_done:found_at]
        for place in range(max(len(left), len(right))):
            wanted = left[place] if place < len(left) else None
            rows.append(
                ComparisonRow(
                    None if wanted is None else show_expected(wanted),
                    show_found(wanted, right[place]) if place < len(right) else None,
                    same=False,
                )
            )
        if wanted_at < len(expected):
            wanted = expected[wanted_at]
            rows.append(
                ComparisonRow(show_expected(wanted), show_found(wanted, found[found_at]), same=True)
            )
        wanted_done, found_done = wanted_at + 1, found_at + 1
    return rows


# Beyond this many comparisons the best alignment takes too long.
_MOST_COMPARISONS = 1_000_000


def _aligned(
    expected: Sequence[Wanted], found: Sequence[Found], is_met: Callable[[Wanted, Found], bool]
) -> list[tuple[int, int]]:
    """Index pairs of a longest common subsequence; the equal beginning is taken as it is."""
    start = 0
    shortest = min(len(expected), len(found))
    while start < shortest and is_met(expected[start], found[start]):
        start += 1
    pairs = [(place, place) for place in range(start)]
    rows, columns = len(expected) - start, len(found) - start
    if rows * columns > _MOST_COMPARISONS:
        return pairs + [
            (place, place)
            for place in range(start, shortest)
            if is_met(expected[place], found[place])
        ]
    longest = [[0] * (columns + 1) for _ in range(rows + 1)]
    for row in range(rows - 1, -1, -1):
        for column in range(columns - 1, -1, -1):
            if is_met(expected[start + row], found[start + column]):
                longest[row][column] = longest[row + 1][column + 1] + 1
            else:
                longest[row][column] = max(longest[row + 1][column], longest[row][column + 1])
    row = column = 0
    while row < rows and column < columns:
        if is_met(expected[start + row], found[start + column]):
            pairs.append((start + row, start + column))
            row, column = row + 1, column + 1
        elif longest[row + 1][column] >= longest[row][column + 1]:
            row += 1
        else:
            column += 1
    return pairs
