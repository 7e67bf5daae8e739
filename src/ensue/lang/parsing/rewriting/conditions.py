"""Rewrites conditions of other languages, over one event or several, as CESQL.

Values of `push new` are rewritten here too, since both are expressions. What no expression can
express (a branch, the clock of the computer, a power) is left to `ensue.lang.parsing.advice`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ensue.lang.parsing.rewriting.durations import SECONDS, UNITS
from ensue.lang.parsing.rewriting.habits import HIDDEN, Draft, habit

_CASTS = {
    **dict.fromkeys(("int", "integer", "long", "bigint", "smallint", "int64"), "INT"),
    **dict.fromkeys(("string", "str", "text", "varchar", "char"), "STRING"),
    **dict.fromkeys(("bool", "boolean"), "BOOL"),
}


def _seconds(found: re.Match[str]) -> str:
    unit = UNITS.get(found["unit"].lower())
    return f"{float(found['number']) * SECONDS[unit]:g}" if unit else found[0]


def _percent(found: re.Match[str]) -> str:
    return f"{float(found[1]) / 100:g}"


def _changed_by(found: re.Match[str]) -> str:
    """`a.price - 5%` as the product that is meant."""
    share = float(found["percent"]) / 100
    return f"{1 - share if found['sign'] == '-' else 1 + share:g} * {found['name']}"


def _cast(found: re.Match[str]) -> str:
    function = _CASTS.get(found["type"].lower())
    return f"{function}({found['name']})" if function else found[0]


_CAST = "a value is cast by `INT(...)`, `STRING(...)` or `BOOL(...)`"
VALUES = (
    habit(
        r"\bextract\s*\(\s*(hour|minute)\s+from\s+([\w.]+)\s*\)",
        lambda found: f"{found[1].upper()}({found[2]})",
        "`HOUR` and `MINUTE` take a time",
    ),
    habit(r"\bcast\s*\(\s*(?P<name>[\w.]+)\s+as\s+(?P<type>\w+)\s*\)", _cast, _CAST),
    habit(r"(?P<name>[\w.]+)::(?P<type>\w+)", _cast, _CAST),
)
_NULL = "`IS NULL` asks whether a value is missing"
CONDITIONS = (
    *VALUES,
    habit(r"\s*={1,3}\s*(?:null|none|nil)\b", " IS NULL", _NULL),
    habit(r"\s*(?:!=|<>)\s*(?:null|none|nil)\b", " IS NOT NULL", _NULL),
    habit(r"\s*(?:≠|=/=)\s*", " != ", "`!=` stands for not equal"),
    habit(r"\s*(?:≥|=>)\s*", " >= ", "`>=` stands for at least"),
    habit(r"\s*(?:≤|=<)\s*", " <= ", "`<=` stands for at most"),
    habit(r"={2,3}", "=", "values are compared by a single `=`"),
    habit(r"~=|=!|/=(?=\s*[\w\ue000])|\^=", "!=", "`!=` stands for not equal"),
    habit(r"&&", " AND ", "conditions are joined by `AND` and `OR`"),
    habit(r"\|\|", " OR ", "conditions are joined by `AND` and `OR`"),
    habit(r"!\s*(?=[(\w])", "NOT ", "a condition is negated by `NOT`"),
    habit(r"(?<![\w.])\.(?=\d)", "0.", "a number has a digit before its point"),
    habit(r"(?<=\d)_(?=\d)", "", "a number is written without separators"),
    habit(
        r"(?P<name>[\w.]+)\s*(?P<sign>[+-])\s*(?P<percent>\d+(?:\.\d+)?)\s*%(?!\s*[\w(])",
        _changed_by,
        "`%` is the remainder of a division",
    ),
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
    habit(
        r"\bbetween\s+([\w.\ue000\ue001]+)\s*,\s*([\w.\ue000\ue001]+)",
        r"BETWEEN \1 AND \2",
        "the bounds of `BETWEEN` are joined by `AND`",
    ),
)

_Written = Callable[[Draft, re.Match[str]], str]


def like(before: str, after: str) -> _Written:
    """`x contains 'y'` as a pattern: `x LIKE '%y%'`."""

    def written(draft: Draft, found: re.Match[str]) -> str:
        text = re.sub(r"([%_])", r"\\\1", draft.quoted(found["text"]))
        return f"{found['name']} LIKE " + draft.hide(f"'{before}{text}{after}'")

    return written


def _wildcards(draft: Draft, found: re.Match[str]) -> str:
    """`x : 'a*'` as a pattern; without a wildcard as a comparison."""
    text = draft.quoted(found["text"])
    if not re.search(r"[*?]", text):
        return f"{found['name']} = {found['text']}"
    pattern = re.sub(r"([%_])", r"\\\1", text).replace("*", "%").replace("?", "_")
    return f"{found['name']} LIKE " + draft.hide(f"'{pattern}'")


def _lower(draft: Draft, found: re.Match[str]) -> str:
    text = draft.quoted(found["text"]).lower().replace("*", "%")
    return f"LOWER({found['name']}) LIKE " + draft.hide(f"'{text}'")


def _regular(draft: Draft, found: re.Match[str]) -> str:
    quote = "'" if "'" not in found["text"] else '"'
    return " MATCHES " + draft.hide(f"{quote}{found['text']}{quote}")


def _doubled_quote(draft: Draft, found: re.Match[str]) -> str:
    """`'it''s'`, which is read as two texts."""
    first, second = draft.quoted(found["first"]), draft.quoted(found["second"])
    return draft.hide(f"'{first}\\'{second}'")


def _instant(draft: Draft, found: re.Match[str]) -> str:
    text = draft.quoted(found["text"]).strip()
    day = re.fullmatch(r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d:\d\d(?:\.\d+)?))?Z?", text)
    return f"{day[1]}T{day[2] or '00:00:00'}Z" if day else found[0]


_TEXT = rf"(?P<text>{HIDDEN})"
_NAME = r"(?P<name>[\w.]+)"
_PATTERN = "in a pattern of `LIKE`, `%` stands for any text"
_ONE_OF = "`IN` asks for one of some values"
_TEXT_TESTS: tuple[tuple[re.Pattern[str], _Written, str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), written, reason)
    for pattern, written, reason in (
        (rf"{_NAME}\s*[\s|]\s*contains\s*:?\s*{_TEXT}", like("%", "%"), _PATTERN),
        (rf"{_NAME}\s*[\s|]\s*starts?_?with\s*:?\s*{_TEXT}", like("", "%"), _PATTERN),
        (rf"{_NAME}\s*[\s|]\s*ends?_?with\s*:?\s*{_TEXT}", like("%", ""), _PATTERN),
        (
            rf"{_NAME}\s+(?:ilike|like~)\s*{_TEXT}",
            _lower,
            "`LIKE` minds the case: ask for the text in lower case",
        ),
        (
            rf"(?P<first>{HIDDEN})(?P<second>{HIDDEN})",
            _doubled_quote,
            "a quote inside of a text stands behind `\\`",
        ),
        (rf"{_NAME}\s*:\s*{_TEXT}", _wildcards, _PATTERN),
        (rf"{_NAME}\s*:\s*(?=\()", lambda _, found: f"{found['name']} IN ", _ONE_OF),
        (
            r"\s*(?:=~|~)\s*/(?P<text>(?:\\.|[^/\n])+)/\w*",
            _regular,
            "`MATCHES` asks for a regular expression",
        ),
        (
            rf"\b(?:timestamp|date|datetime)\s*\(?\s*{_TEXT}\s*\)?",
            _instant,
            "a time is written without quotes",
        ),
    )
)
_REGULAR = re.compile(r"\s*(?:=~|~|\b(?:regexp?|rlike)\b)\s*(?=\ue000)", re.IGNORECASE)


def rewrite_condition(draft: Draft) -> None:
    """Rewrite a condition over one event or several as CESQL."""
    for pattern, written, reason in _TEXT_TESTS:
        draft.change(pattern.sub(lambda found, w=written: w(draft, found), draft.text), reason)  # type: ignore[misc]
    draft.change(_REGULAR.sub(" MATCHES ", draft.text), "`MATCHES` asks for a regular expression")
    draft.apply(CONDITIONS)
