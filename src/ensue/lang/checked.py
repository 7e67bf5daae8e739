"""A checked library, in which every name is known and every type fits: all other rooms use it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from ensue.events.types import TypeSystem
from ensue.lang.derived.attributes import derived_names, with_derived_names
from ensue.lang.derived.extensions import with_extension_types
from ensue.lang.derived.wire_names import wired_correlations
from ensue.lang.diagnostics import Diagnostic
from ensue.lang.expressions.binding import BindingOntology
from ensue.lang.syntax import Correlation, LibraryTree, Parameter


@dataclass(frozen=True)
class CheckedLibrary:
    """A library without errors; with an ontology, its concept terms are bound to it.

    `tree` has what runs: event types and rules, with the values of parameters, and a rule for each
    use; `written` is the library as it was written, where that differs, and `parameters` are its
    parameters with the values that they have here. In `types` and `correlations` a type has the
    name that its events carry, which a declaration may set (`wire_names`), and in `correlations`
    the name of a derived attribute knows how it is worked out (`attributes`), and an extension has
    its type (`extensions`). `feeds` has for each correlation the correlations that read its
    outputs, without circles.
    """

    tree: LibraryTree
    types: TypeSystem
    feeds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    warnings: tuple[Diagnostic, ...] = ()
    ontology: BindingOntology | None = field(default=None, compare=False)
    written: LibraryTree | None = field(default=None, compare=False)
    parameters: tuple[Parameter, ...] = field(default=(), compare=False)

    @property
    def as_written(self) -> LibraryTree:
        return self.tree if self.written is None else self.written

    @cached_property
    def correlations(self) -> tuple[Correlation, ...]:
        named = with_derived_names(wired_correlations(self.tree), derived_names(self.tree))
        return with_extension_types(named, self.types)
