"""Measurements of Ensue, on the machine at hand: `ensue bench WHAT`.

In comes the name of a subject and how much effort to spend; out goes a `Report` of figures and
curves, which prints as a table and saves as JSON. A subject is one module of this room with a
`measure(effort)` that yields what it finds; naming it in `SUBJECTS` is all that it takes to add
one. Nothing here is part of running a rule, and only the command imports it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from ensue.bench.effort import Effort
from ensue.bench.environment import environment
from ensue.bench.report import Curve, Figure, Report
from ensue.errors import UsageError

SUBJECTS: Mapping[str, str] = {
    "machine": "loading rules, the step engine, many rules, snapshots, first use",
    "batch": "events a second from Arrow tables, and of the loops alone",
    "curves": "cost against expression, keys, rules and window",
    "esper": "the same events and patterns through Esper, beside both engines",
}
"""What can be measured; a subject is the module of that name."""

Finding = Figure | Curve


def measure(
    subject: str, effort: Effort, on_finding: Callable[[Finding], None] = lambda _: None
) -> Report:
    """Measure one subject. Raises `UsageError` if it is unknown or cannot be measured here."""
    if subject not in SUBJECTS:
        known = ", ".join(f"`{name}`" for name in SUBJECTS)
        raise UsageError(f"there is no benchmark `{subject}`; choose one of {known}")
    module = importlib.import_module(f"ensue.bench.{subject}")
    report = Report(subject, effort.quick, environment())
    findings: Iterator[Finding] = module.measure(effort)
    for finding in findings:
        if effort.quick and isinstance(finding, Figure):
            # Tiny sizes measure overheads; an aim met or missed there would say nothing.
            finding = replace(finding, aim=None)
        report.add(finding)
        on_finding(finding)
    report.close()
    return report


__all__ = ["SUBJECTS", "Curve", "Effort", "Figure", "Finding", "Report", "measure"]
