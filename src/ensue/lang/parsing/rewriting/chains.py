"""Rewrites method chains of Flink CEP and patterns of Esper as a filter with its clauses.

In comes `begin("a").followedBy("b").within(Time.minutes(5))` or
`every a=A -> (timer:interval(5 min) and not b)`; out goes a text that `heads` rewrites further.
"""

from __future__ import annotations

import re

from ensue.lang.parsing.rewriting.habits import HIDDEN, Draft, habit

_THEN = "`;` says that one comes after the other"
_WINDOW = "a window is named by `within`"
_WAITING = "`x ; timeout(D)` waits for the clock"
_METHODS = {
    "begin": ("{}", _THEN),
    **dict.fromkeys(("next", "followedby", "followedbyany"), (" ; {}", _THEN)),
    **dict.fromkeys(("notnext", "notfollowedby"), (" ; !{}", "`unless` names what must not come")),
    **dict.fromkeys(("times", "timesormore"), ("{{{}}}", "`x{n}` is `x` n times")),
    **dict.fromkeys(
        ("oneormore", "greedy", "allowcombinations", "consecutive"),
        ("", "a part matches as soon as one event is there"),
    ),
    "optional": ("?", "what may be missing is left out"),
    "within": (" within {}", _WINDOW),
}
_METHOD = re.compile(
    rf"(?:^|\.)\s*(?P<method>{'|'.join(_METHODS)})\s*\(\s*(?P<inside>[^()]*?)\s*\)", re.IGNORECASE
)
_VIEWS = (
    habit(
        r"\b(?:Time|Duration)\.(?:of)?(\w+)\s*\(\s*(\d+)\s*\)",
        r"\2 \1",
        "a duration is a number and ms, s, min, h or d",
    ),
    habit(r"\bpattern\s*\[(.*?)\](?=[^\]]*$)", r"\1", ""),
    habit(
        r"\(?\s*\btimer:interval\s*\(([^()]*)\)\s*and\s+not\s+([a-z_]\w*)\s*\)?",
        r" timeout(\1) unless \2",
        _WAITING,
    ),
    habit(r"\btimer:interval\s*\(", "timeout(", _WAITING),
    habit(r"\bwhere\s+timer:within\s*\(([^()]*)\)", r"within \1", _WINDOW),
    habit(r"\s*(?:#|\.win:)(?:time|time_batch|ext_timed)\s*\(([^()]*)\)", r" within \1", _WINDOW),
)


def rewrite_chain(draft: Draft) -> None:
    """Calls of methods and views as operators and clauses."""
    draft.apply(_VIEWS)

    def written(found: re.Match[str]) -> str:
        instead, reason = _METHODS[found["method"].lower()]
        inside = re.sub(HIDDEN, lambda each: draft.quoted(each[0]), found["inside"])
        reasons.append(reason)
        return instead.format(inside)

    reasons: list[str] = []
    text = _METHOD.sub(written, draft.text)
    if reasons:
        draft.change(text, reasons[0])
