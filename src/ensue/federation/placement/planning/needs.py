"""What a site has to see before a rule can trigger: what no match of its filter does without.

In come a rule, and the ports whose events all come from one site; out goes a filter over those
ports that is matched whenever a branch of the rule is, or None where the rule can do without the
site. It is the rule's own filter, weakened: a port of another site, and the clock, is taken as
matched. So `x + y` and `x ; y` need what is left of both sides, `x | y` and `||` one of them. A
part that a case may abort can be left out of `+` and `;`, and is needed by neither.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from ensue.lang.derived.parts import statements_of
from ensue.lang.syntax import (
    Both,
    Change,
    Either,
    Filter,
    FilterCorrelation,
    Labelled,
    PortRef,
    Then,
    Timeout,
    Times,
)

MOST_ROUNDS = 64
"""How often a bracket (not a single port) may be repeated, for a site to follow it."""


def needed_of(rule: FilterCorrelation, local: Collection[str]) -> Filter | None:
    """What a match of any branch needs of the ports that are local to one site."""
    abortable = frozenset(_abortable(rule))
    branches = [_weakened(branch, local, abortable)[0] for branch in rule.branches]
    return _combined(Either, branches)


def alone_enough(needed: Filter, ports: Collection[str]) -> bool:
    """Whether each event of these ports fulfils what is needed by itself, so that none waits."""
    parts = needed.parts if isinstance(needed, Either) else (needed,)
    return {part.name for part in parts if isinstance(part, PortRef)} >= set(ports)


def is_followed(x: Filter) -> bool:
    """Whether it is short enough to be followed: `x{n}` of a bracket is a chain of n brackets."""
    match x:
        case PortRef():
            return True
        case Times(PortRef(), _):
            return True
        case Times(body, count):
            return count <= MOST_ROUNDS and not _repeats(body) and is_followed(body)
        case Both(parts) | Either(parts) | Then(parts):
            return all(is_followed(part) for part in parts)
        case Labelled() | Timeout():
            raise AssertionError("what is needed has neither labels nor timeouts")


def _repeats(x: Filter) -> bool:
    match x:
        case Times():
            return True
        case Both(parts) | Either(parts) | Then(parts):
            return any(_repeats(part) for part in parts)
        case _:
            return False


def _abortable(rule: FilterCorrelation) -> Iterator[str]:
    """Labels that may be aborted: `toggle` aborts too, and what is revived was aborted before."""
    for statement in statements_of(rule):
        if isinstance(statement, Change) and statement.kind != "revive":
            yield from (label.name for label in statement.labels)


def _weakened(
    x: Filter, local: Collection[str], abortable: frozenset[str]
) -> tuple[Filter | None, bool]:
    """What `x` needs of the local ports, None for nothing, and whether `x` may be left out."""
    match x:
        case PortRef(name):
            return (PortRef(name) if name in local else None), False
        case Timeout():
            return None, False
        case Labelled(label, body):
            needed, may_go = _weakened(body, local, abortable)
            return needed, may_go or label in abortable
        case Either(parts):
            weak = [_weakened(part, local, abortable) for part in parts]
            return _combined(Either, [each for each, _ in weak]), all(go for _, go in weak)
        case Both(parts) | Then(parts):
            weak = [_weakened(part, local, abortable) for part in parts]
            kept = [each for each, may_go in weak if each is not None and not may_go]
            return _joined(type(x), kept), all(go for _, go in weak)
        case Times(body, count):
            needed, may_go = _weakened(body, local, abortable)
            return (None if needed is None else Times(needed, count)), may_go


Combine = Callable[[tuple[Filter, ...]], Filter]


def _combined(either: Combine, parts: Sequence[Filter | None]) -> Filter | None:
    """One of the parts; nothing is needed if one of them needs nothing."""
    needed = [part for part in parts if part is not None]
    return _joined(either, list(dict.fromkeys(needed))) if len(needed) == len(parts) else None


def _joined(combine: Combine, parts: Sequence[Filter]) -> Filter | None:
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else combine(tuple(parts))
