"""Changes of rules while a run goes on: from a request to the next library.

In come the library that runs and the definitions to add, to replace or to remove; out goes the
next library, checked as a whole, or a `LibraryError` that points into the text that was given.
Rules that stay keep their places, a replaced rule takes the place of the old, new rules come last.
Nothing runs here: a `Run` takes the next library over, or goes on with the one it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from ensue.errors import LibraryError, UsageError
from ensue.events.types import TypeSystem
from ensue.lang.checked import CheckedLibrary
from ensue.lang.checker import check
from ensue.lang.derived.parts import statements_of
from ensue.lang.diagnostics import Diagnostic, Diagnostics, did_you_mean
from ensue.lang.expanding.parameters import GivenValues
from ensue.lang.expressions.binding import BindingOntology
from ensue.lang.limits import DEFAULT_LIMITS
from ensue.lang.parsing.parser import parse_tree
from ensue.lang.printer import print_library
from ensue.lang.source import Source
from ensue.lang.syntax import (
    Correlation,
    Definition,
    EventPort,
    EventTypeDeclaration,
    LibraryTree,
    Parameter,
    PushNew,
)

LOST = "import-not-found"
_FROM_OTHER_FILES = frozenset(
    {"unknown-type", "unknown-rule", "unknown-source", "unknown-parameter", "bare-name"}
)
"""What is said of names that may stand in a file which is not there."""

RUNNING = "<running>"
"""How messages call the text of the rules that run already."""


class HasTree(Protocol):
    """A library as a user holds it."""

    @property
    def checked(self) -> CheckedLibrary: ...


def checked_source(
    source: Source,
    ontology: BindingOntology | None = None,
    parameters: GivenValues | None = None,
    problems: Sequence[Diagnostic] = (),
) -> CheckedLibrary:
    """The library that a text holds, bound to an ontology where one is given.

    Raises `LibraryError` with every mistake, and `UsageError` for values of parameters that do not
    fit. Where files have `problems`, these are among the mistakes; while only imports are lost, so
    are all others but those that may follow from it.
    """
    if any(each.code != LOST for each in problems):
        raise LibraryError(problems)
    diagnostics = Diagnostics(source)
    diagnostics.found += problems
    try:
        checked = check(parse_tree(source, diagnostics), diagnostics, ontology, parameters)
    except UsageError:
        if not source.lost:
            raise
        checked = None
    if source.lost:
        told = {(each.file, each.line, each.column) for each in problems}
        diagnostics.found = [
            each
            for each in diagnostics.found
            if each in problems
            or not (each.code in _FROM_OTHER_FILES or (each.file, each.line, each.column) in told)
        ]
    if checked is None or diagnostics.has_errors:
        raise LibraryError(diagnostics.in_order())
    return checked


def with_definitions(
    running: CheckedLibrary, more: str | HasTree, *, replacing: bool
) -> CheckedLibrary:
    """The running library with more definitions; with `replacing`, they may replace known ones.

    Parameters keep the values that they have, unless a new declaration replaces them.
    """
    text = more if isinstance(more, str) else print_library(more.checked.as_written)
    new, found = _read(text)
    given = {_name(each): each for each in new.definitions}
    before = running.as_written.definitions
    kept = [each for each in before if not _is_replaced(each, given, replacing)]
    order = [_name(each) for each in before]
    values = _values(running, kept)
    if not isinstance(more, str):
        values |= _values(more.checked, new.definitions)
    if not found:
        tree = _in_order((*kept, *new.definitions), order)
        quickly_checked = _checked_without_findings(tree, running.ontology, values)
        if quickly_checked is not None:
            return quickly_checked
    source = Source(((RUNNING, print_library(LibraryTree(tuple(kept)))), ("<text>", text)))
    whole = checked_source(source, running.ontology, values).as_written.definitions
    checked = check(_in_order(whole, order), Diagnostics(source), running.ontology, values)
    assert checked is not None, "the order of definitions makes no mistakes"
    return checked


def with_parameters(running: CheckedLibrary, given: GivenValues) -> CheckedLibrary:
    """The running library with other values of some parameters. Raises `UsageError`."""
    values = {**_values(running, running.as_written.definitions), **given}
    tree = running.as_written
    source = Source.of(print_library(tree), RUNNING)
    checked = check(tree, Diagnostics(source), running.ontology, values)
    # With other values the same text may have mistakes, such as a repetition that is too long.
    return checked or checked_source(source, running.ontology, values)


def _values(library: CheckedLibrary, definitions: Iterable[Definition]) -> dict[str, object]:
    """The values of the parameters that are declared in some definitions."""
    names = {each.name for each in definitions if isinstance(each, Parameter)}
    return {each.name: each.value for each in library.parameters if each.name in names}


def _read(text: str) -> tuple[LibraryTree, bool]:
    """The definitions of a text, and whether they have findings."""
    diagnostics = Diagnostics(Source.of(text))
    return parse_tree(diagnostics.source, diagnostics), bool(diagnostics.found)


def without(running: CheckedLibrary, names: Iterable[str]) -> CheckedLibrary:
    """The running library without the correlations (or types) of these names."""
    gone = set(names)
    definitions = running.as_written.definitions
    known = [each.name for each in definitions]
    for name in gone:
        if name not in known:
            hint = did_you_mean(name, known)
            raise UsageError(f"there is no `{name}` in the library that runs; {hint}")
    kept = LibraryTree(tuple(each for each in definitions if each.name not in gone))
    values = _values(running, kept.definitions)
    checked = _checked_without_findings(kept, running.ontology, values)
    source = Source.of(print_library(kept), RUNNING)
    return checked or checked_source(source, running.ontology, values)


def is_unchanged(old: Correlation, new: Correlation, types: TypeSystem, now: TypeSystem) -> bool:
    """Whether a correlation means the same: its own text, and the attributes of its types.

    Where its outputs go (`internal`) is nothing that it remembers.
    """
    if replace(old, role=None) != replace(new, role=None):
        return False
    return all(
        name in types
        and name in now
        and dict(types.attributes(name)) == dict(now.attributes(name))
        and types.derived(name) == now.derived(name)
        for name in _types_of(old)
    )


def _types_of(correlation: Correlation) -> set[str]:
    names = {port.type for port in correlation.ports if isinstance(port, EventPort)}
    names.add(correlation.output)
    return names | {each.type for each in statements_of(correlation) if isinstance(each, PushNew)}


class _StopAtFinding(Diagnostics):
    """For a library that is expected to have no findings: the first one ends the check."""

    def _add(self, *what: object) -> None:  # noqa: ARG002
        raise _FindingError


class _FindingError(Exception):
    pass


def _checked_without_findings(
    tree: LibraryTree, ontology: BindingOntology | None, values: GivenValues
) -> CheckedLibrary | None:
    """The library of a tree, without reading its text again; None if it has findings.

    With findings it is read again as one text, so that each finding has its place. To read a
    thousand rules takes half a second, for which a run would stand still.
    """
    limits, size = DEFAULT_LIMITS, len(print_library(tree).encode())
    if len(tree.definitions) > limits.definitions or size > limits.bytes:
        return None
    try:
        return check(tree, _StopAtFinding(Source.of("")), ontology, values)
    except _FindingError:
        return None


def _in_order(definitions: Iterable[Definition], order: list[_Name]) -> LibraryTree:
    """Known definitions in their old order, then new ones; equal names stay side by side."""
    places = {name: place for place, name in enumerate(order)}
    return LibraryTree(
        tuple(sorted(definitions, key=lambda each: places.get(_name(each), len(order))))
    )


def _is_replaced(old: Definition, given: Mapping[_Name, Definition], replacing: bool) -> bool:
    """Whether a new definition replaces an old one. A type may be declared again as it is."""
    new = given.get(_name(old))
    if new is None:
        return False
    return replacing or (isinstance(old, EventTypeDeclaration | Parameter) and old == new)


_Name = tuple[str, str]
"""What a definition is, and its name: rules and their uses share their names."""


def _name(definition: Definition) -> _Name:
    if isinstance(definition, EventTypeDeclaration):
        return "type", definition.name
    return "parameter" if isinstance(definition, Parameter) else "rule", definition.name
