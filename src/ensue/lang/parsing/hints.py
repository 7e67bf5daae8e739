"""What was probably meant, where a text does not parse: one hint for a mistake.

In comes the place of a mistake with what could have stood there; out goes a hint, or nothing. A
slip of the pen goes first (`wihin`), then the line to write where a habit of another language is
recognised (`rewriting`), then advice for mistakes that no rewriting mends.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from ensue.lang.diagnostics import close_match
from ensue.lang.expressions.aggregates import AGGREGATES
from ensue.lang.expressions.text.parsing import window_hint
from ensue.lang.parsing.cutting import Piece
from ensue.lang.parsing.rewriting.habits import UNITS
from ensue.lang.parsing.rewriting.suggestion import Parses, suggested_line


@dataclass(frozen=True, slots=True)
class Mistake:
    """What was found at a place, and the terminals and words that could have stood there."""

    text: str
    piece: Piece
    place: int
    found: str
    accepted: frozenset[str]
    words: frozenset[str]

    @property
    def before(self) -> str:
        """The text up to the mistake, as far as any hint looks back."""
        return self.text[max(self.piece.start, self.place - 100) : self.place]

    @property
    def rest(self) -> str:
        return self.text[self.place : min(self.piece.end, self.place + 100)]

    @property
    def word_before(self) -> str:
        found = _LAST_WORD.search(self.before)
        return found[1] if found else ""

    @property
    def in_filter(self) -> bool:
        return "PLUS" in self.accepted


_LAST_WORD = re.compile(r"(\w+)\s*\Z")
# Words of other languages that are close to one of ours and mean something else.
_NO_SLIPS = frozenset({"and", "if", "min", "not", "on", "then", "varchar", "when", "with"})


def hint_for(mistake: Mistake, parses: Parses) -> str | None:
    """What to write instead, as a sentence; None where the parser cannot guess it."""
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


# --- slips of the pen ---------------------------------------------------------------------------

_GROUPS = {"accumulate", "select", "sequential", "parallel"}
_ROUNDS = {"repeat", "persist", "loop"}
_BLOCKS = (*sorted(_GROUPS | _ROUNDS), "notify", "fail", "modes", "timeout")


def _misspelt(mistake: Mistake) -> str | None:
    found = mistake.found
    if not re.fullmatch(r"[A-Za-z_]\w*", found) or found.lower() in _NO_SLIPS:
        return None
    words = set(mistake.words)
    words |= _GROUPS if "GROUP" in mistake.accepted else set()
    words |= _ROUNDS if "ROUND" in mistake.accepted else set()
    match = close_match(found, {each for each in words if each.isalpha()} - {found})
    return f"did you mean `{match}`?" if match else None


def _misspelt_before(mistake: Mistake) -> str | None:
    """A misspelt word is taken for a name, and only what follows it looks wrong."""
    word = mistake.word_before
    if mistake.found in {"{", "("} and "RBRACE" in mistake.accepted:
        match = close_match(word, _BLOCKS)
        return f"did you mean `{match}`?" if match and match != word else None
    return None


# --- definitions --------------------------------------------------------------------------------

_RULE_WORDS = frozenset({"correlation", "ecl", "rule", "pattern", "query", "sequence"})
_IMPORTS = frozenset({"import", "include", "use", "using", "require"})


def _comment(mistake: Mistake) -> str | None:
    if "_EVENTTYPE" in mistake.accepted and re.match(r"#|--|;;", mistake.rest):
        return "a comment begins with `//`, or stands between `/*` and `*/`"
    return None


def _definition(mistake: Mistake) -> str | None:
    if mistake.accepted != {"_CORRELATION", "_ECL"}:
        return None
    word = mistake.word_before
    match = close_match(word, ["eventtype"])
    if match:
        return f"did you mean `{match}`?"
    if word.lower() in _IMPORTS:
        return "several files are read as one library: `ensue run types.cor rules.cor ...`"
    if word.lower() in _RULE_WORDS and re.match(r"\w+\s*\(", mistake.rest):
        kind = "ecl" if word == "ecl" else "correlation"
        return f"the type of its outputs goes first: `Type {kind} {mistake.found} (...)`"
    return "a definition begins with `eventtype`, or with `Type correlation Name (`"


_DOTTED = re.compile(r"[A-Za-z_]\w*(?:[.-][A-Za-z_]\w*)+")


def _wire_name(mistake: Mistake) -> str | None:
    """A type with dots in its name, where it is declared or where a port or a rule names it."""
    accepted = mistake.accepted
    is_declared = accepted == {"EQUAL", "COLON", "LBRACE"}
    if mistake.found[:1] in {'"', "'"} and mistake.word_before == "eventtype":
        return f"a type has a name, and says which one events carry: {_wired(mistake.found[1:-1])}"
    if mistake.found not in {".", "-"} or not (
        is_declared or accepted in ({"NAME"}, {"_CORRELATION", "_ECL"})
    ):
        return None
    found = _DOTTED.match(mistake.text, mistake.place - len(mistake.word_before))
    if found is None:
        return None
    if is_declared:
        return (
            f"a type has a name without dots, and says which one events carry: {_wired(found[0])}"
        )
    return f"declare the type by a name without dots, {_wired(found[0], '...')}, and use that here"


def _wired(wire: str, inside: str = "") -> str:
    name = re.split(r"[^A-Za-z0-9_]", wire.strip("."))[-1] or "Name"
    body = f"{{ {inside} }}" if inside else "{}"
    return f'`eventtype {name[:1].upper()}{name[1:]} = "{wire}" {body}`'


def _attribute(mistake: Mistake) -> str | None:
    if mistake.accepted == {"COMMA", "SEMICOLON", "DOT"}:
        return "an attribute ends with `;`"
    if "_ATTRIBUTE" in mistake.accepted and mistake.found.isidentifier():
        return f"an attribute begins with its word: `attribute {mistake.found} ...;`"
    return None


# --- filters and clauses ------------------------------------------------------------------------

_ABSENCE = (
    "what must not come is named in a clause: `a ; c unless b` is c after a with no b between, "
    "and `a ; timeout(30 s) unless b` is a with no b for 30 s"
)


def _repetition(mistake: Mistake) -> str | None:
    """`f{,5}`, `f{5+}`: brackets that are taken for the body of the rule."""
    found = re.match(r"(?P<most>,\s*)?(?P<count>\d+)\s*\+?\s*\}", mistake.rest)
    port = re.search(r"(\w+)\s*\{\s*\Z", mistake.before)
    if found is None or port is None or "_PUSH" not in mistake.accepted:
        return None
    if found["most"]:
        return f"write `{port[1]} having count({port[1]}) <= {found['count']}`"
    return f"write `{port[1]}{{{found['count']}}}`: more events match as well"


def _absence(mistake: Mistake) -> str | None:
    is_not = re.search(r"\bnot\s+\Z", mistake.before, re.IGNORECASE)
    in_a_filter = mistake.in_filter or mistake.accepted & {"_FILTER_TIMEOUT"}
    if mistake.found == "!" and (in_a_filter or mistake.accepted == {"LPAR", "NAME"}):
        return _ABSENCE
    return _ABSENCE if is_not and in_a_filter else None


def _operator(mistake: Mistake) -> str | None:
    here, word = mistake.rest[:2], mistake.found.lower()
    if mistake.in_filter and here in ("->", "=>", "~>"):
        return "`a ; b` says that `b` comes after `a`"
    if mistake.in_filter and (here in {"&&", "& "} or word in {"&", "and"}):
        return "`a + b` asks for both in any order, `a ; b` for one after the other"
    if mistake.in_filter and word == "or":
        return "`a | b` asks for one of them"
    if mistake.in_filter and word == ",":
        return "ports are joined by `+`, `;` or `|`"
    return None


def _aggregate(mistake: Mistake) -> str | None:
    called = mistake.word_before.lower()
    if mistake.in_filter and mistake.found == "(" and called.upper() in AGGREGATES:
        return f"what is counted or added up is asked in a clause: `having {called}(...)`"
    return None


def _timeout(mistake: Mistake) -> str | None:
    if mistake.in_filter and mistake.found == "(" and mistake.word_before == "timeout":
        return "a `timeout` counts from what stands left of its `;`: write `a ; timeout(30 s)`"
    return None


def _unless_condition(mistake: Mistake) -> str | None:
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


def _choice(mistake: Mistake) -> str | None:
    return _CHOICES.get(tuple(sorted(mistake.accepted)))  # type: ignore[arg-type]


def _unit(mistake: Mistake) -> str | None:
    if "DURATION" not in mistake.accepted or not mistake.found[:1].isdigit():
        return None
    found = re.match(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", mistake.rest)
    unit = UNITS.get(found[2].lower()) if found else None
    if found and unit:
        return f"write `{found[1]} {unit}`"
    return "give the duration a unit: ms, s, min, h or d"


# --- conditions and labels ----------------------------------------------------------------------


def _condition(mistake: Mistake) -> str | None:
    here, found = mistake.rest[:2], mistake.found
    before = mistake.before[-1:]
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
    if "_EXISTS" in mistake.accepted and before == "=" and found == "=":
        return "values are compared by a single `=`"
    if "_EXISTS" in mistake.accepted and found == "!":
        return "a condition is negated by `NOT`"
    if found == "(" and (unit := window_hint(mistake.before)) is not None:
        return unit
    return None


def _count_of_all(mistake: Mistake) -> str | None:
    if mistake.found == "*" and re.search(r"\bcount\s*\(\s*\Z", mistake.before, re.IGNORECASE):
        return "name the port whose events are counted: `count(a)`"
    return None


def _labels(mistake: Mistake) -> str | None:
    in_labels = "AMPERSAND" in mistake.accepted
    doubled = mistake.before[-1:] == mistake.found and mistake.found in {"&", "|"}
    if (in_labels and mistake.found.lower() in {"and", "or", "||"}) or doubled:
        return "labels are joined by `&` and `|`, and `!` stands for not"
    return None


def _statement(mistake: Mistake) -> str | None:
    if "_PUSH" in mistake.accepted and mistake.found.lower() == "select":
        return "an event is put out by `push new Type { name = a.name, ... };`"
    return None


_Hint = Callable[[Mistake], str | None]
_BEFORE_REWRITING: tuple[_Hint, ...] = (_labels, _comment, _repetition, _wire_name, _choice)
_ADVICE: tuple[_Hint, ...] = (
    _count_of_all,
    _absence,
    _operator,
    _timeout,
    _aggregate,
    _unless_condition,
    _unit,
    _condition,
    _statement,
    _definition,
    _attribute,
    _misspelt_before,
)
