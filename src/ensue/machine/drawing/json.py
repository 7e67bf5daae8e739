"""A machine as JSON, for programs: every state and transition with all of its sets."""

from __future__ import annotations

import json
from typing import Any

from ensue.machine.drawing.graph import input_text, output_text
from ensue.machine.model import Machine, PortAtom, PredicateAtom, Timer


def to_json(machine: Machine, **about: Any) -> str:
    """The machine; `about` is put before it (the name of the correlation, its form)."""
    return json.dumps({**about, **_machine(machine)}, indent=2, ensure_ascii=False)


def _machine(machine: Machine) -> dict[str, Any]:
    return {
        "states": [
            {"state": number, "name": name, "initial": number in machine.initial}
            for number, name in enumerate(machine.names)
        ],
        "transitions": [
            {
                "enabling": [sorted(states) for states in transition.enabling],
                "input": input_text(machine, transition) or None,
                "kind": _kind(machine, transition.input),
                "clear": sorted(transition.clear),
                "target": sorted(transition.target),
                "output": output_text(machine, transition) or None,
            }
            for transition in machine.transitions
        ],
        "branches": [
            {
                "labels": [{"label": label, "state": state} for label, state in branch.labels],
                "places": [
                    {"place": place, "port": port, "state": state}
                    for place, port, state in branch.places
                ],
            }
            for branch in machine.branches
        ],
        "switches": [
            {
                "kind": switch.kind,
                "label": switch.label,
                "requires": switch.requires,
                "clear": sorted(switch.clear),
                "target": sorted(switch.target),
            }
            for switch in machine.switches
        ],
        "window": machine.window,
    }


def _kind(machine: Machine, wanted: int | Timer | None) -> str:
    if wanted is None:
        return "internal"
    if isinstance(wanted, Timer):
        return "timeout"
    atom = machine.atoms[wanted]
    if isinstance(atom, PortAtom):
        return "port"
    return "predicate" if isinstance(atom, PredicateAtom) else "any"
