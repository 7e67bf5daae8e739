"""Habits of other languages, and the draft of a line to which they are applied.

A `Draft` is a text that is being rewritten, with the reasons for its changes. Quoted texts are
taken out before patterns are applied and put back at the end, so that no pattern changes a
constant. Durations, which occur in many parts, are rewritten here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ensue.lang.parsing.rewriting.durations import AMOUNT, CLOCK, ISO, written_duration

Replacement = str | Callable[[re.Match[str]], str]

_QUOTED = re.compile(r""""(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""")
_COMMENT = re.compile(r"//[^\n]*|/\*[^*]*\*+(?:[^/*][^*]*\*+)*/")
HIDDEN = "\ue000\\d+\ue001"
_HIDDEN = re.compile("\ue000(\\d+)\ue001")
# Quotes as word processors write them, by the plain ones.
_DOUBLE, _SINGLE = "\u201c\u201d\u201e\u00ab\u00bb", "\u2018\u2019\u201a"
_STRAIGHT = str.maketrans(_DOUBLE + _SINGLE, '"' * len(_DOUBLE) + "'" * len(_SINGLE))


@dataclass(frozen=True, slots=True)
class Habit:
    """A pattern, its replacement, and the reason in a few words."""

    pattern: re.Pattern[str]
    instead: Replacement
    reason: str


def habit(pattern: str, instead: Replacement, reason: str) -> Habit:
    return Habit(re.compile(pattern, re.IGNORECASE), instead, reason)


@dataclass
class Draft:
    """A text that is being rewritten, the ports it may name, and the reasons so far, each once."""

    text: str
    ports: frozenset[str] = frozenset()
    reasons: list[str] = field(default_factory=list)
    _quoted: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, text: str, ports: frozenset[str] = frozenset()) -> Draft:
        """A draft on one line, without comments and with its quoted texts taken out."""
        draft = cls("", ports)
        straight = text.translate(_STRAIGHT)
        if straight != text:
            draft.reasons.append("a text stands in straight quotes")

        def hide(found: re.Match[str]) -> str:
            draft._quoted.append(found[0])
            return f"\ue000{len(draft._quoted) - 1}\ue001"

        draft.text = " ".join(_COMMENT.sub(" ", _QUOTED.sub(hide, straight)).split())
        return draft

    def apply(self, habits: Iterable[Habit]) -> None:
        for each in habits:
            self.change(each.pattern.sub(each.instead, self.text), each.reason)

    def change(self, text: str, reason: str) -> None:
        """Set the text, and add the reason if the text has changed."""
        if text != self.text:
            self.text = text
            if reason and reason not in self.reasons:
                self.reasons.append(reason)

    def quoted(self, hidden: str) -> str:
        """The quoted text that a mark stands for, without its quotes."""
        found = _HIDDEN.fullmatch(hidden)
        return self._quoted[int(found[1])][1:-1] if found else hidden

    def hide(self, quoted: str) -> str:
        self._quoted.append(quoted)
        return f"\ue000{len(self._quoted) - 1}\ue001"

    def line(self) -> str:
        """The text with its quoted parts put back, evenly spaced."""
        text = re.sub(r"\s+", " ", self.text).strip()
        return _HIDDEN.sub(lambda found: self._quoted[int(found[1])], text)


def normal_durations(draft: Draft, words: str) -> None:
    """Rewrite durations behind certain words, such as `within`."""
    pattern = re.compile(
        rf"\b(?P<word>{words})\s*[=:]?\s*(?P<open>\(\s*)?(?:interval\s*)?"
        rf"(?P<amount>{CLOCK}|{ISO}(?!\w)|{AMOUNT}(?!\w)|{HIDDEN}(?:\s*[A-Za-z]+\b)?)"
        r"(?P<close>\s*\))?",
        re.IGNORECASE,
    )

    def written(found: re.Match[str]) -> str:
        amount = re.sub(_HIDDEN, lambda each: draft.quoted(each[0]), found["amount"])
        is_timeout = found["word"].lower() == "timeout"
        closed = bool(found["open"]) == bool(found["close"])
        ours = written_duration(amount) if closed else None
        if ours is None:
            return found[0]
        return f"timeout({ours})" if is_timeout else f"{found['word']} {ours}"

    draft.change(pattern.sub(written, draft.text), "a duration is a number and ms, s, min, h or d")
