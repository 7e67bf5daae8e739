"""Firings that loops have written from key to key, in the order of the stream."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import ensue
from ensue.engine.batch import BatchEngine
from ensue.engine.batch.many.visits import _alarms_in_order
from ensue.engine.batch.output import firings
from ensue.engine.core.cells import FiringRoom
from tests.agreement.observed import as_text
from tests.engine.random_rules import TYPES, expected_of, reading


@pytest.mark.parametrize("longest", [0, 3, 1000, 10**12])
@pytest.mark.parametrize("events", [0.0, 0.5, 1.0])
def test_alarms_come_by_time_rule_and_start_and_before_the_rows_of_their_time(
    longest: int, events: float
) -> None:
    """Whether they are far from each other or all at one moment."""
    random = Random(longest)
    times = np.sort(np.array([random.randint(0, longest) for _ in range(40)]))
    room, count = FiringRoom(512, 1, timed=True), 300
    held = room.arrays
    for each in range(count):
        row = random.randrange(40) if random.random() < events else -1
        held.rows[each] = row + 5 if row >= 0 else -1
        held.rules[each] = random.randrange(4)
        time = times[row] if row >= 0 else random.randint(0, longest)
        held.when[each] = (time, random.randrange(3), 0)

    alarms = _alarms_in_order(room, count)
    found = firings.order_firings(held.rows, count, times, 5, alarms, held.when)

    def place(each: int) -> tuple[int, ...]:
        row, rule = int(held.rows[each]), int(held.rules[each])
        time, start, _ = held.when[each].tolist()
        if row >= 0:
            return (2 * (row - 5) + 1,)
        return (2 * int(np.searchsorted(times, time)), time, rule, start)

    assert found.tolist() == sorted(range(count), key=place)


def test_rules_without_a_window_fire_among_the_others_in_the_order_of_the_library() -> None:
    """From the first event on, for which every move has yet to be worked out."""
    case = "{ case true: push new Found { first = a.n, last = b.n }; }"
    shapes = ["a + b", "a | b", "a ; b"]
    rules = [
        f"Found correlation R{number} (T a where n < {2 + number % 5}, T b where n > {number % 4})"
        f" {shapes[number % 3]} {'within 3 ms' if number % 7 < 3 else ''} by k {case}"
        for number in range(70)
    ]
    library = ensue.parse(TYPES + "\n".join(rules))
    random = Random(1)
    given = [
        reading(f"e{n}", "T", 700 * n, random.choice("xyz"), random.randrange(8))
        for n in range(200)
    ]
    engine = BatchEngine(library.checked)
    pieces = given[:1], given[1:61], given[61:]
    found = [as_text(each) for piece in pieces for each in engine.read_all(piece)]
    assert found == expected_of(library, given, given[-1].time)
