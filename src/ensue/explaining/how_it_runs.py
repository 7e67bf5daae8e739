"""How a correlation runs, for `ensue explain`: its forms, their reasons, and the optimisation.

In comes a correlation; out go pairs of a heading and a text. `ensue.machine.plan` decides the form
for the step engine and `path_alone` for the batch engine; nothing is run here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ensue.lang.checked import CheckedLibrary
from ensue.lang.syntax import Correlation
from ensue.machine.dense import dense_table
from ensue.machine.drawing.graph import input_text, output_text
from ensue.machine.model import Machine, PortAtom, State, Timer, Transition
from ensue.machine.passes import optimising, size_of
from ensue.machine.passes.minimising import minimise
from ensue.machine.plan import Plan
from ensue.machine.prepared import plan_in

WHOLE_TABLE = 1_000
"""The most states up to which the whole table of a machine is built, to show its size."""

LARGE_MACHINE = 2_000
"""From this many transitions on single passes are not shown, since that runs them twice."""

TRANSITIONS_SHOWN = 20
"""The most transitions of a machine that is described in words; a larger one is better drawn."""

STATES_SHOWN = 3

STEP_FORMS = {
    "table": "on a table",
    "linear": "by the transitions of its machine",
    "memory": "from remembered events",
}
BATCH_PATHS = {
    "table": "in compiled loops over columns, on its table",
    "window": "in compiled loops over columns, on a table with the times of its window",
    "timed": "in compiled loops over columns, on a table with the times of its timers",
    "related": "in compiled loops over columns, with the events of its latest match",
    "events": "event by event",
}
BATCH_LIMITS = {
    "table": "past the budget of the table it goes on event by event",
    "window": "past the budget of the table it goes on event by event",
}


def how_it_runs(
    library: CheckedLibrary, correlation: Correlation, unoptimised: bool
) -> Iterator[tuple[str, str]]:
    planned = plan_in(library, correlation)
    yield "step", f"{STEP_FORMS[planned.form]}: {planned.why}"
    yield "batch", _batch(library, correlation, planned)
    if planned.built is None or planned.machine is None:
        return
    yield "built", _size(*_sizes(planned.built))
    if unoptimised:
        yield "", "the engines run it optimised: without `--unoptimised` that is shown"
        return
    if len(planned.built.transitions) < LARGE_MACHINE:
        yield from _passes(planned.built)
    yield "optimised", _size(*_sizes(planned.machine))
    if planned.form == "table":
        yield "whole table", _whole_table(planned.machine)


def _batch(library: CheckedLibrary, correlation: Correlation, planned: Plan) -> str:
    # The compiled loops take a while to load.
    from ensue.engine.batch.paths import path_alone

    path, _ = path_alone(correlation, planned, library.types)
    parts = [BATCH_PATHS.get(path.name, path.name)]
    parts += [each for each in (path.reason, BATCH_LIMITS.get(path.name)) if each]
    return ": ".join(parts)


def _passes(built: Machine) -> Iterator[tuple[str, str]]:
    """The passes that changed the machine, each with the sizes before and after it."""
    idle: dict[str, bool] = {}
    before = _sizes(built)
    for name, machine in optimising(built):
        after = size_of(machine)
        idle[name] = idle.get(name, True) and after == before
        if after != before:
            yield f"  {name}", f"{_size(*before)} -> {_size(*after)}"
        before = after
    if any(idle.values()):
        yield "", f"nothing changed by {', '.join(name for name in idle if idle[name])}"


def _sizes(machine: Machine) -> tuple[int, int]:
    return len(machine.names), len(machine.transitions)


def _size(states: int, transitions: int) -> str:
    return f"{states:,} states, {transitions:,} transitions"


def _whole_table(machine: Machine) -> str:
    """The size of the table if each event matches one port, and the size of a minimal table."""
    letters = [
        frozenset({number})
        for number, atom in enumerate(machine.atoms)
        if isinstance(atom, PortAtom)
    ]
    if len(letters) * WHOLE_TABLE > 100_000:
        return f"not made: {len(letters)} kinds of events"
    if any(isinstance(each.input, Timer) for each in machine.transitions):
        return "not made: it has timeouts"
    table = dense_table(machine, letters, WHOLE_TABLE)
    if table is None:
        return f"not made: it has more than {WHOLE_TABLE:,} states"
    smallest = len(minimise(table).rows)
    states = "1 state" if len(table.rows) == 1 else f"{len(table.rows):,} states"
    if smallest == len(table.rows):
        return f"{states}, if each event matches one port; none of them could be merged"
    return f"{states}, if each event matches one port; {smallest:,} would do (`minimise`)"


# --- the machine itself -------------------------------------------------------------------------


def machine_lines(machine: Machine, arrow: str) -> Iterator[str]:
    """The transitions of a machine in their order, one a line."""
    if len(machine.transitions) > TRANSITIONS_SHOWN:
        yield f"{len(machine.transitions):,} transitions: `--format svg` or `json` shows them"
        return
    yield f"at the start {_named(machine, sorted(machine.initial), ' and ')}"
    yield from (_line(machine, each, arrow) for each in machine.transitions)


def _line(machine: Machine, transition: Transition, arrow: str) -> str:
    needs = " and ".join(_named(machine, sorted(s), " or ") for s in transition.enabling)
    event = input_text(machine, transition)
    does = [output_text(machine, transition)]
    if transition.target:
        does.append(_named(machine, sorted(transition.target), " and "))
    left = sorted(transition.clear - transition.target)
    if left:
        does.append(f"clears {_named(machine, left, ', ')}")
    reading = f", {event}" if event else ""
    return f"{needs}{reading} {arrow} {'; '.join(each for each in does if each) or 'nothing'}"


def _named(machine: Machine, states: Sequence[State], link: str) -> str:
    names = [f"[{machine.distinct_names[state]}]" for state in states[:STATES_SHOWN]]
    more = len(states) - len(names)
    return link.join([*names, *([f"{more} more"] if more > 0 else [])])
