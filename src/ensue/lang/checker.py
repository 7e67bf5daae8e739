"""From a syntax tree to a library that can run: every name is known and every type fits.

In comes a tree, from text or from the builder; out goes a `CheckedLibrary`, or None if there is an
error. All mistakes are reported at once, each at the name that is wrong. Text that is no library is
refused earlier, by `ensue.lang.parsing.parser`. The single checks are in `ensue.lang.checking`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ensue.lang.checked import CheckedLibrary
from ensue.lang.checking.clauses import check_clauses
from ensue.lang.checking.ecl import check_ecl
from ensue.lang.checking.event_types import check_event_types
from ensue.lang.checking.filters import check_filter
from ensue.lang.checking.ports import check_keys, check_ports, warn_unused
from ensue.lang.checking.scope import LibraryScope
from ensue.lang.checking.transformers import TransformerFacts
from ensue.lang.checking.wiring import check_wiring
from ensue.lang.derived.wire_names import wire_names, wired_types
from ensue.lang.diagnostics import Diagnostics
from ensue.lang.expressions.binding import BindingOntology, bound
from ensue.lang.syntax import OUTSIDE, Correlation, EclCorrelation, LibraryTree


def check(
    tree: LibraryTree, diagnostics: Diagnostics, ontology: BindingOntology | None = None
) -> CheckedLibrary | None:
    """The library, or None where it has an error (one that was reported before counts too).

    With an ontology the concept terms of its predicates are bound to it.
    """
    if ontology is not None:
        tree = bound(tree, ontology, diagnostics)
    scope = check_event_types(tree.types, diagnostics)
    correlations = tree.correlations
    _check_names(correlations, scope)
    for correlation in correlations:
        _check_correlation(correlation, scope)
    feeds = check_wiring(correlations, scope)
    if diagnostics.has_errors:
        return None
    types = wired_types(scope.types.type_system(), wire_names(tree))
    return CheckedLibrary(tree, types, feeds, diagnostics.in_order(), ontology)


def _check_names(correlations: Sequence[Correlation], scope: LibraryScope) -> None:
    named: dict[str, Correlation] = {}
    for each in correlations:
        if each.name == OUTSIDE:
            scope.error(
                "reserved-name",
                f"a correlation cannot be called `{OUTSIDE}`, which after `from` means events that"
                " come from outside",
                each.span,
                "choose another name",
            )
        first = named.setdefault(each.name, each)
        if first is not each:
            scope.error(
                "duplicate-correlation",
                f"correlation `{each.name}` is defined twice",
                each.span,
                f"the first one is at {scope.place(first.span)}; rename or remove one of them",
            )


def _check_correlation(correlation: Correlation, scope: LibraryScope) -> None:
    scope.check_type(correlation.output, correlation.output_span)
    ports = check_ports(correlation, scope)
    check_keys(correlation.clauses.by, ports, scope)
    if isinstance(correlation, EclCorrelation):
        used = check_ecl(correlation, ports, scope)
    else:
        facts = check_filter(correlation, ports, scope)
        transformer = TransformerFacts(correlation, ports, facts, scope)
        transformer.check()
        used = (
            facts.ports | transformer.used_ports | check_clauses(correlation, ports, facts, scope)
        )
    warn_unused(ports, used, correlation.clauses.by, scope)
