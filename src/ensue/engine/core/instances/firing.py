"""The outputs of a branch that fires: a function that is compiled once for each kind of firing.

Where no statement changes labels, the cases that run are known with the active labels. So a firing
becomes a function (`compile_firing`) that fetches the bound events and builds the outputs. A rule
that changes labels runs the general `Transformer` instead (`filters`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from ensue.engine.core.instances.emitting import compile_single
from ensue.engine.core.instances.recipes import recipe_of
from ensue.engine.outputs import TIMER, Outputs
from ensue.engine.ports import Reading
from ensue.events.event import Event
from ensue.events.types import TypeSystem
from ensue.lang.syntax import FilterCorrelation
from ensue.machine.stepping import Fired

NumberedEvent = tuple[int, Event | int]
"""An event, or the time of a timer's firing, with the number of its reading. Numbers grow."""


_number: Callable[[Any], int] = itemgetter(0)


def reading_of(numbered: NumberedEvent) -> Reading:
    _, what = numbered
    if isinstance(what, int):
        return Reading(what, frozenset())
    return Reading(what.time, frozenset(), what)


def trigger_of(numbered: NumberedEvent) -> str:
    """The `trigger` of outputs: the id of the event, or `timer`."""
    return TIMER if isinstance(numbered[1], int) else numbered[1].id


def bound_events(
    pairs: Iterable[tuple[int, str]], places: Sequence[NumberedEvent | None], first: bool
) -> dict[str, NumberedEvent]:
    """The last (or first) over the places of each port."""
    found: dict[str, NumberedEvent] = {}
    for place, port in pairs:
        numbered = places[place]
        assert numbered is not None, "a place that counts as bound holds an event"
        known = found.get(port)
        if known is None or (numbered[0] < known[0]) == first:
            found[port] = numbered
    return found


def in_order(found: Mapping[str, NumberedEvent]) -> dict[str, NumberedEvent]:
    return dict(sorted(found.items(), key=_when_read))


def _when_read(item: tuple[str, NumberedEvent]) -> int:
    return item[1][0]


EmitOutputs = Callable[[Outputs, Any, int, str], list[Event]]
"""Builds the outputs of a firing from `Outputs`, the holder of places, the time and the trigger."""


ConstantName = Callable[[int], str]
"""Gives a constant the name by which a generated text calls it."""


PlaceText = Callable[[int, ConstantName], str]
"""The expression by which a generated text reads a place of its argument `held`."""


def place_in_list(place: int, constant: ConstantName) -> str:
    """A place, where `held` is a list of all places."""
    return f"held[{constant(place)}]"


def compile_firing(
    correlation: FilterCorrelation,
    types: TypeSystem,
    fired: Fired,
    ports: Mapping[int, str],
    place_text: PlaceText,
) -> EmitOutputs:
    """The function for a branch that fires with certain labels and places.

    `ports` has the port of each place. No statement of the rule changes labels.
    """
    choose = min if correlation.clauses.bind == "first" else max
    values: dict[str, Any] = {"choose": choose, "number_of": _number}

    def constant(number: int) -> str:
        name = f"p{len(values)}"
        values[name] = number
        return name

    recipe = recipe_of(correlation, types, fired, ports)
    bound = []
    for port in recipe.ports:
        held = [place_text(place, constant) for place in fired.places if ports[place] == port]
        one = len(held) == 1
        bound.append(held[0] if one else f"choose({', '.join(held)}, key=number_of)")
    return compile_single(recipe, correlation.name, bound, values)
