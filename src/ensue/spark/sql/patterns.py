"""Patterns of RE2 as patterns of Java, which Spark's functions read: those that mean the same.

In comes a pattern that RE2 reads; out goes one that finds the same first match in Java, or None for
a pattern with anything else than literal signs, classes of ASCII, `.`, `^`, `$`, brackets, `|`,
repetitions of single signs, and brackets that may be left out. Java backtracks, and goes as deep as
a text is long for repeated brackets: patterns for which that could cost much are left to Python.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from ensue.lang.expressions.builtins.plain_patterns import tokens_of

MOST_UNBOUNDED = 3
"""How many `*`, `+` and `{n,}` a pattern may have."""

_BLANKS = r"\t\n\f\r "
_INSIDE = re.compile(r"\\.|.", re.DOTALL)


@dataclass(frozen=True)
class JavaPattern:
    """A pattern of Java; `certain` are the groups that have a part in every match."""

    text: str
    certain: frozenset[int]


@dataclass
class _Bracket:
    """An open bracket: its group, the groups inside, and whether a `|` stands in it."""

    group: int | None
    inside: set[int] = field(default_factory=set)
    has_bar: bool = False


@lru_cache(maxsize=1024)
def java_pattern(pattern: str) -> JavaPattern | None:
    """The pattern in Java; None if it may mean something else there."""
    tokens = tokens_of(pattern)
    if tokens is None:
        return None
    written: list[str] = []
    brackets = [_Bracket(None)]
    uncertain: set[int] = set()
    groups = unbounded = 0
    closed: _Bracket | None = None
    repeatable = False
    for token in tokens:
        kind = token.lastgroup
        if token["repeat"]:
            sign = token["repeat"]
            if closed is not None:
                if sign != "?":
                    return None
                uncertain |= closed.inside
            elif not repeatable:
                return None
            unbounded += sign in "*+" or sign.endswith(",}")
            written.append(sign + token["lazy"])
            closed, repeatable = None, False
            continue
        closed, repeatable = None, False
        if token["open"]:
            is_group = token["open"] != "(?:"
            groups += is_group
            bracket = _Bracket(groups if is_group else None)
            bracket.inside |= {groups} if is_group else set()
            brackets.append(bracket)
            written.append("(" if is_group else "(?:")
        elif token["close"]:
            closed = brackets.pop()
            own = {closed.group} if closed.group is not None else set()
            uncertain |= closed.inside - own if closed.has_bar else set()
            brackets[-1].inside |= closed.inside
            written.append(")")
        elif token["bar"]:
            brackets[-1].has_bar = True
            written.append("|")
        elif kind in ("begin", "end"):
            written.append(r"\A" if kind == "begin" else r"\z")
        else:
            sign = _sign(token)
            if sign is None:
                return None
            repeatable = True
            written.append(sign)
    (whole,) = brackets
    uncertain |= whole.inside if whole.has_bar else set()
    if unbounded > MOST_UNBOUNDED:
        return None
    return JavaPattern("".join(written), frozenset(range(groups + 1)) - uncertain)


def _sign(token: re.Match[str]) -> str | None:
    """One sign, or a class of signs."""
    if token["digit"]:
        return f"\\{token['digit']}"
    if token["blank"]:
        return f"[{'^' if token['blank'] == 'S' else ''}{_BLANKS}]"
    if token["any"]:
        return r"[^\n]"
    if token["inside"]:
        inside = _class(token["inside"])
        return None if inside is None else f"[{token['negated']}{inside}]"
    if token["escape"]:
        return token["escape"]
    # A literal sign that could mean something to Java is none of these.
    return re.escape(token["literal"]) if token["literal"].isascii() else token["literal"]


def _class(inside: str) -> str | None:
    """The signs of a class; a `-` that stands first or last is one of them."""
    signs = _INSIDE.findall(inside)
    written = []
    for at, sign in enumerate(signs):
        if sign == "-" and 0 < at < len(signs) - 1:
            if not (signs[at - 1].isalnum() and signs[at + 1].isalnum()):
                return None
            written.append(sign)
        elif sign == r"\s":
            written.append(_BLANKS)
        else:
            written.append(sign if len(sign) == 2 else re.escape(sign))
    return "".join(written)
