"""A library that brings its machines along: planned once, and run anywhere without planning again.

In comes a library with a plan for each of its correlations, as tables hold them (`tables.load`) or
as they were just made (`prepare`). Engines ask `plan_in` wherever they need a machine: it gives the
plan that came along, if it is for just this correlation, and makes one otherwise. A rule that has
been changed since is therefore planned anew, and never runs on the machine of another text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ensue.lang.checked import CheckedLibrary
from ensue.lang.syntax import Correlation
from ensue.machine.limits import DEFAULT_MACHINE_LIMITS, MachineLimits
from ensue.machine.plan import Plan, plan


@dataclass(frozen=True)
class PreparedLibrary(CheckedLibrary):
    """`plans` are by the names of correlations; what has none is planned when it is run."""

    plans: Mapping[str, Plan] = field(default_factory=dict)


def prepare(
    library: CheckedLibrary, limits: MachineLimits = DEFAULT_MACHINE_LIMITS
) -> PreparedLibrary:
    """The library with a plan for each correlation. Raises `LimitError` if one is too large."""
    plans = {each.name: plan_in(library, each, limits) for each in library.correlations}
    return with_plans(library, plans)


def with_plans(library: CheckedLibrary, plans: Mapping[str, Plan]) -> PreparedLibrary:
    return PreparedLibrary(
        library.tree, library.types, library.feeds, library.warnings, library.ontology, plans
    )


def plan_in(
    library: CheckedLibrary,
    correlation: Correlation,
    limits: MachineLimits = DEFAULT_MACHINE_LIMITS,
) -> Plan:
    """The plan that a library brings for a correlation, or a new one."""
    known = brought_plan(library, correlation)
    return known if known is not None else plan(correlation, library.types, limits)


def brought_plan(library: CheckedLibrary, correlation: Correlation) -> Plan | None:
    if not isinstance(library, PreparedLibrary):
        return None
    known = library.plans.get(correlation.name)
    return known if known is not None and known.correlation == correlation else None
