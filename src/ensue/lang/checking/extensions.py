"""Checks what `with` sets on a pushed event: names as CloudEvents has them, and values that fit.

What an output says of itself cannot be set, nor can the attributes that every event has. Which
types extensions have is said in `ensue.lang.derived.extensions`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ensue.events.expiry import EXPIRY
from ensue.lang.checking.names import EXTENSION_NAME
from ensue.lang.checking.ports import Ports
from ensue.lang.checking.predicates import check_assigned_value
from ensue.lang.checking.scope import LibraryScope
from ensue.lang.derived.extensions import NAMED, PRIORITY, extension_type
from ensue.lang.expressions.checking.kinds import with_article
from ensue.lang.source import Span
from ensue.lang.syntax import Correlation, Extension

_OF_OUTPUTS = "an output says by it where it comes from"
_OF_EVENTS = "every event has a place of its own for it"
_OF_GATEWAYS = "names that begin so are written by gateways"
_TAKEN: Final[Mapping[str, str]] = {
    **dict.fromkeys(("correlation", "trigger", "labels", "causes"), _OF_OUTPUTS),
    **dict.fromkeys(
        ("id", "source", "type", "time", "specversion", "datacontenttype", "dataschema", "data"),
        _OF_EVENTS,
    ),
    "data_base64": _OF_EVENTS,
}
_OURS = "ensue"


def check_extensions(
    extensions: Sequence[Extension], correlation: Correlation, ports: Ports, scope: LibraryScope
) -> Iterator[tuple[str, Span, str]]:
    """Report mistakes; out go the ports in the values, with their places and the extension."""
    seen: set[str] = set()
    for each in extensions:
        _check_name(each, correlation, scope)
        if each.name in seen:
            scope.error(
                "duplicate-assignment", f"`{each.name}` is set twice", each.span, "set it once"
            )
        seen.add(each.name)
        checked = check_assigned_value(each.value, NAMED.get(each.name), ports, scope)
        if each.name not in NAMED:
            _check_kind(each, checked.kind, ports, scope)
        yield from ((port, span, each.name) for port, span in checked.ports.items())


def _check_name(extension: Extension, correlation: Correlation, scope: LibraryScope) -> None:
    name = extension.name
    why = _TAKEN.get(name.lower())
    if name.startswith(_OURS):
        why = _OF_GATEWAYS
    elif name == "partitionkey" and correlation.clauses.by:
        why = "it holds the key of a rule with `by`"
    if why is not None:
        scope.error(
            "reserved-name",
            f"`{name}` cannot be set after `with`: {why}",
            extension.span,
            "choose another name, or an attribute of the type for what belongs to the data",
        )
    elif not EXTENSION_NAME.fullmatch(name):
        plain = "".join(c for c in name.lower() if c.isascii() and c.isalnum())
        scope.error(
            "bad-extension-name",
            f"`{name}` is no name of a CloudEvents attribute, which has lower-case letters and"
            " digits only",
            extension.span,
            f"write `{plain}`" if plain else "choose another name",
        )
    elif name not in NAMED and (near := scope.close_match(name, {PRIORITY, EXPIRY, "subject"})):
        scope.warning(
            "unusual-extension",
            f"`{name}` has no meaning to channels, gateways and servers, and `{near}` has one",
            extension.span,
            f"write `{near}`, or choose a name that is less like it",
        )


def _check_kind(extension: Extension, kind: str | None, ports: Ports, scope: LibraryScope) -> None:
    """Report a value that no extension can have, or that is too large for one."""
    if kind in ("real", "sequence"):
        scope.error(
            "value-does-not-fit",
            f"an extension takes texts, booleans, 32-bit integers and timestamps, and this is"
            f" {with_article(kind)}",
            extension.value.span,
            "write `INT(...)` or `STRING(...)`, or put it into the data"
            if kind == "real"
            else "put it into the data",
        )
    elif kind is not None:
        # Names and operands have been reported already; what is left is whether it fits.
        check_assigned_value(extension.value, extension_type(extension.name, kind), ports, scope)
