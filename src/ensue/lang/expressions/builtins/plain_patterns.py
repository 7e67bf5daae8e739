"""Patterns of RE2 without its rarer signs, token by token, and texts that they match.

In comes a pattern that RE2 reads; out come its tokens, or None where it has anything else than
literal signs, classes of ASCII, `.`, `^`, `$`, brackets, `|` and repetitions. Such a pattern can be
written for another engine, and a text can be made that it is likely to match.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ensue.lang.expressions.builtins.patterns import is_found

_TOKEN = re.compile(
    r"""
      \\(?P<digit>[dwDW])
    | \\(?P<blank>[sS])
    | (?P<escape>\\[-.()\[\]{}+*?^$|\\/:;,=_"'<>@\#%&~!\ tnr])
    | \[(?P<negated>\^?)(?P<inside>
          (?:\\[dwstnr.\-\\/\]\[^$]|[A-Za-z0-9_.:;,=@\#%~!"'/<>+*?(){}$\ -])+
      )\]
    | (?P<open>\(\?:|\(\?P?<\w+>|\((?!\?))
    | (?P<close>\))
    | (?P<bar>\|)
    | (?P<any>\.)
    | (?P<begin>\^)
    | (?P<end>\$)
    | (?P<repeat>[*+?]|\{\d+(?:,\d*)?\})(?P<lazy>\??)
    | (?P<literal>[^\\\[\](){}|.^$*+?\ud800-\udfff])
    """,
    re.VERBOSE,
)

Token = re.Match[str]


def tokens_of(pattern: str) -> list[Token] | None:
    """The tokens of a pattern; None if it has others than these."""
    tokens: list[Token] = []
    place = 0
    while place < len(pattern):
        token = _TOKEN.match(pattern, place)
        if token is None:
            return None
        tokens.append(token)
        place = token.end()
    return tokens


def text_with(pattern: str, group: int, part: str) -> str | None:
    """A short text that the pattern may match with this text as its group; None if unknown.

    Group 0 is all of the match. Whether it matches so is to be asked of the pattern.
    """
    tokens = tokens_of(pattern)
    if tokens is None or group == 0:
        return None if tokens is None else part
    return _Writing(tokens, group, part).text()


_MOST_REPEATED = 100


class _Writing:
    """The text of a pattern while it is made, by the first alternative of each bracket."""

    def __init__(self, tokens: Sequence[Token], group: int, part: str) -> None:
        self._tokens = tokens
        self._group = group
        self._part = part
        self._at = 0
        self._groups = 0

    def text(self) -> str:
        return self._alternatives()

    def _alternatives(self) -> str:
        """Up to the end of a bracket: the alternative with the group, or else the first."""
        found: list[tuple[bool, str]] = []
        while True:
            first = self._groups
            written = self._sequence()
            found.append((first < self._group <= self._groups, written))
            if self._at == len(self._tokens) or not self._tokens[self._at]["bar"]:
                break
            self._at += 1
        return next((text for has, text in found if has), found[0][1])

    def _sequence(self) -> str:
        written = ""
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            if token["bar"] or token["close"]:
                break
            self._at += 1
            before = self._groups
            sign = self._bracket(token) if token["open"] else _sign(token)
            has_group = before < self._group <= self._groups
            written += sign * self._times(has_group)
        return written

    def _bracket(self, token: Token) -> str:
        number = None
        if token["open"] != "(?:":
            self._groups += 1
            number = self._groups
        inside = self._alternatives()
        self._at += 1
        return self._part if number == self._group else inside

    def _times(self, has_group: bool) -> int:
        """How often what was written comes: as seldom as it may."""
        if self._at == len(self._tokens) or not self._tokens[self._at]["repeat"]:
            return 1
        repeat = self._tokens[self._at]["repeat"]
        self._at += 1
        if repeat[0] == "{":
            least = int(re.split(r"[,}]", repeat[1:], maxsplit=1)[0])
            return min(max(least, has_group), _MOST_REPEATED)
        return 1 if repeat == "+" or has_group else 0


_FIRST = {"d": "0", "w": "a", "s": " ", "D": "x", "W": " ", "S": "x"}
_CONTROL = {"t": "\t", "n": "\n", "r": "\r"}
_SOME = "x0 a_-.:,=@#%~!/<>+*?(){}$\"'"


def _sign(token: Token) -> str:
    """One character that a token stands for."""
    if token["begin"] or token["end"]:
        return ""
    if token["any"]:
        return "x"
    if token["digit"] or token["blank"]:
        return _FIRST[token["digit"] or token["blank"]]
    if token["escape"]:
        sign = token["escape"][1]
        return _CONTROL.get(sign, sign)
    if token["literal"]:
        return token["literal"]
    return next((each for each in _SOME if is_found(each, f"^{token[0]}$")), "x")
