"""Rewrites a filter with its clauses.

The words of clauses are replaced first, so that the filter can be told from its clauses. Then the
operators, repetitions, absence and conditions of the filter are rewritten. What a filter cannot
express is moved into a clause: absence becomes `unless`, a count becomes `having`.
"""

from __future__ import annotations

import re
from itertools import pairwise

from ensue.lang.parsing.rewriting.chains import rewrite_chain
from ensue.lang.parsing.rewriting.conditions import rewrite_condition
from ensue.lang.parsing.rewriting.habits import Draft, habit, normal_durations

_CLAUSE = re.compile(r"\b(?:within|by|bind|keep|unless|having)\b")
_KEYWORDS = re.compile(r"\b(?:WITHIN|BY|BIND|KEEP|UNLESS|HAVING|TIMEOUT)\b")
_AGGREGATE = r"(?:count|distinct|sum|avg|min|max)"

_THEN = "`;` says that one comes after the other"
_ABSENCE = "`unless` names what must not come"
_WAITING = "`unless` names what must not come, and `timeout` for how long"
_COUNTED = "`x{n}` is `x` n times"
_KEY = "a key is named by `by`"
_TIME = r"\d+(?:\.\d+)?\s*[a-z]+"
_CLAUSE_WORDS = (
    habit(
        rf"^(?:no|not|without)\s+([a-z_]\w*)\s+(?:for|in|during)\s+({_TIME})",
        r"\1 ; timeout(\2) unless \1",
        _WAITING,
    ),
    habit(
        rf"(?:\band\s+)?\b(?:no|not|without)\s+([a-z_]\w*)\s+(?:for|in|during)\s+({_TIME})",
        r"timeout(\2) unless \1",
        _WAITING,
    ),
    habit(
        rf"^([a-z_]\w*)\s+within\s+({_TIME})\s+(?:of|after)\s+([a-z_]\w*)",
        r"\3 ; \1 within \2",
        _THEN,
    ),
    habit(
        rf"\b([a-z_]\w*)\s+session\s*\(?\s*({_TIME})\s*\)?",
        r"\1 ; timeout(\2) unless \1",
        "a session ends when nothing has come for a time",
    ),
    habit(r"\bwithin\s+(?:a\s+)?(?:sliding|last|the\s+last)\s+", "within ", "a window slides"),
    habit(r"\s+with\s+runs\s*=\s*(\d+)", r"{\1}", _COUNTED),
    habit(
        r"\s*[;,]\s*(?=(?:within|by|bind|keep|unless|having)\b|$)",
        " ",
        "nothing stands between clauses",
    ),
    habit(r"\s*\bnot\s*(?:followed\s*by|next)\s+", " ; !", _ABSENCE),
    habit(r"\s*\b(?:is\s+)?followed\s*by(?:\s*any)?\b\s*", " ; ", _THEN),
    habit(r"\b(?:group|partition|keyed|partitioned)\s+by\b", "by", _KEY),
    habit(r"(?<=[\w)}])\s+on\s+(?=[a-z_])", " by ", _KEY),
    habit(r"\s*\border\s+by\s+[\w.]+(?:\s+(?:asc|desc)\b)?", "", "events are read by their times"),
    habit(
        r"\b(?:with\s+)?(?:maxspan|timeframe|timespan|time_window)\b\s*[=:]?\s*",
        "within ",
        "a window is named by `within`",
    ),
    habit(
        r"(?<=[\w)}])\s+(?:until|without|except|but\s+no|and\s+no)\s+(?=\w)",
        " unless ",
        "`unless` names what must not come",
    ),
    habit(r"\bunless\s+(?:!|not\b)\s*", "unless ", "`unless` names what must not come"),
    habit(
        r"(?<=[\w)}])\s+(?:where|if|when|filter|with)\s+(?=[\w(!])",
        " having ",
        "`having` asks how events relate, `where` stands at a port and asks one event",
    ),
    habit(r"\bby\s*\(([\w.,\s=]+)\)", r"by \1", "keys stand without brackets"),
)
_OPERATORS = (
    habit(
        r"(?<![\w.])([a-z_]\w*)\s*=\s*[a-z_]\w*", r"\1", "a port has its type where it is declared"
    ),
    habit(
        r"^sample\s+(.+)$",
        lambda found: " + ".join(found[1].split()),
        "`+` asks for all in any order",
    ),
    habit(
        rf"([;>])\s*([a-z_]\w*)\s+after\s+({_TIME})",
        r"\1 timeout(\3) ; \2",
        "`x ; timeout(D)` waits for the clock",
    ),
    habit(r"\b([a-z_]\w*)\s+after\s+([a-z_]\w*)", r"\2 ; \1", _THEN),
    habit(r"\s*(?:→|⇒)\s*|\s+before\s+", " ; ", _THEN),
    habit(r"\s+(?:(?:inner\s+)?join|near)\s+", " + ", "`+` asks for both in any order"),
    habit(r"\s+union(?:\s+all)?\s+", " | ", "`|` asks for one of them"),
    habit(r"\bat\s+least\s+(?=\d)", "", ""),
    habit(rf"\btimeout\s+({_TIME})", r"timeout(\1)", "the time of a `timeout` stands in brackets"),
    habit(r"^\s*(?:every|sequence)\b\s*(?=[a-z_(])", "", "a rule starts over after each trigger"),
    habit(r"(?<=[;+|(])\s*every\b\s*(?=[a-z_(])", " ", "a rule starts over after each trigger"),
    habit(r"\s*(?:-+>|=+>|~+>|>>+|\bthen\b|\bnext\b)\s*", " ; ", _THEN),
    habit(r"\s*(?:&&?|\band\b)\s*", " + ", "`+` asks for both in any order"),
    habit(r"\s+or\s+", " | ", "`|` asks for one of them"),
    habit(r"([a-z_]\w*|\))\s*\*\s*(\d+)\b", r"\1{\2}", _COUNTED),
    habit(
        r"\b(?:after|wait(?:\s+for)?)\s*(\d+(?:\.\d+)?\s*[a-z]+)\b",
        r"timeout(\1)",
        "`x ; timeout(D)` waits for the clock",
    ),
    habit(r"\+\s*(?=timeout\s*\()", "; ", "a `timeout` counts from what stands left of its `;`"),
)
_REPETITIONS = (
    habit(r"\[\s*(\d+)\s*\]\s*([a-z_]\w*)", r"\2{\1}", _COUNTED),
    habit(r"([a-z_]\w*|\))\s*\[\s*(\d+)\s*\]", r"\1{\2}", _COUNTED),
    habit(r"(?<![\w{.(])(\d+)\s*(?:x|\*|times)?\s+([a-z_]\w*)\b", r"\2{\1}", _COUNTED),
    habit(r"([a-z_]\w*|\))\s+(?:times\s+|x)(\d+)\b", r"\1{\2}", _COUNTED),
    habit(r"([a-z_]\w*|\))\s+(\d+)\s*times\b", r"\1{\2}", _COUNTED),
    habit(
        r"([\w)}])(?:\s*\+(?=\s*(?:;|\||\)|$))|\+(?=\s+\w))",
        r"\1",
        "a part matches as soon as one event is there",
    ),
)
_KEYS = (
    habit(r"={2,3}", "=", "keys are joined by a single `=`"),
    habit(r"\s+and\s+", ", ", "a further key comes after a comma"),
)
_UNLESS = (
    habit(r"\(\s*([^()]*?)\s*\)", r"\1", "`unless` names ports, without brackets"),
    habit(r"\s*(?:\|\|?|&&?|\+|\bor\b|\band\b)\s*", ", ", "`unless` names ports, parted by commas"),
)
_OPTIONAL = re.compile(r"(?:[A-Za-z_]\w*|\([^()]*\))\s*[*?](?!\w)")
_ABSENT = re.compile(r"(?:!\s*|\b(?:not|no|NOT|NO)\s+)\(?\s*([A-Za-z_]\w*)\s*\)?")
_CONDITION = re.compile(
    rf"\b(?P<call>(?P<word>{_AGGREGATE})\s*\(\s*(?P<port>[A-Za-z_]\w*)(?:\.[\w.]+)?\s*\))"
    r"\s*(?P<test>(?:>=|<=|!=|<>|==?|<|>)\s*[\w.]+)",
    re.IGNORECASE,
)
_BEFORE_NOTHING = re.compile(r"\s*[;+](?=\s*(?:$|[)|;+]))")
_AFTER_NOTHING = re.compile(r"(^|[(|])\s*[;+]\s*")
_NOT_PORTS = re.compile(r"\btimeout\s*\([^)]*\)|\b\w+\s*:|\{[^}]*\}")


def rewrite_head(draft: Draft) -> None:
    """Rewrite a filter with its clauses; the text stays as it is if a name is no port."""
    before = draft.text
    _rewrite_all(draft)
    first = _CLAUSE.search(draft.text)
    written = draft.text[: first.start()] if first else draft.text
    if not set(re.findall(r"[A-Za-z_]\w*", _NOT_PORTS.sub(" ", written))) <= draft.ports:
        draft.text = before


def _rewrite_all(draft: Draft) -> None:
    draft.change(
        _KEYWORDS.sub(lambda found: found[0].lower(), draft.text),
        "the words of the language are written in lower case",
    )
    rewrite_chain(draft)
    draft.apply(_CLAUSE_WORDS)
    draft.change(_filter_first(draft.text), "clauses follow the filter")
    first = _CLAUSE.search(draft.text)
    at = first.start() if first else len(draft.text)
    written, clauses = draft.text[:at].strip(), draft.text[at:].strip()
    draft.text = written
    moved = _rewrite_filter(draft, clauses)
    written = draft.text
    draft.text = _rewrite_clauses(draft, clauses, moved)
    draft.text = f"{written} {draft.text}".strip()
    normal_durations(draft, "within|timeout")


_ONE_KEY = r"[A-Za-z_][\w.]*(?:\s*=\s*[A-Za-z_][\w.]*)*"
_FIRST_CLAUSE = re.compile(
    rf"""
      within\s+\d+(?:\.\d+)?\s*[a-z]+
    | within\s+\S+
    | by\s+{_ONE_KEY}(?:\s*,\s*{_ONE_KEY})*
    | bind\s+(?:first|last|latest)
    | keep\s+(?:none|last|all)
    | unless\s+[A-Za-z_]\w*(?:\s*,\s*[A-Za-z_]\w*)*
    """,
    re.VERBOSE,
)


def _filter_first(text: str) -> str:
    """`within 10 s by user a ; b` with the filter before its clauses."""
    clauses = []
    rest = text
    while (found := _FIRST_CLAUSE.match(rest)) and re.match(r"\s+[A-Za-z_(]", rest[found.end() :]):
        clauses.append(found[0])
        rest = rest[found.end() :].lstrip()
    if not clauses or _CLAUSE.match(rest):
        return text
    return f"{rest} {' '.join(clauses)}"


def _rewrite_filter(draft: Draft, clauses: str) -> list[str]:
    """Rewrite the filter in a draft; the clauses that it needs are returned."""
    moved: list[str] = []

    def condition(found: re.Match[str]) -> str:
        test = re.sub(r"^==", "=", found["test"])
        moved.append(f"having {found['call'].lower().split('(')[0]}({_inside(found)}) {test}")
        return found["port"]

    draft.change(
        _CONDITION.sub(condition, draft.text), "what is counted is asked in the clause `having`"
    )
    if moved:
        # `f count(f) > 5` names its port twice.
        draft.text = re.sub(r"\b([A-Za-z_]\w*)\s+\1\b", r"\1", draft.text)
    draft.apply(_OPERATORS)
    absent = [found[1] for found in _ABSENT.finditer(draft.text)]
    if absent:
        _leave_out_absent(draft, clauses)
        moved.append(f"unless {', '.join(dict.fromkeys(absent))}")
    draft.change(_OPTIONAL.sub("", draft.text), "what may be missing is left out")
    draft.apply(_REPETITIONS)
    _join_neighbours(draft)
    draft.text = _AFTER_NOTHING.sub(r"\1", _BEFORE_NOTHING.sub("", draft.text))
    draft.text = re.sub(r"\s*;\s*", " ; ", draft.text)
    return moved


def _inside(found: re.Match[str]) -> str:
    return found["call"].partition("(")[2].rstrip(") ").strip()


def _leave_out_absent(draft: Draft, clauses: str) -> None:
    """Remove absent ports from the filter; at its end, a timeout takes their place."""
    text = draft.text
    *_, last = _ABSENT.finditer(text)
    reason = _ABSENCE
    waits = re.search(r"timeout\s*\([^()]*\)\s*[;+]?\s*\Z", text[: last.start()])
    if not waits and not text[last.end() :].strip(" )") and text[: last.start()].strip(" ;+("):
        window = re.search(r"within\s+([^a-z]*[a-z]+)", clauses)
        time = window[1] if window else "30 s"
        text = f"{text[: last.start()].rstrip(' ;+')} ; timeout({time}){text[last.end() :]}"
        reason = _WAITING
    draft.change(_ABSENT.sub("", text), reason)


def _join_neighbours(draft: Draft) -> None:
    """`a b` as `a ; b`, and a list of ports as a sequence."""
    joined = re.sub(r"(\b[A-Za-z_]\w*|[)}])\s+(?=[A-Za-z_(])", r"\1 ; ", draft.text)
    draft.change(joined, _THEN)
    draft.change(
        re.sub(r"\s*,\s*", " ; ", draft.text),
        "`;` says that one comes after the other, `+` asks for both in any order",
    )


def _rewrite_clauses(draft: Draft, clauses: str, moved: list[str]) -> str:
    """The clauses with their conditions rewritten, and with conditions moved out of the filter."""
    starts = [found.start() for found in _CLAUSE.finditer(clauses)]
    parts = [clauses[a:b].strip() for a, b in pairwise([*starts, len(clauses)])]
    waits = any(each.startswith("unless") for each in moved) and "timeout" in draft.text
    done = []
    for part in parts:
        if waits and part.startswith("within"):
            continue
        if part.startswith("by"):
            draft.text = part
            draft.apply(_KEYS)
            part = draft.text
        if part.startswith("unless"):
            draft.text = part
            draft.apply(_UNLESS)
            part = draft.text
        if part.startswith("having"):
            draft.text = part
            rewrite_condition(draft)
            part = draft.text
        done.append(part)
    for part in moved:
        word = part.split()[0]
        same = next((n for n, each in enumerate(done) if each.startswith(word)), None)
        if same is None:
            done.append(part)
        else:
            link = "," if word == "unless" else " AND"
            done[same] += f"{link} {part.removeprefix(word).strip()}"
    return " ".join(done)
