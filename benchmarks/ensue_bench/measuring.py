"""Runs one subject: its findings into a report, with the environment that they hold for."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import replace

from ensue.errors import UsageError
from ensue_bench import SUBJECTS
from ensue_bench.effort import Effort
from ensue_bench.environment import environment
from ensue_bench.report import Figure, Finding, Report


def check_subject(subject: str) -> None:
    if subject not in SUBJECTS:
        known = ", ".join(f"`{name}`" for name in SUBJECTS)
        raise UsageError(f"there is no benchmark `{subject}`; choose one of {known}")


def measure(
    subject: str,
    effort: Effort,
    on_finding: Callable[[Finding, Report], None] = lambda _finding, _report: None,
) -> Report:
    """Measure one subject. Raises `UsageError` if it is unknown or cannot be measured here.

    `on_finding` is told each finding, with the report so far. What an interrupt ends has the
    findings so far, and is noted in the environment.
    """
    check_subject(subject)
    # Of histories there are two: over one store at length, or over several in short.
    name = f"{subject}_stores" if effort.stores else subject
    module = importlib.import_module(f"ensue_bench.subjects.{name}")
    report = Report(subject, effort.quick, environment())
    # Until it is done: a report that was saved before says that it is not whole.
    report.environment["interrupted"] = True
    findings: Iterator[Finding] = module.measure(effort)
    try:
        for finding in findings:
            if effort.quick and isinstance(finding, Figure):
                # Tiny sizes measure overheads; an aim met or missed there would say nothing.
                finding = replace(finding, aim=None)
            report.add(finding)
            on_finding(finding, report)
    except KeyboardInterrupt:
        if not (report.figures or report.curves or report.tables):
            raise
    else:
        del report.environment["interrupted"]
    report.close()
    return report
