"""Distribution lists: which services a request means, by name, kind or pattern.

A list becomes a predicate over the origin of an event, joined to the filter of the request. So a
request over some services is a filter like any other, and covering, merging and matching need to
know nothing of lists. An empty list means every service.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

from ensue.federation.messages.attributes import KIND, ORIGIN
from ensue.lang.expressions.tree import Comparison, Expression, Like, Literal, Logic, Name
from ensue.subscriptions import Filter

_WILD = frozenset("*?")


def is_meant(names: Sequence[str], name: str, kind: str) -> bool:
    """Whether a list means a service."""
    return not names or any(
        fnmatchcase(name, _plain(each)) or fnmatchcase(kind, _plain(each)) for each in names
    )


def wanted_from(names: Sequence[str], where: Filter) -> Filter:
    """The filter for events that match `where` and come from services that a list means."""
    if not names:
        return where
    tests = [
        test
        for each in dict.fromkeys(names)
        for attribute in (ORIGIN, KIND)
        for test in pattern_tests(attribute, [each])
    ]
    meant = tests[0] if len(tests) == 1 else Logic(tuple(tests), ("OR",) * (len(tests) - 1))
    if where.expression == Literal(True):
        return Filter(meant)
    return Filter(Logic((meant, where.expression), ("AND",)))


def events_of(name: str, kind: str) -> Filter:
    """The filter that matches the events of one service."""
    is_from = Comparison(Name((ORIGIN,)), (("=", Literal(name)),))
    is_kind = Comparison(Name((KIND,)), (("=", Literal(kind)),))
    return Filter(Logic((is_from, is_kind), ("AND",)))


def pattern_tests(attribute: str, patterns: Iterable[str]) -> Iterator[Expression]:
    """For each name or pattern the test that an attribute is it, or fits it."""
    for each in patterns:
        if _WILD & set(each):
            yield Like(Name((attribute,)), _like(each))
        else:
            yield Comparison(Name((attribute,)), (("=", Literal(each)),))


def _like(listed: str) -> str:
    """A pattern of `*` and `?` as `LIKE` has it."""
    escaped = "".join(f"\\{each}" if each in "%_\\" else each for each in listed)
    return escaped.replace("*", "%").replace("?", "_")


def _plain(listed: str) -> str:
    """Only `*` and `?` are special: a bracket in a name is a bracket."""
    return listed.replace("[", "[[]")
