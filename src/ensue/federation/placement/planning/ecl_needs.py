"""What an ECL rule needs of one site before it can put anything out, and what runs there of it.

In come an expression and the ports whose events all come from one site. Out goes a filter over
these ports that is matched whenever the rule has put something out since it stood as at its start
(`needed_of_ecl`): of each subexpression is worked out what it needs to succeed, to fail and to put
out, and what is of other sites, or of the clock, needs nothing. So `accumulate` and `sequential`
need what all their parts do, `select` what one of them does.

Until then the subexpressions that begin with a round, and read this site alone, run at the site
(`running_at`): where nothing but an output can begin a round again, they stand there as they will
stand at the home, and an event that no state of them waits for is not needed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

from ensue.lang.checking.ecl import expressions_in
from ensue.lang.syntax import (
    Both,
    Clauses,
    Constant,
    Ecl,
    EclCorrelation,
    Either,
    Fail,
    Filter,
    Group,
    Holds,
    Modes,
    PortRef,
    Push,
    Round,
    Then,
    Timeout,
    Unless,
)

NEVER = Either(())
"""What cannot come to pass. None stands for what needs nothing of the site."""

Need = Filter | None


class Needs(NamedTuple):
    """What an expression that has been started needs, to succeed, to fail and to put out."""

    success: Need
    failure: Need
    output: Need


def needed_of_ecl(rule: EclCorrelation, local: Collection[str]) -> Filter | None:
    """What the rule needs of local ports before it can put out; None for nothing."""
    needed = _needs(rule.body, local).output
    return None if needed == NEVER else needed


def _needs(x: Ecl, local: Collection[str]) -> Needs:
    match x:
        case PortRef(name):
            return Needs(PortRef(name) if name in local else None, NEVER, NEVER)
        case Constant(False):
            return Needs(NEVER, NEVER, NEVER)
        case Holds() | Constant() | Timeout():
            return Needs(None, NEVER, NEVER)
        case Group(kind, parts):
            return _of_group(kind, [_needs(part, local) for part in parts])
        case Unless(body, stop):
            inner, other = _needs(body, local), _needs(stop, local)
            failure = _any([inner.failure, other.success])
            return Needs(inner.success, failure, _any([inner.output, other.output]))
        case Fail(body):
            inner = _needs(body, local)
            return Needs(inner.failure, inner.success, inner.output)
        case Push(_, body):
            inner = _needs(body, local)
            return inner._replace(output=_any([inner.success, inner.output]))
        case Round(kind, body, bound):
            return _of_rounds(kind, bound, _needs(body, local))
        case Modes(modes):
            guards = [_needs(mode.guard, local) for mode in modes]
            bodies = [_needs(mode.body, local).output for mode in modes]
            entered = [
                _all(Then, [guard.success, body])
                for guard, body in zip(guards, bodies, strict=True)
            ]
            inside = [bodies[0], *entered, *(guard.output for guard in guards)]
            return Needs(NEVER, NEVER, _any(inside))
        case _:
            return Needs(None, None, None)


def _of_group(kind: str, parts: Sequence[Needs]) -> Needs:
    successes = [part.success for part in parts]
    failures = [part.failure for part in parts]
    output = _any([part.output for part in parts])
    match kind:
        case "accumulate":
            return Needs(_all(Both, successes), _any(failures), output)
        case "select":
            return Needs(_any(successes), _all(Both, failures), output)
        case "select*":
            return Needs(_any(successes), _any(failures), output)
        case "parallel":
            return Needs(NEVER, NEVER, output)
        case "sequential":
            before = [_all(Then, successes[:number]) for number in range(len(parts))]
            return Needs(
                _all(Then, successes),
                _any([_all(Then, pair) for pair in zip(before, failures, strict=True)]),
                _any(
                    [
                        _all(Then, [first, part.output])
                        for first, part in zip(before, parts, strict=True)
                    ]
                ),
            )
        case _:
            return Needs(None, None, None)


def _of_rounds(kind: str, bound: int | None, body: Needs) -> Needs:
    endless = bound is None
    match kind:
        case "persist":
            return Needs(body.success, NEVER if endless else body.failure, body.output)
        case "loop":
            return Needs(NEVER if endless else body.success, body.failure, body.output)
        case "repeat":
            success = NEVER if endless else _any([body.success, body.failure])
            return Needs(success, NEVER, body.output)
        case _:
            return Needs(None, None, None)


def _any(needs: Sequence[Need]) -> Need:
    possible = list(dict.fromkeys(each for each in needs if each != NEVER))
    if None in possible:
        return None
    found = [each for each in possible if each is not None]
    return found[0] if len(found) == 1 else Either(tuple(found))


def _all(combine: type[Both | Then], needs: Sequence[Need]) -> Need:
    if NEVER in needs:
        return NEVER
    found = [each for each in needs if each is not None]
    if len(found) < 2:
        return found[0] if found else None
    return combine(tuple(found))


def begins_with_timeout(x: Ecl) -> bool:
    """Whether a timeout is under way as soon as an expression has been started."""
    match x:
        case PortRef() | Holds() | Constant():
            return False
        case Group("sequential", parts):
            return begins_with_timeout(parts[0])
        case Group(_, parts):
            return any(map(begins_with_timeout, parts))
        case Unless(body, stop):
            return begins_with_timeout(body) or begins_with_timeout(stop)
        case Fail(body) | Push(_, body) | Round(_, body):
            return begins_with_timeout(body)
        case _:
            return True


# --- what runs at the site ----------------------------------------------------------------------


def has_modes(rule: EclCorrelation) -> bool:
    return any(isinstance(part, Modes) for part in expressions_in(rule.body))


def running_at(
    rule: EclCorrelation, ports: Collection[str], local: Collection[str]
) -> EclCorrelation | None:
    """The subexpressions that run at a site, as a rule that says when each is complete.

    None if none can, where something besides an output begins a round again, where a timeout counts
    from the first event, or where an event of the site is read anywhere else.
    """
    body = rule.body
    while isinstance(body, Round | Push):
        body = body.body
    if _may_fail(body) or any(isinstance(part, Timeout) for part in expressions_in(body)):
        return None
    begun, others = _split(body, local)
    read_there = {
        part.name for x in begun for part in expressions_in(x) if isinstance(part, PortRef)
    }
    if not begun or not set(ports) <= read_there:
        return None
    for x in others:
        for part in expressions_in(x):
            if not isinstance(part, PortRef | Group | Round | Push) or (
                isinstance(part, PortRef) and part.name in ports
            ):
                return None
    clauses = Clauses(by=rule.clauses.by)
    completions = tuple(Push(None, x) for x in begun)
    return replace(rule, body=Group("parallel", completions), clauses=clauses)


def _split(x: Ecl, local: Collection[str]) -> tuple[list[Ecl], list[Ecl]]:
    """The largest subexpressions that begin with `x` and read local ports alone; and all others."""
    if all(
        isinstance(part, Group | Round) or (isinstance(part, PortRef) and part.name in local)
        for part in expressions_in(x)
    ):
        return [x], []
    if isinstance(x, Group) and x.kind != "sequential":
        halves = [_split(part, local) for part in x.parts]
        return [y for half in halves for y in half[0]], [y for half in halves for y in half[1]]
    if isinstance(x, Group):
        begun, others = _split(x.parts[0], local)
        return begun, [*others, *x.parts[1:]]
    return [], [x]


def _may_fail(x: Ecl) -> bool:
    """Whether an expression can fail; true where that cannot be told."""
    return any(
        part.kind == "persist" and part.bound is not None
        if isinstance(part, Round)
        else not isinstance(part, PortRef | Holds | Constant | Timeout | Group | Push | Modes)
        for part in expressions_in(x)
    )
