"""A failed case as text: expected and actual results side by side.

In comes a `CaseResult`; out go plain lines of text that fit a width. Rows that are too long for two
columns are printed one below the other. The printer adds colour.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from ensue.casefile.comparison import CaseResult, ComparisonRow, Difference

SAME, DIFFERENT, MISSING, EXTRA = "  ", "! ", "- ", "+ "
"""The margin of a row: both sides agree; they differ; expected only; found only."""

_NOTHING = "(nothing)"
_MOST_SAME_ROWS = 3


def render(result: CaseResult, width: int = 80) -> list[str]:
    """The lines of a failed case: its name, its purpose, and each difference."""
    why = textwrap.wrap(result.case.why, width, initial_indent="  ", subsequent_indent="  ")
    lines = [str(result.case), *why]
    for difference in result.differences:
        lines += ["", *(f"  {line}" for line in _render_difference(difference, width - 2))]
    return lines


def _render_difference(difference: Difference, width: int) -> Iterator[str]:
    rows = difference.rows
    left = max(len("expected"), *(len(row.expected or _NOTHING) for row in rows))
    right = max(len("got"), *(len(row.got or _NOTHING) for row in rows))
    if left + right + len("  " * 3) <= width:
        yield f"{difference.what}:"
        yield f"  {'expected':{left}}  got"
        yield from _side_by_side(rows, left)
    else:
        yield f"{difference.what}:"
        yield from _stacked(rows)
    for note in difference.notes:
        yield from (f"  {line}" for line in note.splitlines())


def _side_by_side(rows: Sequence[ComparisonRow], left: int) -> Iterator[str]:
    for row in _shortened(rows):
        if isinstance(row, str):
            yield f"  {row}"
            continue
        line = f"{_margin(row)}{row.expected or _NOTHING:{left}}  {row.got or _NOTHING}"
        yield line.rstrip()


def _stacked(rows: Sequence[ComparisonRow]) -> Iterator[str]:
    for row in _shortened(rows):
        if isinstance(row, str):
            yield f"  {row}"
        elif row.same:
            yield f"{SAME}{row.expected}"
        else:
            yield f"{_margin(row)}expected  {row.expected or _NOTHING}"
            yield f"  got       {row.got or _NOTHING}"


def _margin(row: ComparisonRow) -> str:
    if row.same:
        return SAME
    if row.got is None:
        return MISSING
    return EXTRA if row.expected is None else DIFFERENT


def _shortened(rows: Sequence[ComparisonRow]) -> Iterator[ComparisonRow | str]:
    """The rows, with long runs of equal rows shortened."""
    stretch: list[ComparisonRow] = []
    for row in [*rows, None]:
        if row is not None and row.same:
            stretch.append(row)
            continue
        if len(stretch) > 2 * _MOST_SAME_ROWS:
            yield from stretch[:_MOST_SAME_ROWS]
            yield f"... {len(stretch) - 2 * _MOST_SAME_ROWS} more that agree"
            yield from stretch[-_MOST_SAME_ROWS:]
        else:
            yield from stretch
        stretch.clear()
        if row is not None:
            yield row
