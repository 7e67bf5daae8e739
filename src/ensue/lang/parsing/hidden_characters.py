"""Hidden characters, because of which a text is not what it seems.

In comes the text of a library; out go findings, one for each such character, also in comments and
constants. There are three kinds: characters that change the direction of text; characters that
break a line for some readers only, or control a terminal; and characters that are not shown. Events
may have the last two kinds in their texts, so that in a constant they draw a warning; all others
are errors. The joiners of scripts and emoji (U+200C, U+200D) and variation selectors (U+FE00 to
U+FE0F) are allowed: texts in many languages need them.
"""

from __future__ import annotations

import re
import unicodedata

from ensue.lang.diagnostics import Diagnostics
from ensue.lang.parsing.cutting import COMMENT
from ensue.lang.source import Span

TURNS_TEXT = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""The bidirectional controls of Unicode."""

STEERS = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029"
"""Control characters but tab and line feed, and the line separators."""

IS_UNSEEN = (
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u2060-\u2065\u206a-\u206f"
    "\u3164\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff"
)
"""Characters without a width or a glyph."""

_DECEIVING = re.compile(f"(?P<turns>[{TURNS_TEXT}])|(?P<steers>[{STEERS}]|\r(?!\n))|[{IS_UNSEEN}]")
_QUOTED = re.compile(rf"""(?P<constant>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|{COMMENT}""")
_TAKE_OUT = "take it out; no rule needs it, not even in a comment"


def report_hidden_characters(text: str, diagnostics: Diagnostics) -> None:
    """Report every hidden character."""
    in_constants = _InConstants(text)
    for found in _DECEIVING.finditer(text):
        code = f"U+{ord(found[0]):04X}"
        span = Span(*found.span())
        if found["turns"]:
            diagnostics.error(
                "text-direction",
                f"the character {code} turns the direction in which text is shown, so that a reader"
                " sees another rule than this one",
                span,
                "take it out; no rule needs it, not even in a text or a comment",
            )
            continue
        does, hint = "is not shown", _TAKE_OUT
        if found["steers"]:
            does = "breaks lines or steers a terminal"
            hint = "take it out; a line ends with a line feed, which a carriage return may precede"
        name = unicodedata.name(found[0], "")
        message = (
            f"the character {code}{f' ({name.lower()})' if name else ''} {does}, so that a reader"
            " may see another rule than this one"
        )
        if in_constants.has(span.start):
            diagnostics.warning(
                "hidden-character", message, span, "take it out, unless the events have it, too"
            )
        else:
            diagnostics.error("hidden-character", message, span, hint)


class _InConstants:
    """Whether places of a text are inside of quotes; they must be asked for in order."""

    def __init__(self, text: str) -> None:
        self._constants = (each.span() for each in _QUOTED.finditer(text) if each["constant"])
        self._begin = self._end = -1

    def has(self, place: int) -> bool:
        while self._end <= place:
            self._begin, self._end = next(self._constants, (place + 1, place + 1))
        return self._begin <= place
