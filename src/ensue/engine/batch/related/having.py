"""The operands of `having` for many candidates at once.

In come candidates, by the readings that their slots hold; out goes what each operand of the
condition comes to, as numbers of 64 bits, and where it met an error. Conditions are taken apart in
`core.relating.condition`; which candidates trigger is decided in `correlation` and `counting`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ensue.engine.batch.input.column import Column, absent, column_of
from ensue.engine.batch.input.predicates import NotInColumnsError, outcomes, values_by_row
from ensue.engine.batch.output.remembered import Remembered
from ensue.engine.core.relating.form import ChainForm
from ensue.lang.expressions.names import Parts


def operands_of(form: ChainForm, slots: Any, remembered: Remembered) -> tuple[Any, Any]:
    """The value of each operand for each candidate, and where there is an error instead."""
    condition, count = form.condition, len(slots)
    operands = condition.operands if condition is not None else ()
    known = np.zeros((len(operands), count), np.int64)
    errors = np.zeros((len(operands), count), np.bool_)
    if not count:
        return known, errors
    lookup = _Bound(form, slots, remembered).column
    for number, operand in enumerate(operands):
        assert condition is not None
        column = _computed(operand, lookup, count)
        errors[number] = column.missing_mask()
        if errors[number].all():
            continue
        if column.kind != condition.kinds[number]:
            if condition.kinds[number] == "boolean":
                # What is no truth value never holds.
                errors[number] = True
                continue
            raise AssertionError("an operand is of the kind that its names are declared with")
        if column.kind == "real":
            known.view(np.float64)[number] = column.values
        else:
            known[number] = column.values
    return known, errors


class _Bound:
    """The names that `having` asks for, over the events that candidates have bound."""

    def __init__(self, form: ChainForm, slots: Any, remembered: Remembered) -> None:
        self._slots = slots
        self._remembered = remembered
        self._places: dict[str, list[int]] = {}
        for slot, port in enumerate(form.slots):
            self._places.setdefault(port, []).append(slot)
        self._known: dict[Parts, Column] = {}

    def column(self, parts: Parts) -> Column:
        port, *rest = parts
        if port not in self._places or not rest:
            return absent(len(self._slots))
        if parts not in self._known:
            chosen = self._slots[:, self._places[port]]
            readings = chosen[:, 0] if chosen.shape[1] == 1 else chosen.max(axis=1)
            column = self._remembered.column(tuple(rest), readings)
            if column.kind == "object":
                column = column_of(column.to_list())
            self._known[parts] = column
        return self._known[parts]


def _computed(expression: Any, lookup: Any, count: int) -> Column:
    """The values of an expression; missing where it met an error."""
    try:
        found = outcomes(expression, lookup, count)
    except NotInColumnsError:
        return column_of(values_by_row(expression, lookup, np.arange(count)))
    return Column(found.kind, found.values, found.errors)
