"""Advice for filters, clauses and durations."""

from __future__ import annotations

import re

from ensue.lang.expressions.aggregates import AGGREGATES
from ensue.lang.parsing.advice.mistake import Mistake
from ensue.lang.parsing.rewriting.durations import written_duration

_ABSENCE = (
    "what must not come is named in a clause: `a ; c unless b` is c after a with no b between, "
    "and `a ; timeout(30 s) unless b` is a with no b for 30 s"
)


def repetition(mistake: Mistake) -> str | None:
    """`f{,5}`, `f{5+}`, `f{5 {`: brackets that are taken for the body of the rule."""
    port = re.search(r"(\w+)\s*\{\s*\Z", mistake.before)
    if port is None or "_PUSH" not in mistake.accepted:
        return None
    between = re.match(r"(?P<least>\d+)\s*(?:\.\.+|-)\s*(?P<most>\d+)\s*\}", mistake.rest)
    if between:
        least, most = between["least"], between["most"]
        return f"write `{port[1]}{{{least}}}` and the clause `having count({port[1]}) <= {most}`"
    if re.match(r"(?:>=?\s*\d*|\*|,)\s*\}", mistake.rest):
        return f"write `{port[1]}{{3}}`: a number of events, and more match as well"
    found = re.match(r"(?P<most>,\s*)?(?P<count>\d+)\s*\+?\s*\}", mistake.rest)
    if found is None:
        unclosed = re.match(r"\d+(?=\s*(?:\{|;|\)|\w))", mistake.rest)
        return f"close the brackets: `{port[1]}{{{unclosed[0]}}}`" if unclosed else None
    if found["most"]:
        return f"write `{port[1]} having count({port[1]}) <= {found['count']}`"
    return f"write `{port[1]}{{{found['count']}}}`: more events match as well"


def port_condition(mistake: Mistake) -> str | None:
    """`a where n > 3 ; b`, `a[n > 3]`, `a(n > 3)`, `unless c where n > 3`."""
    port = mistake.word_before
    declared = mistake.ports.get(port)
    if declared is None or mistake.found.lower() not in {"where", "[", "(", "if", "when"}:
        return None
    if not (mistake.in_filter or re.search(r"\bunless\s[\w\s,]*\Z", mistake.before)):
        return None
    rest = re.sub(r"^(?:where|if|when)\b|^[\[(]", "", mistake.rest, flags=re.IGNORECASE)
    condition = re.split(r"[\]{};+|\n]|\b(?:within|by|bind|keep|unless|having)\b", rest)[0].strip()
    while condition.count(")") > condition.count("("):
        condition = condition[: condition.rindex(")")].strip()
    if not re.search(r"[<>=]|\b(?:like|in|is)\b", condition, re.IGNORECASE):
        return None
    if re.match(rf"(?:{'|'.join(mistake.ports)})\.", condition):
        return None
    return f"a condition on one event stands at its port: `{declared} {port} where {condition}`"


def port_attribute(mistake: Mistake) -> str | None:
    """`a.user ; b`."""
    port = mistake.word_before
    if mistake.in_filter and mistake.found == "." and port in mistake.ports:
        return f"a filter names ports, not their attributes: write `{port}` here"
    return None


def absence(mistake: Mistake) -> str | None:
    is_not = re.search(r"\bnot\s+\Z", mistake.before, re.IGNORECASE)
    in_a_filter = mistake.in_filter or mistake.accepted & {"_FILTER_TIMEOUT"}
    if mistake.found == "!" and (in_a_filter or mistake.accepted == {"LPAR", "NAME"}):
        return _ABSENCE
    return _ABSENCE if is_not and in_a_filter else None


def operator(mistake: Mistake) -> str | None:
    here, word = mistake.rest[:2], mistake.found.lower()
    if mistake.in_filter and here in ("->", "=>", "~>"):
        return "`a ; b` says that `b` comes after `a`"
    if mistake.in_filter and (here in {"&&", "& "} or word in {"&", "and"}):
        return "`a + b` asks for both in any order, `a ; b` for one after the other"
    if mistake.in_filter and word in {"or", "xor"}:
        return "`a | b` asks for one of them"
    if mistake.in_filter and word == ",":
        return "ports are joined by `+`, `;` or `|`"
    if mistake.in_filter and word in {"*", "?"}:
        return "what may be missing is left out of a filter: `a*` and `a?` ask for nothing"
    if re.match(r"(?:\d+|all|any|one)\s+of\b", mistake.rest) or word == "of":
        return "`a | b` asks for one of them, `a + b` for all of them in any order"
    return None


def aggregate(mistake: Mistake) -> str | None:
    called = mistake.word_before.lower()
    if mistake.in_filter and mistake.found == "(" and called.upper() in AGGREGATES:
        port = mistake.first_port
        asked = port if called == "count" else f"{port}.name"
        return (
            "what is counted or added up is asked in a clause: "
            f"`{port} within 10 min having {called}({asked}) > 5`"
        )
    return None


def timeout(mistake: Mistake) -> str | None:
    if mistake.in_filter and mistake.found == "(" and mistake.word_before == "timeout":
        return "a `timeout` counts from what stands left of its `;`: write `a ; timeout(30 s)`"
    return None


def window(mistake: Mistake) -> str | None:
    """Windows of a number of events, or of other kinds than the time before an event."""
    word = mistake.found.lower()
    if word in {"tumbling", "tumble", "hopping", "hop"}:
        port = mistake.first_port
        return (
            "a window slides; for one that begins anew take a timer port, `every 5 min tick`, "
            f"and write `{port} ; tick within 5 min`"
        )
    is_length = re.match(r"#\s*length|#\s*length_batch", mistake.rest)
    if is_length and mistake.in_filter:
        return "a window is a time: `within 10 min`; the last n events are `a{n}` with `keep all`"
    return None


def unless_condition(mistake: Mistake) -> str | None:
    if mistake.found == "." and re.search(r"\bunless\s+[\w,\s]*\Z", mistake.before):
        port = mistake.word_before
        return (
            f"`unless` names a port: give the condition to the port, `Type {port} where ...`, "
            f"and write `unless {port}`"
        )
    return None


_CHOICES = {
    ("FIRST", "LAST", "LATEST"): (
        "`bind first`, `bind last` (without the clause) or `bind latest` says which event a port "
        "stands for; all of them are asked by aggregates such as `count(a)`"
    ),
    ("ALL", "LAST", "NONE"): (
        "`keep none` (without the clause), `keep last` or `keep all` says what is remembered "
        "after a trigger"
    ),
}


def choice(mistake: Mistake) -> str | None:
    return _CHOICES.get(tuple(sorted(mistake.accepted)))  # type: ignore[arg-type]


def unit(mistake: Mistake) -> str | None:
    if "DURATION" not in mistake.accepted:
        return None
    found = re.match(r"\d+(?:\.\d+)?\s*[A-Za-z]*", mistake.rest)
    if found is None and mistake.found[:1] in {"'", '"'}:
        return (
            "a duration is a number and a unit, as `5 min`; a timer counts from the first event, "
            "and for a time of day let a scheduler send an event"
        )
    if found is None:
        return "a duration is a number and a unit, as `30 s` or `5 min`"
    ours = written_duration(found[0])
    if ours:
        return f"write `{ours}`"
    if not float(re.match(r"[\d.]+", found[0])[0]):  # type: ignore[index]
        return "a duration is longer than zero; without `within` there is no window"
    return f"give the duration a unit, ms, s, min, h or d: `{found[0].split()[0]} s`"


_OUTPUT_WORDS = frozenset({"push", "emit", "select", "case", "return", "output"})


def key(mistake: Mistake) -> str | None:
    """A text behind `by` that is no attribute."""
    by = re.search(r"\bby\b[\w\s.,=]*\Z", mistake.before)
    if by is None or re.search(r"\b(?:within|bind|keep|unless|having)\b", by[0]):
        return None
    if mistake.found.lower() in _OUTPUT_WORDS:
        return None
    if mistake.found == "{":
        return "a key is named behind `by`: an attribute that all ports have, as `by user`"
    if mistake.found == "(":
        return (
            "a key is an attribute and is not computed: give the events an attribute that has the "
            "value, by their source or by a rule before this one"
        )
    return (
        "a key is an attribute: `by user`, `by a.user = b.account`, and further keys after commas; "
        "values are compared in `having`"
    )


def bracket(mistake: Mistake) -> str | None:
    """A bracket that closes nothing."""
    if mistake.found == ")" and "_WITHIN" in mistake.accepted and "RPAR" not in mistake.accepted:
        return "there is no `(` that it closes: leave it out"
    return None


def clause(mistake: Mistake) -> str | None:
    """A word that is no clause, where only clauses can follow."""
    is_clause = {"_WITHIN", "_HAVING"} <= mistake.accepted and not mistake.in_expression
    if not is_clause or not re.match(r"[A-Za-z_]", mistake.found):
        return None
    if mistake.found.lower() in _OUTPUT_WORDS:
        return "what is put out stands in braces: `{ case true: push new Out { ... }; }`"
    if mistake.in_filter:
        return (
            "ports are joined by `;`, `+` or `|`, and clauses follow: `within`, `by`, `bind`, "
            "`keep`, `unless`, `having`"
        )
    return "the clauses are `within`, `by`, `bind`, `keep`, `unless` and `having`"
