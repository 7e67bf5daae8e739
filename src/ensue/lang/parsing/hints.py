"""Hints for text that does not parse: what was probably meant.

In comes a mistake with the words that are allowed at its place; out goes one hint, or None. A
misspelt word goes first (`wihin`), then the line to write in place of a habit of another language
(`rewriting`), then advice for mistakes that no rewriting can correct (`advice`).
"""

from __future__ import annotations

import re

from ensue.lang.diagnostics import close_match
from ensue.lang.parsing.advice import definitions, expressions, filters, statements
from ensue.lang.parsing.advice.mistake import Advice, Mistake
from ensue.lang.parsing.rewriting.suggestion import Parses, suggested_line

__all__ = ["Mistake", "hint_for"]

# Words of other languages that are similar to one of ours and mean something else.
_NO_SLIPS = frozenset({"and", "if", "min", "not", "on", "then", "varchar", "when", "with"})


def hint_for(mistake: Mistake, parses: Parses) -> str | None:
    """The hint as a sentence; None if there is none."""
    slip = _misspelt(mistake)
    if slip is not None:
        return slip
    for hint in _BEFORE_REWRITING:
        found = hint(mistake)
        if found is not None:
            return found
    line = suggested_line(mistake.text, mistake.piece, mistake.place, parses)
    if line is not None:
        return line
    return next((found for hint in _ADVICE if (found := hint(mistake)) is not None), None)


_GROUPS = {"accumulate", "select", "sequential", "parallel"}
_ROUNDS = {"repeat", "persist", "loop"}
_BLOCKS = (*sorted(_GROUPS | _ROUNDS), "notify", "fail", "modes", "timeout")
# Terminals that messages describe in other words, with the word of each.
_CHOICES = {"FIRST": "first", "LAST": "last", "LATEST": "latest", "NONE": "none", "ALL": "all"}


def _misspelt(mistake: Mistake) -> str | None:
    found = mistake.found
    if not re.fullmatch(r"[A-Za-z_]\w*", found) or found.lower() in _NO_SLIPS:
        return None
    words = set(mistake.words)
    words |= _GROUPS if "GROUP" in mistake.accepted else set()
    words |= _ROUNDS if "ROUND" in mistake.accepted else set()
    words |= {word for terminal, word in _CHOICES.items() if terminal in mistake.accepted}
    match = close_match(found, {each for each in words if each.isalpha()} - {found})
    return f"did you mean `{match}`?" if match else None


def _misspelt_before(mistake: Mistake) -> str | None:
    """The hint for a misspelt word before the mistake, which the parser took for a name."""
    word = mistake.word_before
    if mistake.found == "(" and mistake.in_filter and close_match(word, ["timeout"]):
        return "did you mean `timeout`?" if word != "timeout" else None
    if mistake.found in {"{", "("} and "RBRACE" in mistake.accepted:
        match = close_match(word, _BLOCKS)
        return f"did you mean `{match}`?" if match and match != word else None
    return None


_BEFORE_REWRITING: tuple[Advice, ...] = (
    statements.labels,
    definitions.comment,
    definitions.file_name,
    filters.repetition,
    definitions.wire_name,
    filters.choice,
    filters.port_condition,
    expressions.number,
    expressions.aggregate_condition,
)
_ADVICE: tuple[Advice, ...] = (
    _misspelt_before,
    statements.ecl,
    expressions.count_of_all,
    expressions.nothing_there,
    expressions.branch,
    expressions.no_value,
    filters.absence,
    filters.bracket,
    filters.window,
    filters.operator,
    filters.timeout,
    filters.aggregate,
    filters.port_attribute,
    filters.unless_condition,
    filters.unit,
    filters.key,
    expressions.condition,
    statements.new_event,
    statements.statement,
    definitions.other_format,
    definitions.definition,
    definitions.rule_parts,
    definitions.type_head,
    definitions.attribute,
    filters.clause,
)
