"""From a syntax tree to a library that can run: every name is known and every type fits.

In comes a tree, from text or from the builder; out goes a `CheckedLibrary`, or None if there is an
error. All mistakes are reported at once, each at the name that is wrong. Text that is no library is
refused earlier, by `ensue.lang.parsing.parser`. The single checks are in `ensue.lang.checking`.
"""

from __future__ import annotations

from dataclasses import replace

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
from ensue.lang.expanding.expansion import expanded, report_of_uses
from ensue.lang.expanding.parameters import GivenValues, types_with_values
from ensue.lang.expressions.binding import BindingOntology, bound
from ensue.lang.syntax import (
    OUTSIDE,
    Correlation,
    EclCorrelation,
    FilterCorrelation,
    LibraryTree,
    Use,
)


def check(
    tree: LibraryTree,
    diagnostics: Diagnostics,
    ontology: BindingOntology | None = None,
    parameters: GivenValues | None = None,
) -> CheckedLibrary | None:
    """The library, or None where it has an error (one that was reported before counts too).

    With an ontology the concept terms of its predicates are bound to it. Raises `UsageError` for
    values of `parameters` that do not fit.
    """
    if ontology is not None:
        tree = bound(tree, ontology, diagnostics)
    given = parameters or {}
    types = tree.types
    if tree.parameters:
        types = types_with_values(types, tree.parameters, given)
    scope = check_event_types(types, diagnostics)
    _check_names(tree, scope)
    expansion = expanded(tree, types, given, scope)
    running = expansion.tree.correlations
    for rule in (*running, *expansion.templates):
        if rule.name not in expansion.uses:
            _check_correlation(rule, scope)
    alone = list(diagnostics.found)
    for use in expansion.uses.values():
        _check_correlation(use.rule, replace(scope, diagnostics=use.found))
    report_of_uses(expansion.uses, alone, scope)
    feeds = check_wiring(running, expansion.templates, expansion.uses, scope)
    if diagnostics.has_errors:
        return None
    if expansion.refused is not None:
        raise expansion.refused
    return CheckedLibrary(
        expansion.tree,
        wired_types(scope.types.type_system(), wire_names(tree)),
        feeds,
        diagnostics.in_order(),
        ontology,
        None if expansion.written == expansion.tree else expansion.written,
        expansion.parameters,
    )


def _check_names(tree: LibraryTree, scope: LibraryScope) -> None:
    """Report names of rules, uses among them, that are taken."""
    named: dict[str, Correlation | Use] = {}
    for each in tree.definitions:
        if not isinstance(each, FilterCorrelation | EclCorrelation | Use):
            continue
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
            what = "use" if isinstance(each, Use) else "correlation"
            scope.error(
                "duplicate-correlation",
                f"{what} `{each.name}` is defined twice",
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
