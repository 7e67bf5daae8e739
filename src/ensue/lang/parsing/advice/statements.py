"""Advice for the body of a rule: cases, labels and what is put out."""

from __future__ import annotations

import re

from ensue.lang.parsing.advice.mistake import Mistake

_CONDITIONS = frozenset({"if", "when", "where", "unless"})
_OUTPUTS = frozenset(
    ["select", "alert", "print", "log", "emit", "output", "send", "return", "notify", "raise"]
)
_CLAUSES = frozenset({"within", "by", "bind", "keep", "having", "group"})


def labels(mistake: Mistake) -> str | None:
    in_labels = "AMPERSAND" in mistake.accepted
    doubled = mistake.before[-1:] == mistake.found and mistake.found in {"&", "|"}
    if (in_labels and mistake.found.lower() in {"and", "or", "||"}) or doubled:
        return "labels are joined by `&` and `|`, and `!` stands for not"
    if in_labels and mistake.word_before == "not":
        return f"`!` stands for not: `case !{mistake.found}:`"
    if in_labels and mistake.found in {";", "{"}:
        return "the labels of a case end with `:`, and its statements follow: `case true: push a;`"
    if in_labels and re.match(r"[.<>=(]", mistake.found):
        return (
            "a case asks for labels of the filter, or is `case true:`; what an event must have is "
            "asked by `where` at its port, and how events relate by the clause `having`"
        )
    return None


def statement(mistake: Mistake) -> str | None:
    if "_PUSH" not in mistake.accepted or "RBRACE" not in mistake.accepted:
        return None
    word = mistake.found.lower()
    if word in _OUTPUTS:
        return f"an event is put out by `push new {mistake.output_type} {{ name = a.name, ... }};`"
    if word in _CONDITIONS:
        return (
            "a condition stands before the body: `where` at a port for one event, the clause "
            "`having` for several"
        )
    if word in _CLAUSES:
        return f"the clause `{word}` stands before the `{{` of the body"
    return None


_EXPRESSIONS = frozenset({"accumulate", "select", "sequential", "parallel", "repeat", "notify"})


def ecl(mistake: Mistake) -> str | None:
    """The words of a `correlation` in an `ecl`, and the other way round."""
    head, written = mistake.head, mistake.before
    if re.search(rf"\b({'|'.join(sorted(_EXPRESSIONS))})\s*\{{\s*\Z", written) and (
        "_PUSH" in mistake.accepted and re.match(r"\s*\w+\s+correlation\b", head)
    ):
        return "this is an expression of an `ecl`: write `Type ecl Name (Type a) { ... }`"
    if not re.match(r"\s*\w+\s+ecl\b", head) or "{" not in head:
        return None
    if mistake.found == "unless":
        return f"write `do {{ {mistake.word_before} }} unless {{ ... }}`"
    if mistake.found == "+":
        return "in an `ecl`, all of them in any order are `accumulate { a, b }`"
    if mistake.found == "|":
        return "in an `ecl`, one of them is `select { a, b }`"
    if written.rstrip().endswith(";"):
        return "in an `ecl`, one after the other is `sequential { a, b }`"
    if mistake.word_before in {"case", "push"}:
        return (
            "an `ecl` holds one expression, and puts out an event by `notify { ... }` or "
            "`push(Type) { ... }`; cases belong to a `correlation`"
        )
    return None


def new_event(mistake: Mistake) -> str | None:
    """A `push new` without a type or without values."""
    is_new = re.search(r"\bpush\s+new\s+\Z", mistake.before)
    if is_new and mistake.found == "{":
        return f"name the type of the event: `push new {mistake.output_type} {{`"
    inside = re.search(r"\bpush\s+new\s+\w+\s*\{[^{}]*\Z", mistake.before)
    if inside is None:
        return None
    port, name = mistake.first_port, mistake.word_before
    if mistake.accepted <= {"EQUAL", "DOT"} and mistake.found in {",", "}"}:
        return f"every value is written out: `{name} = {port}.{name}`"
    if mistake.found == "*":
        return (
            f"`push {port}` sends the whole event on; a new one names every value: "
            f"`name = {port}.name`"
        )
    return None
