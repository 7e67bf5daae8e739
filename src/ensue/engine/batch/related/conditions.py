"""Conditions of `having`: their operands over columns, and a compiled loop that evaluates them.

A condition is a program of typed steps (`core.relating.condition`). Parts without an aggregate are
its operands: in come candidates, by the readings that their slots hold; out goes what each operand
comes to, as numbers of 64 bits, and where it met an error (`operands_of`). The loop runs the steps
for one candidate, over its operands and the aggregates of its key (`port_aggregates`), and ends
without holding at the first null or error that it meets. Which candidates trigger is decided in
`correlation` and `stretches`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ensue.engine.batch.input.column import Column, column_of
from ensue.engine.batch.input.predicates import NotInColumnsError, outcomes, values_by_row
from ensue.engine.batch.output.remembered import BoundPorts, Bundle, RememberedReadings
from ensue.engine.batch.related.port_aggregates import aggregate
from ensue.engine.core.jit import inlined, uncounted
from ensue.engine.core.relating.condition import REALS, Step
from ensue.engine.core.relating.form import ChainForm

_LOAD_INTEGER, _LOAD_REAL = int(Step.LOAD_INTEGER), int(Step.LOAD_REAL)
_OPERAND_INTEGER, _OPERAND_REAL = int(Step.OPERAND_INTEGER), int(Step.OPERAND_REAL)
_AGGREGATE_INTEGER, _AGGREGATE_REAL = int(Step.AGGREGATE_INTEGER), int(Step.AGGREGATE_REAL)
_TO_REAL, _NOT, _MOVE = int(Step.TO_REAL), int(Step.NOT), int(Step.MOVE)
_NEGATE_INTEGER, _NEGATE_REAL = int(Step.NEGATE_INTEGER), int(Step.NEGATE_REAL)
_JUMP_IF_FALSE, _JUMP_IF_TRUE = int(Step.JUMP_IF_FALSE), int(Step.JUMP_IF_TRUE)
_ADD, _SUBTRACT, _MULTIPLY = int(Step.ADD), int(Step.SUBTRACT), int(Step.MULTIPLY)
_DIVIDE, _REMAINDER = int(Step.DIVIDE), int(Step.REMAINDER)
_EQUAL, _NOT_EQUAL, _LESS = int(Step.EQUAL), int(Step.NOT_EQUAL), int(Step.LESS)
_AT_MOST, _GREATER, _AT_LEAST = int(Step.AT_MOST), int(Step.GREATER), int(Step.AT_LEAST)
_SMALLEST = np.int64(-(2**63))
_U0, _U1, _TOP = np.uint64(0), np.uint64(1), np.uint64(1 << 63)


def operands_of(form: ChainForm, slots: Any, remembered: RememberedReadings) -> tuple[Any, Any]:
    """The value of each operand for each candidate, and where there is an error instead."""
    condition, count = form.condition, len(slots)
    operands = condition.operands if condition is not None else ()
    known = np.zeros((len(operands), count), np.int64)
    errors = np.zeros((len(operands), count), np.bool_)
    if not count:
        return known, errors
    lookup = _bound_ports(form, slots, remembered).column
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


def _bound_ports(form: ChainForm, slots: Any, remembered: RememberedReadings) -> BoundPorts:
    """What the ports of candidates are bound to, by candidate."""
    slots_of: dict[str, tuple[int, ...]] = {}
    for slot, port in enumerate(form.slots):
        slots_of[port] = (*slots_of.get(port, ()), slot)
    actions = np.zeros(len(slots), np.int64)
    return BoundPorts(Bundle(None, "", 0, slots_of), actions, slots, remembered, False, {})


def _computed(expression: Any, lookup: Any, count: int) -> Column:
    """The values of an expression; missing where it met an error."""
    try:
        found = outcomes(expression, lookup, count)
    except NotInColumnsError:
        return column_of(values_by_row(expression, lookup, np.arange(count)))
    return Column(found.kind, found.values, found.errors)


@uncounted
def integer_step(step: int, x: int, y: int) -> Any:
    """An operator between integers: the value, and whether there is one."""
    if step == _EQUAL:
        return np.int64(x == y), True
    if step == _NOT_EQUAL:
        return np.int64(x != y), True
    if step == _LESS:
        return np.int64(x < y), True
    if step == _AT_MOST:
        return np.int64(x <= y), True
    if step == _GREATER:
        return np.int64(x > y), True
    if step == _AT_LEAST:
        return np.int64(x >= y), True
    if step == _ADD:
        # Unsigned, for the compiler takes it that signed numbers never overflow.
        total = np.int64(np.uint64(x) + np.uint64(y))
        return total, ((x ^ total) & (y ^ total)) >= 0
    if step == _SUBTRACT:
        total = np.int64(np.uint64(x) - np.uint64(y))
        return total, ((x ^ y) & (x ^ total)) >= 0
    if step == _MULTIPLY:
        return times(x, y)
    if y == 0:
        return np.int64(0), False
    if x == _SMALLEST and y == -1:
        return np.int64(0), step == _REMAINDER
    # Both toward zero, as CESQL divides.
    quotient = abs(x) // abs(y) if x != _SMALLEST and y != _SMALLEST else far_quotient(x, y)
    if (x < 0) != (y < 0):
        quotient = -quotient
    return (quotient if step == _DIVIDE else x - y * quotient), True


@uncounted
def times(x: int, y: int) -> Any:
    """The product of two integers, and whether 64 bits hold it."""
    left = np.uint64(x) if x >= 0 else _U0 - np.uint64(x)
    right = np.uint64(y) if y >= 0 else _U0 - np.uint64(y)
    is_negative = (x < 0) != (y < 0)
    largest = _TOP if is_negative else _TOP - _U1
    if right != _U0 and left > largest // right:
        return np.int64(0), False
    size = left * right
    return np.int64(_U0 - size if is_negative else size), True


@uncounted
def far_quotient(x: int, y: int) -> Any:
    """The absolute value of a quotient where one side is the smallest integer, which has none."""
    if y == _SMALLEST:
        return np.int64(1) if x == _SMALLEST else np.int64(0)
    quotient, rest = _SMALLEST // abs(y), _SMALLEST % abs(y)
    return -(quotient + (1 if rest != 0 else 0))


@uncounted
def real_step(step: int, x: float, y: float) -> Any:
    """An operator between reals: the value as an integer or a real, and whether there is one."""
    if step == _EQUAL:
        return np.int64(x == y), 0.0, True
    if step == _NOT_EQUAL:
        return np.int64(x != y), 0.0, True
    if step == _LESS:
        return np.int64(x < y), 0.0, True
    if step == _AT_MOST:
        return np.int64(x <= y), 0.0, True
    if step == _GREATER:
        return np.int64(x > y), 0.0, True
    if step == _AT_LEAST:
        return np.int64(x >= y), 0.0, True
    if step == _ADD:
        found = x + y
    elif step == _SUBTRACT:
        found = x - y
    elif step == _MULTIPLY:
        found = x * y
    elif y == 0.0:
        return np.int64(0), 0.0, False
    elif step == _DIVIDE:
        found = x / y
    else:
        found = np.fmod(x, y)
    return np.int64(0), found, math.isfinite(found)


@inlined
def condition_holds(
    program: Any,
    each: int,
    registers: Any,
    key: int,
    aggregates: Any,
    store: Any,
) -> Any:
    """Whether the condition holds of candidate `each`, with what its key has in registers."""
    steps, integers, constants = program.steps, program.integers, program.reals
    known_integers, known_reals, errors = (
        program.known_integers,
        program.known_reals,
        program.errors,
    )
    whole, real = program.whole, program.real
    at = 0
    while at < len(steps):
        step, to, x, y = steps[at, 0], steps[at, 1], steps[at, 2], steps[at, 3]
        at += 1
        if step == _LOAD_INTEGER:
            whole[to] = integers[x]
        elif step == _LOAD_REAL:
            real[to] = constants[x]
        elif step in (_AGGREGATE_INTEGER, _AGGREGATE_REAL):
            found, found_real, there = aggregate(
                registers, key, aggregates, x, store, program.digits
            )
            if not there:
                return False
            whole[to], real[to] = found, found_real
        elif step in (_OPERAND_INTEGER, _OPERAND_REAL):
            if errors[x, each]:
                return False
            whole[to], real[to] = known_integers[x, each], known_reals[x, each]
        elif step == _TO_REAL:
            real[to] = float(whole[x])
        elif step == _NEGATE_INTEGER:
            if whole[x] == _SMALLEST:
                return False
            whole[to] = -whole[x]
        elif step == _NEGATE_REAL:
            real[to] = -real[x]
        elif step == _NOT:
            whole[to] = 1 - whole[x]
        elif step == _MOVE:
            whole[to], real[to] = whole[x], real[x]
        elif step == _JUMP_IF_FALSE:
            if whole[x] == 0:
                at = y
        elif step == _JUMP_IF_TRUE:
            if whole[x] != 0:
                at = y
        elif step < _ADD + REALS:
            found, there = integer_step(step, whole[x], whole[y])
            if not there:
                return False
            whole[to] = found
        else:
            found, found_real, there = real_step(step - REALS, real[x], real[y])
            if not there:
                return False
            whole[to], real[to] = found, found_real
    return whole[0] != 0
