"""Values for the parameters of many cases at once, which go before those that a case gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ensue.casefile.case import Case
from ensue.errors import EnsueError, UsageError
from ensue.lang.diagnostics import did_you_mean
from ensue.library import load, parse


def with_parameters(cases: Sequence[Case], given: Mapping[str, Any]) -> list[Case]:
    """Cases with values for the parameters that their libraries have.

    Raises `UsageError` for a parameter that no library has.
    """
    if not given:
        return list(cases)
    known: set[str] = set()
    changed = []
    for case in cases:
        names = _parameters_of(case)
        known |= names
        own = {name: value for name, value in given.items() if name in names}
        changed.append(replace(case, parameters={**case.parameters, **own}))
    for name in given:
        if name not in known:
            hint = did_you_mean(name, known) if known else "no library has parameters"
            raise UsageError(f"no library of the cases has a parameter `{name}`; {hint}")
    return changed


def _parameters_of(case: Case) -> set[str]:
    """The parameters of a case's library; none where it has mistakes, which its run tells."""
    try:
        library = parse(case.library) if isinstance(case.library, str) else load(case.library)
    except EnsueError:
        return set()
    return {each.name for each in library.checked.parameters}
