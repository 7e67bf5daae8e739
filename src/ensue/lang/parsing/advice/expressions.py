"""Advice for conditions and values."""

from __future__ import annotations

import re

from ensue.lang.expressions.text.parsing import window_hint
from ensue.lang.parsing.advice.mistake import Mistake
from ensue.lang.parsing.rewriting.durations import UNITS


def condition(mistake: Mistake) -> str | None:
    here, found = mistake.rest[:2], mistake.found
    if "LOGIC" in mistake.accepted and here in {"&&", "||"}:
        return "conditions are joined by `AND` and `OR`"
    if (
        "LOGIC" in mistake.accepted
        and re.match(r"\w+", found)
        and re.search(r"\d\s*\Z", mistake.before)
    ):
        unit = UNITS.get(found.lower())
        if unit is not None:
            return "a condition has no durations: `b.time - a.time` is a number of seconds"
    if "_EXISTS" in mistake.accepted and found == "=" and mistake.before.rstrip().endswith("="):
        return "values are compared by a single `=`"
    if "_EXISTS" in mistake.accepted and found == "!":
        return "a condition is negated by `NOT`"
    if found == "(" and (unit := window_hint(mistake.before)) is not None:
        return unit
    return None


def count_of_all(mistake: Mistake) -> str | None:
    counted = re.search(r"\bcount\s*\(\s*(distinct\s+)?\Z", mistake.before, re.IGNORECASE)
    if counted is None:
        return None
    if counted[1] and re.fullmatch(r"[A-Za-z_]\w*", mistake.found):
        asked = f"distinct({mistake.first_port}.{mistake.found})"
        return f"write `{asked}`: an aggregate names the port whose events it is over"
    if mistake.found == "*":
        return f"name the port whose events are counted: `count({mistake.first_port})`"
    return None


def aggregate_condition(mistake: Mistake) -> str | None:
    """`count(a where ok)`."""
    called = re.search(r"\b(\w+)\s*\(\s*([\w.]+)\s*\Z", mistake.before)
    if called and mistake.found.lower() in {"where", "if", "filter", "when"}:
        port = called[2].split(".")[0]
        declared = mistake.ports.get(port)
        if declared:
            return (
                f"an aggregate is over all events of a port: declare one for the others, "
                f"`{declared} {port}2 where ...`, and ask `{called[1]}({port}2)`"
            )
    return None


_BRANCHES = (
    "a value has no branches: declare a port for each, `Type high where n > 3`, label it in the "
    "filter, `x:high | y:low`, and write a `case` for each label"
)


def branch(mistake: Mistake) -> str | None:
    """`CASE WHEN x THEN y END`, `x ? y : z`."""
    if mistake.in_expression and mistake.found == "?":
        return _BRANCHES
    is_case = re.search(r"\b(?:case|if)\s*\Z", mistake.before, re.IGNORECASE)
    if mistake.in_expression and is_case and mistake.found.lower() in {"when", "a"}:
        return _BRANCHES
    return None


def no_value(mistake: Mistake) -> str | None:
    """Parameters, powers, indexes of lists, queries inside of a condition."""
    found, before = mistake.found, mistake.before
    if not mistake.in_expression:
        return None
    if found in {"$", "@", "{", "%"} and re.match(r"[$@]\{?\w+|\{\{", mistake.rest):
        return (
            "a rule has no parameters: write the value itself, or build the rule in Python with "
            "`ensue.build`"
        )
    if found == "*" and before.endswith("*"):
        return "there is no power: write `x * x`"
    if found == "[":
        port = mistake.word_before
        return (
            f"events of a port have no numbers: `first({port}.name)` and `last({port}.name)` are "
            "values of its first and last event, and a port for each event tells the others"
        )
    if re.search(r"\(\s*select\s+\Z", before, re.IGNORECASE):
        return "a predicate asks one event: give the other events a port, and compare in `having`"
    if re.search(r"\binterval\s+\Z", before, re.IGNORECASE):
        return "the time of an event is its `time`; `b.time - a.time` is a number of seconds"
    if found[:1] in {"'", '"'} and mistake.word_before.lower() == "f":
        return "texts are joined by `CONCAT(a.user, ' and ', b.user)`"
    if re.fullmatch(r"[A-Za-z]{2,4}", found) and sorted(found.lower()) in (
        sorted("and"),
        sorted("or"),
    ):
        return "did you mean `AND`?" if len(found) == 3 else "did you mean `OR`?"
    return None


def nothing_there(mistake: Mistake) -> str | None:
    """A condition that is missing, or is no condition."""
    found = mistake.found
    if "_EXISTS" in mistake.accepted and found in {")", "{", "}", ",", ";"}:
        return "a value or a condition is missing before it, as `n > 3`"
    if re.search(r"\bis\s+(?:not\s+)?\Z", mistake.before, re.IGNORECASE):
        return "`IS` asks for `NULL` only: values are compared by `=` and `!=`"
    if re.search(r"\bin\s+\Z", mistake.before, re.IGNORECASE) and mistake.accepted == {"LPAR"}:
        braces = re.match(r"\{\s*([^{}]*?)\s*\}", mistake.rest)
        inside = braces[1] if braces is not None else found
        if re.search(r"(?:\bmodes\s*\{|[};])\s*in\s+\Z", mistake.before):
            return f"what begins a mode stands in round brackets: `in ({inside}) do {{ ... }}`"
        return f"what `IN` chooses from stands in round brackets: `IN ({inside})`"
    return None


def number(mistake: Mistake) -> str | None:
    """`1,000`, and `BETWEEN 3, 5`, whose commas are taken for those between ports."""
    at_port = mistake.accepted == {"EVERY", "DEADLINE", "NAME"}
    thousands = re.search(r"(\d{1,3}),\Z", mistake.before)
    if at_port and thousands and re.fullmatch(r"\d{3}", mistake.found):
        return f"a number is written without separators: `{thousands[1]}{mistake.found}`"
    low = re.search(r"\bbetween\s+([\w.'\"]+)\s*\Z", mistake.before, re.IGNORECASE)
    if low and mistake.found == ",":
        high = re.match(r",\s*([\w.'\"]+)", mistake.rest)
        return f"write `BETWEEN {low[1]} AND {high[1] if high else '...'}`"
    return None
