"""A library in which every name is known and every type fits: what the later rooms work from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from ensue.events.types import TypeSystem
from ensue.lang.derived.wire_names import wired_correlations
from ensue.lang.diagnostics import Diagnostic
from ensue.lang.expressions.binding import BindingOntology
from ensue.lang.syntax import Correlation, LibraryTree


@dataclass(frozen=True)
class CheckedLibrary:
    """`feeds` has for each correlation the readers of its outputs; it has no circles.

    `tree` is the library as it was written. In `types` and `correlations` a type goes by the name
    that its events carry, which is another one where the declaration says so (`wire_names`).
    The concept terms of its predicates are bound to the ontology, where there is one.
    """

    tree: LibraryTree
    types: TypeSystem
    feeds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    warnings: tuple[Diagnostic, ...] = ()
    ontology: BindingOntology | None = field(default=None, compare=False)

    @cached_property
    def correlations(self) -> tuple[Correlation, ...]:
        return wired_correlations(self.tree)
