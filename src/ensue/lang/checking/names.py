"""The meaning of names in predicates, keys and values.

A name is looked for as a CloudEvents attribute, then among the declared attributes (of the port's
type, the types above it, and those below it, since their events come in on the port too), then as
a CloudEvents attribute in lower case. A name with dots is looked for in data only. A name that is
not found may still be an extension attribute or undeclared data: it draws a warning, or an error if
it looks like a typing error.
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
# The extension attributes of outputs, which other correlations may read.
OUTPUT_ATTRIBUTES = dict.fromkeys(
    ("causes", "correlation", "labels", "partitionkey", "trigger"), STRING
)

# Short names are similar to many others: an extension `tie` is no misspelt `time`.
_GUESSED = frozenset({*CONTEXT_ATTRIBUTES, *OUTPUT_ATTRIBUTES} - {"id", "time", "type"})
_GUESSED_ASIDE = frozenset({"time", "type"})
TAKEN_FOR_AN_EXTENSION = "it is taken for a CloudEvents extension or for data that is not declared"
NOTHING = frozenset({"nil", "none", "null"})
"""What other languages call a missing value, in lower case."""
EXTENSION_NAME = re.compile(r"[a-z0-9]+")


@dataclass(frozen=True, slots=True)
class KnownName:
    """A name that has a meaning; `type` is None where its type is not known."""

    type: ValueType | None
    declared: bool = False


def look_up(scope: LibraryScope, type_name: str, name: str) -> KnownName | None:
    """The meaning of a name on events of a declared type."""
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
    """The meaning of a name in the data of events of a declared type."""
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
    """The type of a name on any of the types; a name that is unknown on all is reported."""
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
    """Report an unknown name: an error for a typing error, or if it is `certain`ly no extension.

    A hint with a close match goes before `advice`.
    """
    declared = [scope.types.names_near(each) for each in type_names]
    # An extension `tier` is no misspelt `trigger`.
    guesses = [each for each in _GUESSED if abs(len(each) - len(name)) <= 2]
    match = scope.close_match(name, *declared, guesses)
    if message is None and len(type_names) == 1:
        message = f"event type `{type_names[0]}` has no attribute `{name}`"
    message = message or f"no event that is read here has an attribute `{name}`"
    if name.lower() in NOTHING:
        advice, match = "write `IS NULL` or `IS NOT NULL`", None
    if certain or match or not EXTENSION_NAME.fullmatch(name) or name == "null":
        hint = f"did you mean `{match}`?" if match else advice or scope.hint(name, *declared)
        scope.error("unknown-attribute", message, span, hint)
    else:
        hint = advice or TAKEN_FOR_AN_EXTENSION
        near = scope.close_match(name, _GUESSED_ASIDE)
        if near is not None and near[0] == name[0]:
            # An extension `tie` is possible, so that this is no error.
            hint = f"did you mean `{near}`? otherwise {hint}"
        scope.warning("undeclared-attribute", message, span, hint)
