"""How a correlation runs in batches by itself, and why.

In comes a correlation, with its plan if there is one; out go a `Path` and, where the correlation
runs in columns, its machine. A rule that has no form in columns runs event by event, which is
slower and always right. Which rules go through a batch together is for `arrangement`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ensue.engine.batch.input.matching import why_not_matched
from ensue.engine.core.machine_tables import RuleTimers, why_not_in_columns
from ensue.engine.core.relating.form import form_of, remembers_events
from ensue.engine.core.rule_table import place_count
from ensue.engine.core.shapes import group_traits
from ensue.engine.outputs import carries_key_inside
from ensue.events.types import TypeSystem
from ensue.lang.derived.relating import relates_events
from ensue.lang.syntax import Correlation
from ensue.machine.model import Machine
from ensue.machine.plan import Plan, plan

MOST_PLACES = 4096
"""Past so many places a key is too large for an array of them."""


@dataclass(frozen=True, slots=True)
class Path:
    """How a correlation runs and, where another way would be faster, why not so.

    `table`: on a table; `window`: on a table with registers for the times of a window; `timed`: on
    a table with timers; `related`: by candidates (`related.correlation`); `events`: event by
    event.
    """

    name: str
    reason: str = ""


def path_alone(
    correlation: Correlation, planned: Plan | None, types: TypeSystem
) -> tuple[Path, Machine | None]:
    """How a correlation runs in batches by itself, and its machine if it runs on one."""
    if carries_key_inside(correlation, types):
        return Path("events", "its outputs carry their key inside of nested data"), None
    if remembers_events(correlation):
        form = form_of(correlation, types)
        if not isinstance(form, str):
            return Path("related"), None
        if relates_events(correlation):
            return Path("events", form), None
    return path_on_machine(correlation, planned)


def path_on_machine(
    correlation: Correlation, brought: Plan | None = None
) -> tuple[Path, Machine | None]:
    """How a correlation runs by its machine, and the machine if it runs in columns.

    A rule that relates events has no machine. A plan that was brought along is taken as it is; else
    one is made.
    """
    planned = brought if brought is not None else plan(correlation)
    if planned.form == "memory":
        return Path("events", planned.why), None
    machine = planned.needed_machine
    timers = RuleTimers(correlation, machine)
    if len(timers) and (why := why_not_in_columns(correlation, machine)):
        return Path("events", why), None
    if why := why_not_matched(correlation, machine):
        return Path("events", why), None
    if place_count(machine) > MOST_PLACES:
        return Path("events", f"its ports have more than {MOST_PLACES} places"), None
    if len(timers):
        if group_traits(correlation, machine) is None:
            return Path("events", "its timers cannot be told apart in a cell"), None
        return Path("timed"), machine
    return Path("table" if machine.window is None else "window"), machine
