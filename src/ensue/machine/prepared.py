"""A library that carries its machines: planned once, and run anywhere without planning again.

In come a library and the plans of its correlations, as tables hold them (`tables.load`). Engines
call `plan_in` wherever they need a machine: it returns the carried plan if that is a plan of just
this correlation, and makes a plan otherwise. A rule that has been changed since is therefore
planned anew, and never runs on the machine of another text.
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
    """`plans` are by the names of correlations; a correlation without one is planned on demand."""

    plans: Mapping[str, Plan] = field(default_factory=dict)


def with_plans(library: CheckedLibrary, plans: Mapping[str, Plan]) -> PreparedLibrary:
    return PreparedLibrary(
        library.tree,
        library.types,
        library.feeds,
        library.warnings,
        library.ontology,
        library.written,
        library.parameters,
        plans,
    )


def plan_in(
    library: CheckedLibrary,
    correlation: Correlation,
    limits: MachineLimits = DEFAULT_MACHINE_LIMITS,
) -> Plan:
    """The plan that a library carries for a correlation, or a new one."""
    known = brought_plan(library, correlation)
    return known if known is not None else plan(correlation, limits)


def brought_plan(library: CheckedLibrary, correlation: Correlation) -> Plan | None:
    """The plan that a library carries for a correlation, if it carries one."""
    if not isinstance(library, PreparedLibrary):
        return None
    known = library.plans.get(correlation.name)
    return known if known is not None and known.correlation == correlation else None
