"""What a habit is, and the habits in conditions and durations, which many parts share.

A `Draft` is a text on its way to a line of ours, with the reasons for what was changed. Texts in
quotes are taken out before patterns are looked for and put back at the end, so that no pattern
changes a constant of a comparison.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

Replacement = str | Callable[[re.Match[str]], str]

_QUOTED = re.compile(r""""(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""")
_COMMENT = re.compile(r"//[^\n]*|/\*[^*]*\*+(?:[^/*][^*]*\*+)*/")
_HIDDEN = re.compile("\ue000(\\d+)\ue001")

UNITS = {
    **dict.fromkeys(("ms", "msec", "millis", "millisecond", "milliseconds"), "ms"),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("m", "mn", "min", "mins", "minute", "minutes"), "min"),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), "h"),
    **dict.fromkeys(("d", "day", "days"), "d"),
}
SECONDS = {"ms": 0.001, "s": 1, "min": 60, "h": 3600, "d": 86_400}


@dataclass(frozen=True, slots=True)
class Habit:
    """A pattern, what to write instead, and why in a few words."""

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

        def hide(found: re.Match[str]) -> str:
            draft._quoted.append(found[0])
            return f"\ue000{len(draft._quoted) - 1}\ue001"

        draft.text = " ".join(_COMMENT.sub(" ", _QUOTED.sub(hide, text)).split())
        return draft

    def apply(self, habits: Iterable[Habit]) -> None:
        for each in habits:
            self.change(each.pattern.sub(each.instead, self.text), each.reason)

    def change(self, text: str, reason: str) -> None:
        """Take over a text; if that changes anything, the reason counts."""
        if text != self.text:
            self.text = text
            if reason and reason not in self.reasons:
                self.reasons.append(reason)

    def quoted(self, hidden: str) -> str:
        """The text in quotes that a mark stands for, without its quotes."""
        found = _HIDDEN.fullmatch(hidden)
        return self._quoted[int(found[1])][1:-1] if found else hidden

    def hide(self, quoted: str) -> str:
        self._quoted.append(quoted)
        return f"\ue000{len(self._quoted) - 1}\ue001"

    def line(self) -> str:
        """The text with its quoted parts put back, evenly spaced."""
        text = re.sub(r"\s+", " ", self.text).strip()
        return _HIDDEN.sub(lambda found: self._quoted[int(found[1])], text)


def duration(found: re.Match[str]) -> str:
    """`5m`, `5 minutes`, `INTERVAL '5' MINUTE` as a duration; unchanged without a known unit."""
    unit = UNITS.get(found["unit"].lower())
    return f"{found['number']} {unit}" if unit else found[0]


def normal_durations(draft: Draft, words: str) -> None:
    """Durations behind some words, as `within`, in the form of the language."""
    pattern = re.compile(
        rf"\b(?P<word>{words})\s*[=:]?\s*(?P<open>\(\s*)?(?:interval\s*)?"
        r"(?P<amount>(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[A-Za-z]+)\b"
        r"|\ue000\d+\ue001(?:\s*[A-Za-z]+\b)?)(?P<close>\s*\))?",
        re.IGNORECASE,
    )

    def written(found: re.Match[str]) -> str:
        amount = re.sub(_HIDDEN, lambda each: draft.quoted(each[0]), found["amount"])
        whole = re.fullmatch(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[A-Za-z]+)", amount)
        if whole is None or bool(found["open"]) != bool(found["close"]):
            return found[0]
        if found["word"].lower() == "timeout":
            return f"timeout({duration(whole)})"
        return f"{found['word']} {duration(whole)}"

    draft.change(pattern.sub(written, draft.text), "a duration is a number and ms, s, min, h or d")


def _seconds(found: re.Match[str]) -> str:
    unit = UNITS.get(found["unit"].lower())
    return f"{float(found['number']) * SECONDS[unit]:g}" if unit else found[0]


def _percent(found: re.Match[str]) -> str:
    return f"{float(found[1]) / 100:g}"


_NULL = "`IS NULL` asks whether a value is missing"
CONDITIONS = (
    habit(r"\s*={1,3}\s*(?:null|none|nil)\b", " IS NULL", _NULL),
    habit(r"\s*(?:!=|<>)\s*(?:null|none|nil)\b", " IS NOT NULL", _NULL),
    habit(r"={2,3}", "=", "values are compared by a single `=`"),
    habit(r"~=|=!|/=(?=\s*[\w\ue000])|\^=", "!=", "`!=` stands for not equal"),
    habit(r"&&", " AND ", "conditions are joined by `AND` and `OR`"),
    habit(r"\|\|", " OR ", "conditions are joined by `AND` and `OR`"),
    habit(r"!\s*(?=[(\w])", "NOT ", "a condition is negated by `NOT`"),
    habit(r"(?<![\w.])\.(?=\d)", "0.", "a number has a digit before its point"),
    habit(r"\b(\d+(?:\.\d+)?)\s*%(?!\s*\w)", _percent, "`%` is the remainder of a division"),
    habit(
        r"\bcount\s*\(\s*distinct\s+(\w+\.[\w.]+)\s*\)",
        r"distinct(\1)",
        "`distinct` counts different values",
    ),
    habit(
        r"(?<=[<>=])\s*(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[a-z]+)\b(?!\s*[(.])",
        lambda found: f" {_seconds(found)}" if found["unit"].lower() in UNITS else found[0],
        "the time between two events is a number of seconds",
    ),
    habit(r"\bin\s*\[([^\]]*)\]", r"IN (\1)", "what `IN` chooses from stands in round brackets"),
    habit(r"`(\w+)`", r"\1", "names stand without quotes"),
)


def like(before: str, after: str) -> Callable[[Draft, re.Match[str]], str]:
    """`x contains 'y'` as a pattern: `x LIKE '%y%'`."""

    def written(draft: Draft, found: re.Match[str]) -> str:
        text = re.sub(r"([%_])", r"\\\1", draft.quoted(found["text"]))
        return f"{found['name']} LIKE " + draft.hide(f"'{before}{text}{after}'")

    return written


_TEXT_TESTS: tuple[tuple[re.Pattern[str], Callable[[Draft, re.Match[str]], str], str], ...] = tuple(
    (
        re.compile(rf"(?P<name>[\w.]+)\s+{word}\s*:?\s*(?P<text>\ue000\d+\ue001)", re.IGNORECASE),
        like(*around),
        "in a pattern of `LIKE`, `%` stands for any text",
    )
    for word, around in {
        "contains": ("%", "%"),
        "starts?_?with": ("", "%"),
        "ends?_?with": ("%", ""),
    }.items()
)
_REGULAR = re.compile(r"\s*(?:=~|~|\b(?:regexp?|rlike)\b)\s*(?=\ue000)", re.IGNORECASE)


def rewrite_condition(draft: Draft) -> None:
    """A condition over one event or several, as CESQL has it."""
    draft.change(_REGULAR.sub(" MATCHES ", draft.text), "`MATCHES` asks for a regular expression")
    draft.apply(CONDITIONS)
    for pattern, written, reason in _TEXT_TESTS:
        draft.change(pattern.sub(lambda found, w=written: w(draft, found), draft.text), reason)  # type: ignore[misc]
