"""The words of the language, each with a sentence on what it means: for completion and hovers.

Which words there are, and where each can stand, is told by the grammar; a test holds that every
keyword, function and aggregate has its sentence here. The meaning in full is on the page on the
language.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from ensue.lang.expressions.aggregates import AGGREGATES
from ensue.lang.expressions.builtins.functions import FUNCTIONS
from ensue.lang.parsing.parser import grammar

UNITS: Mapping[str, str] = {
    "ms": "milliseconds",
    "s": "seconds",
    "min": "minutes",
    "h": "hours",
    "d": "days of 24 hours",
}

KEYWORDS: Mapping[str, str] = {
    "eventtype": "Declares an event type: `eventtype Name : Parent { attribute long x; };`.",
    "attribute": "Declares a value that events of the type carry.",
    "public": "Another word for `attribute`.",
    "correlation": "A rule of two phases: a filter over ports, then cases that push events.",
    "ecl": "A rule written as one ECL expression.",
    "from": "What comes in on the port: events from outside with this `source`, the outputs of a "
    "rule, or everything from `outside`. Without it, everything from outside.",
    "template": "The rule does not run by itself: `use` makes rules of it.",
    "use": "A rule with the text of another: `use Rule as Name (port from source) with { x = 1 }`.",
    "as": "The name of the rule that a use is.",
    "with": "The values of parameters in this use; behind a push, extensions of the event.",
    "import": "Brings all definitions of another file.",
    "parameter": "A named constant, whose value can be given from outside.",
    "duration": "The type of a parameter that is a length of time.",
    "internal": "What the rule puts out is read by the rules that name it, and goes nowhere else.",
    "where": "Only events for which the predicate is true come in on the port.",
    "every": "A timer port that fires at this interval.",
    "deadline": "A timer port that fires after this time without a trigger.",
    "within": "Events older than this do not count any more.",
    "by": "Each value of the key has a memory of its own.",
    "bind": "Which event a port stands for: the `first`, the `last`, or one of the `latest` match.",
    "keep": "What a trigger leaves remembered: `none`, the `last` event, or `all`.",
    "unless": "In a filter rule, an event of the port makes the rule forget what came before it. "
    "In ECL, `do { x } unless { y }` gives up when `y` comes first.",
    "having": "A condition over the events of a match; if it is not true, nothing happens.",
    "case": "What to do at a trigger if the labels are active as this says.",
    "push": "Puts an event out: `push a`, or `push new Type { name = value }`.",
    "new": "Builds the event that is pushed.",
    "abort": "Leaves the labelled part out from now on.",
    "revive": "Takes the labelled part in again, afresh.",
    "toggle": "Leaves the labelled part out, or takes it in again if it was out.",
    "timeout": "Matches when so much time has passed.",
    "accumulate": "All of these, in any order; fails as soon as one fails.",
    "select": "The first of these to succeed; fails when all have failed.",
    "select*": "The first of these to end: succeeds or fails with it.",
    "sequential": "One after the other; fails when a part does.",
    "parallel": "Side by side, without end.",
    "repeat": "Goes round for ever, whatever its body does; `repeat(n)` goes round n times.",
    "persist": "Goes round until its body succeeds; `persist(n)` fails after n failures.",
    "loop": "Goes round until its body fails; `loop(n)` succeeds after n rounds.",
    "do": "The expression that `unless` watches, or that a mode runs.",
    "fail": "Fails when its body succeeds, and succeeds when it fails.",
    "notify": "Puts out an event of the rule's output type when the expression succeeds.",
    "modes": "One mode at a time, the first to begin with; a guard that succeeds enters its mode.",
    "in": "The guard of a mode, or a test whether a value is in a list.",
    "first": "The first event that matches the port.",
    "last": "The last one: the last event that matches the port, or the event that completed.",
    "latest": "The events of the latest match, which go together.",
    "none": "After a trigger all events are forgotten.",
    "all": "A trigger forgets nothing; or every value of a list.",
    "true": "Holds; as an expression, succeeds at the next event.",
    "false": "Does not hold; as an expression, never ends.",
    "and": "Both hold. AND, OR and XOR have one precedence and are read from the right.",
    "or": "One of the two holds. AND, OR and XOR have one precedence and are read from the right.",
    "xor": "Exactly one of the two holds.",
    "not": "Does not hold.",
    "like": "A text fits a pattern: `%` is any text, `_` one character.",
    "matches": "A text holds a match of an RE2 expression.",
    "is": "`IS NULL` and `IS NOT NULL` ask whether there is a value.",
    "null": "No value.",
    "between": "`x BETWEEN low AND high`, both ends included.",
    "not between": "The value lies outside of the two.",
    "exists": "The event has such an attribute.",
    "after": "A stored event that matches has ended before, at most so long ago.",
    "before": "A stored event that matches begins later.",
    "during": "A stored event that matches was going on.",
    "meets": "The event ends where a stored one begins.",
    "met_by": "The event begins where a stored one ends.",
    "overlaps": "The event begins first and ends inside a stored one.",
    "overlapped_by": "A stored event begins first and ends inside this one.",
    "starts": "Both begin together, and this one ends first.",
    "started_by": "Both begin together, and the stored one ends first.",
    "contains": "A stored event lies inside this one.",
    "finishes": "Both end together, and this one began later.",
    "finished_by": "Both end together, and the stored one began later.",
    "equals": "Both begin and end together.",
    "times": "How often at least.",
    "filter": "Compares the value with that of stored events that match.",
    "has": "A list has any, all or only these values.",
    "any": "At least one value of a list.",
    "only": "No other values than these.",
    "is_a": "The concept is this one, or below it in the ontology.",
    "subsumes": "The concept is this one, or above it in the ontology.",
    "same_as": "The concept means the same in the ontology.",
    "ontprop": "Follows a property of the ontology.",
    "short": "A whole number of 16 bits.",
    "long": "A whole number of 32 bits; `long long` has 64.",
    "unsigned": "A whole number without a sign: `unsigned short`, `unsigned long`.",
    "float": "A real number of 32 bits.",
    "double": "A real number of 64 bits.",
    "boolean": "True or false.",
    "char": "One character.",
    "octet": "A whole number from 0 to 255.",
    "string": "Text.",
    "timestamp": "An instant, to the microsecond.",
    "sequence": "A list of values: `sequence<long>`.",
}

OUTSIDE_TEXT = "Events that come from outside, and no output of a rule of this library."

FUNCTION_TEXTS: Mapping[str, str] = {
    "ABS": "The number without its sign.",
    "BETWEEN": "Whether a value lies between two others, both included.",
    "BOOL": "The value as a truth.",
    "COALESCE": "The first value that is not null.",
    "CONCAT": "The texts joined.",
    "CONCAT_WS": "The texts joined, with the first one between them.",
    "DOUBLE": "The value as a real number.",
    "EXTRACT": "The first group of an RE2 expression in a text, or another one.",
    "HOUR": "The hour of a timestamp, in UTC or a named zone.",
    "INT": "The value as a whole number.",
    "IN_NETWORK": "Whether an address lies in one of the networks.",
    "IS_NULL": "Whether there is no value.",
    "LEFT": "The first characters of a text.",
    "LENGTH": "How many characters a text has.",
    "LOWER": "The text in lower case.",
    "MATCHES": "Whether a text holds a match of an RE2 expression.",
    "MINUTE": "The minute of a timestamp, in UTC or a named zone.",
    "RIGHT": "The last characters of a text.",
    "STRING": "The value as a text.",
    "SUBSTRING": "A part of a text, counted from 1.",
    "TIMESTAMP": "The instant that a text names, in RFC 3339 or by a pattern of `strptime`.",
    "TRIM": "The text without the white space around it.",
    "UPPER": "The text in upper case.",
    "WEEKDAY": "The day of the week of a timestamp: Monday is 0.",
}

AGGREGATE_TEXTS: Mapping[str, str] = {
    "COUNT": "How many events match the port, in its stretch.",
    "DISTINCT": "How many different values the events of the port have.",
    "SUM": "The sum of the values; null if there is none.",
    "AVG": "The mean of the values; null if there is none.",
    "MIN": "The least of the values; null if there is none.",
    "MAX": "The largest of the values; null if there is none.",
    "FIRST": "The value of the first event; null if there is none.",
    "LAST": "The value of the last event; null if there is none.",
}

EXTENSION_TEXTS: Mapping[str, str] = {
    "priority": "An integer: in a channel, events of a larger one come first.",
    "expirytime": "A timestamp: after it, channels, gateways and servers drop the event.",
    "subject": "What the event is about (CloudEvents).",
    "partitionkey": "Which events belong together; a rule with `by` sets it to its key.",
}
"""What `with` sets that has a meaning; any other name in lower case is possible."""
CONTEXT_TEXTS: Mapping[str, str] = {
    "id": "The id of the event (CloudEvents).",
    "source": "Where the event comes from (CloudEvents).",
    "type": "The type of the event, as it is on the wire (CloudEvents).",
    "time": "The time of the event (CloudEvents).",
    "subject": "What the event is about (CloudEvents).",
    "datacontenttype": "The media type of the data (CloudEvents).",
    "dataschema": "The schema of the data (CloudEvents).",
    "specversion": "The version of CloudEvents.",
}


def signature(function: str) -> str:
    """`SUBSTRING(string, integer[, integer]) -> string`."""
    name = function.upper()
    if name in AGGREGATES:
        asked = "port" if name == "COUNT" else "port.attribute"
        return (
            f"{name.lower()}({asked}) -> {AGGREGATES[name].result or 'the type of the attribute'}"
        )
    known = FUNCTIONS[name]
    needed = ", ".join(known.parameters[: known.required])
    optional = "".join(f"[, {each}]" for each in known.parameters[known.required :])
    more = f"{', ' if needed else ''}{known.more}, ..." if known.more else ""
    return f"{name}({needed}{optional}{more}) -> {known.result}"


def function_text(function: str) -> str | None:
    """What a function or an aggregate computes; None if there is no such one."""
    name = function.upper()
    return AGGREGATE_TEXTS.get(name) or FUNCTION_TEXTS.get(name)


_ALTERNATIVES = re.compile(r"\(?([a-z_*|\\]+)\)?(?:\\b|\(\?[=!])")


@cache
def words_of() -> Mapping[str, tuple[str, ...]]:
    """The words that each terminal of the grammar stands for; signs and patterns have none.

    Words of CESQL, which do not mind case, are in upper case.
    """
    found: dict[str, tuple[str, ...]] = {}
    for terminal in grammar().terminals:
        pattern = terminal.pattern.value
        any_case = "i" in terminal.pattern.flags
        if terminal.name == "_NOT_BETWEEN":
            found[terminal.name] = ("NOT BETWEEN",)
        elif terminal.name == "ONTPROP":
            found[terminal.name] = ("ONTPROP",)
        elif (match := _ALTERNATIVES.match(pattern)) is not None:
            words = match[1].replace("\\", "").split("|")
            found[terminal.name] = tuple(each.upper() if any_case else each for each in words)
    return found
