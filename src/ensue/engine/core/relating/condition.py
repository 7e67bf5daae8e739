"""`having` as a loop can ask it: a short program over aggregates and over columns.

In comes a condition; out goes a `Condition`. Its parts without an aggregate are *operands*, which
`input.predicates` computes for all candidates at once, by the meaning of CESQL. What is left are
the few operators between these and the aggregates, and they become a program of typed steps.
A condition without aggregates is one operand and has no program.

A condition holds if it comes out true and met neither null nor error, so a program ends at the
first of those. What has no step (functions of an aggregate, texts) is refused, and the rule runs
event by event.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from ensue.events.types import ValueType
from ensue.lang.derived.relating import aggregates_in
from ensue.lang.expressions.builtins.functions import FUNCTIONS
from ensue.lang.expressions.tree import (
    Arithmetic,
    Call,
    Comparison,
    Exists,
    Expression,
    In,
    Like,
    Literal,
    Logic,
    Name,
    Negate,
    Not,
)
from ensue.lang.expressions.values import kind_of

NUMBERS = ("integer", "real")
MOST_REGISTERS = 32


class NotInProgramError(Exception):
    """A condition has no program; the text says why."""


class Step(IntEnum):
    """What a step does with registers `x` and `y`; for loads `x` is a place, for jumps `y`."""

    LOAD_INTEGER = 0
    LOAD_REAL = 1
    OPERAND_INTEGER = 2
    OPERAND_REAL = 3
    AGGREGATE_INTEGER = 4
    AGGREGATE_REAL = 5
    TO_REAL = 6
    NEGATE_INTEGER = 7
    NEGATE_REAL = 8
    NOT = 9
    MOVE = 10
    JUMP_IF_FALSE = 11
    JUMP_IF_TRUE = 12
    ADD = 20
    SUBTRACT = 21
    MULTIPLY = 22
    DIVIDE = 23
    REMAINDER = 24
    EQUAL = 25
    NOT_EQUAL = 26
    LESS = 27
    AT_MOST = 28
    GREATER = 29
    AT_LEAST = 30


REALS = 20
"""What is added to a step from `ADD` on, which is for integers, for the same step of reals."""

_SIGNS = {
    "+": Step.ADD,
    "-": Step.SUBTRACT,
    "*": Step.MULTIPLY,
    "/": Step.DIVIDE,
    "%": Step.REMAINDER,
    "=": Step.EQUAL,
    "!=": Step.NOT_EQUAL,
    "<": Step.LESS,
    "<=": Step.AT_MOST,
    ">": Step.GREATER,
    ">=": Step.AT_LEAST,
}


@dataclass(frozen=True)
class Condition:
    """A `having` clause: operands with their kinds, and a program over them and aggregates.

    The outcome of the program is in register 0.
    """

    operands: tuple[Expression, ...]
    kinds: tuple[str, ...]
    steps: tuple[tuple[int, ...], ...] = ()
    integers: tuple[int, ...] = ()
    reals: tuple[float, ...] = ()
    names: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    """The kinds that names of operands are taken to have."""


def condition_of(
    having: Expression,
    aggregates: Mapping[Expression, int],
    results: Sequence[str],
    names: Mapping[str, Mapping[str, ValueType]],
) -> Condition:
    """The condition over aggregates, given by number, with the kinds of their results.

    `names` are the declared attributes of each port. Raises `NotInProgramError`.
    """
    if not any(True for _ in aggregates_in(having)):
        return Condition((having,), ("boolean",))
    compiler = _Compiler(aggregates, results, names)
    register, kind = compiler.compile(having)
    if kind != "boolean":
        raise NotInProgramError("`having` is no comparison")
    compiler.step(Step.MOVE, 0, register)
    return compiler.condition()


@dataclass
class _Compiler:
    aggregates: Mapping[Expression, int]
    results: Sequence[str]
    names: Mapping[str, Mapping[str, ValueType]]
    operands: dict[Expression, int] = field(default_factory=dict)
    kinds: list[str] = field(default_factory=list)
    steps: list[list[int]] = field(default_factory=list)
    integers: list[int] = field(default_factory=list)
    reals: list[float] = field(default_factory=list)
    kind_of_names: dict[tuple[str, ...], str] = field(default_factory=dict)
    used: int = 1

    def condition(self) -> Condition:
        return Condition(
            tuple(self.operands),
            tuple(self.kinds),
            tuple(tuple(each) for each in self.steps),
            tuple(self.integers),
            tuple(self.reals),
            dict(self.kind_of_names),
        )

    def step(self, step: int, to: int, x: int, y: int = 0) -> int:
        self.steps.append([int(step), to, x, y])
        return to

    def fresh(self) -> int:
        self.used += 1
        if self.used > MOST_REGISTERS:
            raise NotInProgramError("`having` is too long")
        return self.used - 1

    def compile(self, x: Expression) -> tuple[int, str]:
        """The register that holds the value of an expression, and its kind."""
        if x in self.aggregates:
            number = self.aggregates[x]
            kind = self.results[number]
            step = self._typed(Step.AGGREGATE_INTEGER, kind)
            return self.step(step, self.fresh(), number), kind
        if not any(True for _ in aggregates_in(x)):
            return self._operand(x)
        match x:
            case Not(operand):
                register = self._boolean(operand)
                return self.step(Step.NOT, self.fresh(), register), "boolean"
            case Negate(operand):
                register, kind = self._number(operand)
                step = self._typed(Step.NEGATE_INTEGER, kind)
                return self.step(step, self.fresh(), register), kind
            case Arithmetic(first, rest):
                held = self._number(first)
                for sign, operand in rest:
                    held = self._both(_SIGNS[sign], held, self._number(operand))
                return held
            case Comparison(first, ((sign, second),)):
                register, _ = self._both(_SIGNS[sign], self._number(first), self._number(second))
                return register, "boolean"
            case Logic(operands, operators):
                return self._logic(operands, operators), "boolean"
            case Call("BETWEEN", (value, low, high)):
                held = self._number(value)
                above, _ = self._both(Step.AT_LEAST, held, self._number(low))
                below, _ = self._both(Step.AT_MOST, held, self._number(high))
                found = self.step(Step.MOVE, self.fresh(), above)
                jump = len(self.steps)
                self.step(Step.JUMP_IF_FALSE, 0, found)
                self.step(Step.MOVE, found, below)
                self.steps[jump][3] = len(self.steps)
                return found, "boolean"
        raise NotInProgramError("`having` asks more of an aggregate than numbers tell")

    def _operand(self, x: Expression) -> tuple[int, str]:
        if isinstance(x, Literal) and kind_of(x.value) == "integer":
            self.integers.append(int(x.value))  # type: ignore[arg-type]
            at = len(self.integers) - 1
            return self.step(Step.LOAD_INTEGER, self.fresh(), at), "integer"
        if isinstance(x, Literal) and kind_of(x.value) == "real":
            self.reals.append(float(x.value))  # type: ignore[arg-type]
            return self.step(Step.LOAD_REAL, self.fresh(), len(self.reals) - 1), "real"
        kind = self._kind(x)
        if kind not in (*NUMBERS, "boolean"):
            raise NotInProgramError("`having` compares an aggregate with what is no number")
        if x not in self.operands:
            self.operands[x] = len(self.operands)
            self.kinds.append(kind)
        step = self._typed(Step.OPERAND_INTEGER, kind)
        return self.step(step, self.fresh(), self.operands[x]), kind

    def _typed(self, step: Step, kind: str) -> int:
        """The step for integers and booleans, or the one after it, for reals."""
        if kind not in (*NUMBERS, "boolean"):
            raise NotInProgramError(f"`having` compares an aggregate that is a {kind}")
        return step + (kind == "real")

    def _boolean(self, x: Expression) -> int:
        register, kind = self.compile(x)
        if kind != "boolean":
            raise NotInProgramError("`having` takes a number for a truth value")
        return register

    def _number(self, x: Expression) -> tuple[int, str]:
        register, kind = self.compile(x)
        if kind not in NUMBERS:
            raise NotInProgramError("`having` takes a truth value for a number")
        return register, kind

    def _both(self, step: Step, x: tuple[int, str], y: tuple[int, str]) -> tuple[int, str]:
        """A step of two numbers; an integer meets a real as a real."""
        if x[1] == y[1] == "integer":
            return self.step(step, self.fresh(), x[0], y[0]), "integer"
        return self.step(step + REALS, self.fresh(), self._real(x), self._real(y)), "real"

    def _real(self, x: tuple[int, str]) -> int:
        return x[0] if x[1] == "real" else self.step(Step.TO_REAL, self.fresh(), x[0])

    def _logic(self, operands: Sequence[Expression], operators: Sequence[str]) -> int:
        """`AND` and `OR` from the left; operands behind the one that decides are not read."""
        found = self.fresh()
        jumps = []
        for operand, sign in zip(operands, (*operators, None), strict=True):
            self.step(Step.MOVE, found, self._boolean(operand))
            if sign == "XOR":
                raise NotInProgramError("`having` joins aggregates by `XOR`")
            if sign is not None:
                jumps.append(len(self.steps))
                of = Step.JUMP_IF_FALSE if sign == "AND" else Step.JUMP_IF_TRUE
                self.step(of, 0, found)
        for jump in jumps:
            self.steps[jump][3] = len(self.steps)
        return found

    def _named(self, parts: tuple[str, ...]) -> str | None:
        port, *path = parts
        declared = self.names.get(port, {}).get(".".join(path))
        kind = declared.kind if declared is not None else None
        if path == ["time"] and declared is None:
            kind = "timestamp"
        if kind is not None:
            self.kind_of_names[parts] = kind
        return kind

    def _kind(self, x: Expression) -> str | None:
        """The kind of an expression without aggregates, where it can be told beforehand."""
        match x:
            case Literal(value):
                return kind_of(value)
            case Name(parts):
                return self._named(parts)
            case Not() | Comparison() | Logic() | Like() | In() | Exists():
                return "boolean"
            case Negate(operand):
                return self._kind(operand)
            case Arithmetic(first, rest):
                kinds = {self._kind(each) for each in (first, *(part for _, part in rest))}
                if kinds == {"timestamp"} and [sign for sign, _ in rest] == ["-"]:
                    return "real"
                if not kinds <= set(NUMBERS):
                    return None
                return "integer" if kinds == {"integer"} else "real"
            case Call(function):
                known = FUNCTIONS.get(function)
                return known.result if known is not None else None
        return None
