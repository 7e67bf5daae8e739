"""Decides how a correlation runs: in which form, on which machine, and why.

In comes a checked correlation; out goes a `Plan`. Three forms are possible:

- **table**: without a window a machine is a finite transducer. Its table is made as a stream visits
  it; past the limits of the table the same machine is stepped.
- **linear**: with a window the states of a machine carry times, and it is stepped. The cost of an
  event is at most linear in the size of the expression.
- **memory**: some filters need their earlier events back, and run from remembered events.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ensue.errors import LimitError
from ensue.lang.derived.relating import relates_events
from ensue.lang.garbage_collection import collection_paused
from ensue.lang.syntax import Correlation, FilterCorrelation
from ensue.machine.building.from_ecl import machine_of_ecl
from ensue.machine.building.from_filter import machine_of_filter
from ensue.machine.building.labels import left_label_aborted, needs_memory
from ensue.machine.limits import DEFAULT_MACHINE_LIMITS, MachineLimits
from ensue.machine.model import Machine
from ensue.machine.passes import optimise

Form = Literal["table", "linear", "memory"]


@dataclass(frozen=True)
class Plan:
    """The form of a correlation, the reason for it, and its machine.

    `built` is the machine before the passes, `machine` the machine after them. Both are None for a
    correlation that no machine can express. Where only bindings need memory there is a machine,
    which is right but for the bindings.
    """

    correlation: Correlation
    form: Form
    why: str
    machine: Machine | None
    built: Machine | None

    @property
    def run_as(self) -> tuple[Form, Machine | None]:
        """The form, and the machine to run on: none where the correlation runs from memory."""
        return self.form, None if self.form == "memory" else self.needed_machine

    @property
    def needed_machine(self) -> Machine:
        if self.machine is None:
            raise ValueError(f"`{self.correlation.name}` runs from memory: {self.why}")
        return self.machine

    def _repr_svg_(self) -> str | None:
        """How a notebook shows a plan: as a drawing of its machine, if it has one."""
        from ensue.machine.drawing import to_svg

        try:
            return None if self.machine is None else to_svg(self.machine, self.correlation.name)
        except LimitError:
            return None


def plan(
    correlation: Correlation,
    limits: MachineLimits = DEFAULT_MACHINE_LIMITS,
) -> Plan:
    """The form and the machine of a correlation. Raises `LimitError` if it is too large."""
    with collection_paused():
        return _plan(correlation, limits)


def _plan(correlation: Correlation, limits: MachineLimits) -> Plan:
    if not isinstance(correlation, FilterCorrelation):
        built = machine_of_ecl(correlation, limits)
        return Plan(correlation, "table", _why_a_table(limits), optimise(built), built)
    reason = needs_memory(correlation)
    if left_label_aborted(correlation) is not None or relates_events(correlation):
        return Plan(correlation, "memory", f"{reason}, which needs earlier events back", None, None)
    built = machine_of_filter(correlation, limits)
    machine = optimise(built)
    if reason is not None:
        return Plan(correlation, "memory", reason, machine, built)
    if machine.window is not None:
        why = "`within` makes it matter when an event came, so the machine is stepped with times"
        return Plan(correlation, "linear", why, machine, built)
    return Plan(correlation, "table", _why_a_table(limits), machine, built)


def _why_a_table(limits: MachineLimits) -> str:
    return (
        "there is no window, so a table is made of the states that a stream visits, "
        f"up to {limits.table_states:,}; past that the machine is stepped"
    )
