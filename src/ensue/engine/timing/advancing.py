"""A clock that goes far, in steps: so that the outputs of its timers need not all be held at once.

How much a step brings about is not known beforehand; it depends on the keys and on what they wait
for. So the length of a step follows from what the step before has put out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sized
from typing import TypeVar

Made = TypeVar("Made", bound=Sized)

OUTPUTS_OF_A_STEP = 4096
"""A step that puts out more than this is followed by a shorter one."""

FIRST_STEP = 1_000_000


def advance_in_steps(
    time: int,
    next_due: Callable[[], int | None],
    advance: Callable[[int], Made],
    most: int = OUTPUTS_OF_A_STEP,
) -> Iterator[Made]:
    """What `advance` makes up to a time, step by step; the timers of one moment are one step.

    `next_due` says when the first timer fires.
    """
    step = FIRST_STEP
    while (due := next_due()) is not None and due <= time:
        made = advance(min(time, due + step))
        if len(made):
            yield made
        step = max(1, step // 2) if len(made) > most else 2 * step
