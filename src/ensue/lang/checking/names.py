"""What a name in a predicate, a key or a value stands for.

A name is looked for as a CloudEvents attribute, then among the declared attributes (of the port's
type, the types above it, and those below it, since their events come in on the port too), then as
a CloudEvents attribute in lower case. A name with dots is looked for in data only. What is left
over may still be an extension attribute or data that no type declares: a warning, unless it looks
like a slip of the pen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ensue.events.types import ValueType
from ensue.lang.checking.scope import LibraryScope
from ensue.lang.source import Span

STRING = ValueType("string")
TIMESTAMP = ValueType("timestamp")

CONTEXT_ATTRIBUTES = {
    "datacontenttype": STRING,
    "dataschema": STRING,
    "id": STRING,
    "source": STRING,
    "specversion": STRING,
    "subject": STRING,
    "time": TIMESTAMP,
    "type": STRING,
}
# What an output of a correlation carries besides; another correlation may ask for it.
OUTPUT_ATTRIBUTES = dict.fromkeys(
    ("causes", "correlation", "labels", "partitionkey", "trigger"), STRING
)

# Short names are close to too much: an extension `tie` is no slip for `time`.
_GUESSED = frozenset({*CONTEXT_ATTRIBUTES, *OUTPUT_ATTRIBUTES} - {"id", "time", "type"})
TAKEN_FOR_AN_EXTENSION = "it is taken for a CloudEvents extension or for data that is not declared"
EXTENSION_NAME = re.compile(r"[a-z0-9]+")


@dataclass(frozen=True, slots=True)
class KnownName:
    """A name that means something; `type` is None where its type cannot be told."""

    type: ValueType | None
    declared: bool = False


def look_up(scope: LibraryScope, type_name: str, name: str) -> KnownName | None:
    """What a name means on the events of a port of a declared type."""
    if name in CONTEXT_ATTRIBUTES:
        return KnownName(CONTEXT_ATTRIBUTES[name])
    data = data_type(scope, type_name, name)
    if data is not None and data.declared:
        return data
    if name.lower() in CONTEXT_ATTRIBUTES:
        return KnownName(CONTEXT_ATTRIBUTES[name.lower()])
    if name.lower() in OUTPUT_ATTRIBUTES:
        return KnownName(OUTPUT_ATTRIBUTES[name.lower()])
    return data


def data_type(scope: LibraryScope, type_name: str, name: str) -> KnownName | None:
    """What a name means in the data of the events of a port of a declared type."""
    own = scope.types.attribute(type_name, name)
    if own is not None:
        return KnownName(own, declared=True)
    below = scope.types.attributes_below(type_name, name)
    if below:
        return KnownName(agreed(below), declared=True)
    if type_name in scope.types.open_types or scope.types.has_parts(type_name, name):
        return KnownName(None)
    return None


def agreed(types: Iterable[ValueType | None]) -> ValueType | None:
    """The type that all declarations agree on; None if they differ."""
    distinct = set(types)
    return distinct.pop() if len(distinct) == 1 else None


def attribute_type(
    scope: LibraryScope,
    type_names: Sequence[str],
    name: str,
    span: Span,
    advice: str | None = None,
) -> ValueType | None:
    """The type of a name that is known on one of the types; reports a name that is not."""
    if not all(each in scope.types for each in type_names):
        return None
    found = [known for each in type_names if (known := look_up(scope, each, name))]
    if found:
        return agreed(each.type for each in found)
    report_unknown(scope, type_names, name, span, advice=advice)
    return None


def report_unknown(
    scope: LibraryScope,
    type_names: Sequence[str],
    name: str,
    span: Span,
    *,
    message: str | None = None,
    advice: str | None = None,
    certain: bool = False,
) -> None:
    """An error for a slip of the pen, or where it is `certain` that the name is no extension.

    `message` and `advice` are given where more is known of what was meant; a close match goes
    first.
    """
    declared = [scope.types.names_near(each) for each in type_names]
    # An extension `tier` is no slip for `trigger`.
    guesses = [each for each in _GUESSED if abs(len(each) - len(name)) <= 2]
    match = scope.close_match(name, *declared, guesses)
    if message is None and len(type_names) == 1:
        message = f"event type `{type_names[0]}` has no attribute `{name}`"
    message = message or f"no event that is read here has an attribute `{name}`"
    if name.lower() in ("null", "none", "nil"):
        advice, match = "write `IS NULL` or `IS NOT NULL`", None
    if certain or match or not EXTENSION_NAME.fullmatch(name) or name == "null":
        hint = f"did you mean `{match}`?" if match else advice or scope.hint(name, *declared)
        scope.error("unknown-attribute", message, span, hint)
    else:
        hint = advice or TAKEN_FOR_AN_EXTENSION
        scope.warning("undeclared-attribute", message, span, hint)
