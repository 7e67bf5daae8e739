"""Behaviours step as the reference engine does, on random rules and random events.

An analysis is worth what its steps are worth. Here they are taken along streams of real events, and
held against the engine moment by moment: with windows, and with many labels that change.
"""

from __future__ import annotations

from contextlib import suppress
from random import Random

import msgspec
import pytest

import ensue
from ensue.library import Library
from ensue.machine.analyses.behaviour import Behaviour, Configuration
from ensue.machine.analyses.deadline import UndecidableError
from ensue.machine.analyses.events.alphabet import Symbol, alphabets
from tests.oracle.rare import RareDrawing

from . import rules

SEEDS = 120
MOMENTS = 40
SECOND = 1_000_000


def draw_rule(seed: int) -> Library | None:
    """A filter without timers in which labels change; None if there is none to be had."""
    drawing = RareDrawing(seed)
    drawing.timers, drawing.changes, drawing.depth = 0.0, 0.9, 3
    drawing.corners |= {"labels"}
    drawing.draw_types()
    types = "\n".join(drawing.type_text(each) for each in drawing.types)
    rule = drawing.draw_rule()
    drawing.by_clause = lambda _: ""  # type: ignore[method-assign, assignment]
    with suppress(ensue.LibraryError):
        return ensue.parse(f"{types}\n{drawing.filter_text(rule)}")
    return None


def told(behaviour: Behaviour, stream: list[tuple[Symbol, int]]) -> list[bool]:
    """At which moments the behaviour puts something out."""
    config, times, found = Configuration(), dict[int, int](), []
    for number, (symbol, time) in enumerate(stream, 1):
        if behaviour.window:
            old = frozenset(n for n, at in times.items() if at < time - behaviour.window)
            config = config.without(old)
        outcome = behaviour.read(config, symbol.atoms[0], number)
        config, times[number] = outcome.config, time
        found.append(outcome.puts_out)
    return found


def seen(library: Library, stream: list[tuple[Symbol, int]]) -> list[bool]:
    """At which moments the reference engine does."""
    run = rules.alone(library, library.correlations[0])
    found = []
    for number, (symbol, time) in enumerate(stream):
        assert symbol.event is not None
        event = msgspec.structs.replace(symbol.event, id=f"e{number}", time=time)
        found.append(bool(run.push(event)))
    return found


@pytest.mark.parametrize("first", range(0, SEEDS, 30))
def test_steps_agree_with_the_reference_engine(first: int) -> None:
    foreseen = 0
    for seed in range(first, first + 30):
        library = draw_rule(seed)
        if library is None:
            continue
        try:
            behaviour = Behaviour(library.correlations[0])
            (alphabet,) = alphabets([behaviour], library.checked.types)
        except UndecidableError:
            continue
        draw, time = Random(seed), 0
        stream: list[tuple[Symbol, int]] = []
        for _ in range(MOMENTS if alphabet.symbols else 0):
            time += draw.choice([0, 0, SECOND // 2, SECOND, 2 * SECOND])
            stream.append((draw.choice(alphabet.symbols), time))

        assert told(behaviour, stream) == seen(library, stream), library
        foreseen += behaviour.machine is None
    assert foreseen > 2
