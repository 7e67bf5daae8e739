"""What planning knows of rules: the nodes of their syntax trees, the fields of these, their words.

In comes a rule; out goes what of it planning has never heard of: a node of another class, or a
field or a word that is not in `KNOWN` and says something. Planning decides nothing about such a
rule: it is placed whole, so that all its events travel to one home with all their data, and only
the engine there has to know what it means. Expressions are not looked into: of these planning asks
no more than the names that they read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any

from ensue.lang import syntax

INSIDE = None
"""The field holds nodes, which have to be known themselves."""
ANY: frozenset[Any] = frozenset()
"""The field may hold any name, number or expression."""


def _words(*words: str | None) -> frozenset[str | None]:
    return frozenset(words)


_ONE = {"parts": INSIDE}
_BODY = {"body": INSIDE}
_RULE: Mapping[str, frozenset[Any] | None] = {
    "output": ANY,
    "name": ANY,
    "ports": INSIDE,
    "clauses": INSIDE,
    "role": _words(None, "internal", "template"),
}

KNOWN: Mapping[type, Mapping[str, frozenset[Any] | None]] = {
    syntax.FilterCorrelation: {**_RULE, "branches": INSIDE, "initially": INSIDE, "cases": INSIDE},
    syntax.EclCorrelation: {**_RULE, **_BODY},
    syntax.EventPort: {"type": ANY, "name": ANY, "sources": INSIDE, "where": ANY},
    syntax.TimerPort: {"kind": _words("every", "deadline"), "period": INSIDE, "name": ANY},
    syntax.TextSource: {"text": ANY},
    syntax.RuleSource: {"name": ANY},
    syntax.OutsideSource: {},
    syntax.Duration: {"microseconds": ANY, "parameter": ANY},
    syntax.Clauses: {
        "within": INSIDE,
        "by": INSIDE,
        "bind": _words(None, "first", "last", "latest"),
        "keep": _words(None, "none", "last", "all"),
        "unless": INSIDE,
        "having": ANY,
    },
    syntax.CommonKey: {"name": ANY},
    syntax.PortKeys: {"parts": ANY},
    syntax.PortRef: {"name": ANY},
    syntax.Labelled: {"label": ANY, **_BODY},
    syntax.Both: _ONE,
    syntax.Either: _ONE,
    syntax.Then: _ONE,
    syntax.Times: {"count": ANY, "parameter": ANY, **_BODY},
    syntax.Timeout: {"after": INSIDE},
    syntax.LabelTrue: {},
    syntax.LabelName: {"name": ANY},
    syntax.LabelNot: _BODY,
    syntax.LabelAnd: _ONE,
    syntax.LabelOr: _ONE,
    syntax.Case: {"condition": INSIDE, "statements": INSIDE},
    syntax.PushPort: {"port": ANY, "extensions": INSIDE},
    syntax.PushNew: {"type": ANY, "assignments": INSIDE, "extensions": INSIDE},
    syntax.Assignment: {"name": ANY, "value": ANY},
    syntax.Extension: {"name": ANY, "value": ANY, "type": ANY},
    syntax.Change: {"kind": _words("abort", "revive", "toggle"), "labels": INSIDE},
    syntax.Holds: {"predicate": ANY},
    syntax.Constant: {"value": ANY},
    syntax.Group: {
        "kind": _words("accumulate", "select", "select*", "sequential", "parallel"),
        **_ONE,
    },
    syntax.Unless: {"stop": INSIDE, **_BODY},
    syntax.Fail: _BODY,
    syntax.Round: {
        "kind": _words("repeat", "persist", "loop"),
        "bound": ANY,
        "parameter": ANY,
        **_BODY,
    },
    syntax.Push: {"type": ANY, **_BODY},
    syntax.Modes: {"modes": INSIDE},
    syntax.Mode: {"guard": INSIDE, **_BODY},
}


def unknown_in(rule: syntax.Correlation) -> list[str]:
    """What planning does not know in a rule, in words of its syntax tree; mostly nothing."""
    return sorted(set(_unknown(rule)))


def _unknown(rule: Any) -> Iterator[str]:
    waiting: list[Any] = [rule]
    while waiting:
        node = waiting.pop()
        if isinstance(node, tuple):
            waiting += node
            continue
        if node is None:
            continue
        known = KNOWN.get(type(node))
        if known is None:
            yield type(node).__name__
            continue
        for each in fields(node):
            value = getattr(node, each.name)
            if not each.compare or (each.name not in known and _says_nothing(each, value)):
                continue
            allowed = known.get(each.name, _words())
            if allowed is INSIDE:
                waiting.append(value)
            elif each.name not in known or (allowed is not ANY and value not in allowed):
                yield f"{each.name} {value}" if isinstance(value, str) else each.name


def _says_nothing(field: Field[Any], value: Any) -> bool:
    """Whether a field has the value that it has where nothing is written."""
    if field.default is not MISSING:
        return bool(value == field.default)
    made = field.default_factory
    return made is not MISSING and bool(value == made())


assert all(is_dataclass(each) for each in KNOWN)
