"""The state of a stream on the step engine as plain data, rule by rule.

In comes a stream; out goes a `SavedStream`, and the other way round. `core.saved_rules` saves one
rule and its keys. A state that no stream of the library can have had is refused
with `SnapshotError`.
"""

from __future__ import annotations

from ensue.engine.core.instances.rules import SavedForm
from ensue.engine.core.saved_rules import (
    SavedStream,
    damaged,
    item_at,
    last_read_in,
    restore_machine,
    restore_rule,
    save_machine,
    save_rule,
)
from ensue.engine.step.stream import StepStream
from ensue.lang.checked import CheckedLibrary
from ensue.lang.syntax import FilterCorrelation
from ensue.machine.records import MachineRecord


def save_stream(stream: StepStream, now: int | None) -> SavedStream:
    """The state of a stream whose order is settled up to `now`."""
    machines: dict[MachineRecord, int] = {}
    rules = []
    due = stream.next_due()
    if now is not None:
        # What is settled may run ahead of the clock: timers that are due have yet to see the past.
        now = now if due is None else min(now, due)
        stream.sweep(now)
    for rule in stream.rules:
        machine = None
        if rule.machine is not None:
            machine = machines.setdefault(save_machine(rule.machine), len(machines))
        rules.append(save_rule(rule, machine, now))
    return SavedStream(list(machines), rules, next(stream.numbers), stream.apart)


def restore_stream(stream: StepStream, library: CheckedLibrary, saved: SavedStream) -> None:
    """Put a fresh stream of the same library into the state that was saved."""
    correlations = {each.name: each for each in library.correlations}
    if [each.name for each in saved.rules] != list(correlations):
        raise damaged("its rules are not those of its library")
    forms: dict[str, SavedForm] = {}
    built = {rule.name: rule for rule in stream.rules}
    for rule in saved.rules:
        correlation = correlations[rule.name]
        fresh = built[rule.name]
        plain = None if rule.machine is None else item_at(saved.machines, rule.machine)
        match rule.form, plain:
            case "memory", None if isinstance(correlation, FilterCorrelation):
                forms[rule.name] = ("memory", None)
            case ("table" | "linear") as form, MachineRecord():
                same = fresh.machine is not None and save_machine(fresh.machine) == plain
                machine = fresh.machine if same else restore_machine(plain, correlation)
                forms[rule.name] = (form, machine)
            case _:
                raise damaged(f"`{rule.name}` has no form")
    read = max(saved.read, 1 + last_read_in(saved.rules))
    stream.begin_again(library, forms, read, saved.apart)
    for running, state in zip(stream.rules, saved.rules, strict=True):
        restore_rule(running, state)
    stream.settle()
