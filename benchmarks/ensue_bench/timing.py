"""The clock of all measurements: seconds of the processor, repeat by repeat.

The work runs in one thread, so the processor's time is what an idle core would take, and others on
the machine disturb it least. What is compared takes turns (`side_by_side`), so that a slow moment
of the machine falls on all of them, and a ratio is taken within each round before the median is.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Work:
    """A call to measure, and what makes its argument before each repeat, unmeasured."""

    run: Callable[[Any], Any]
    prepare: Callable[[], Any] = lambda: None


def seconds(work: Work, repeats: int, warm: bool = True) -> list[float]:
    """The processor seconds of each repeat, after one that does not count."""
    return side_by_side({"": work}, repeats, warm)[""]


def side_by_side(
    works: Mapping[str, Work], repeats: int, warm: bool = True
) -> dict[str, list[float]]:
    """The processor seconds of each work in each round; the works take turns."""
    found: dict[str, list[float]] = {name: [] for name in works}
    if warm:
        for work in works.values():
            work.run(work.prepare())
    for _ in range(repeats):
        for name, work in works.items():
            ready = work.prepare()
            # What an earlier repeat has left behind is not to be swept up on this one's time.
            gc.collect()
            begin = time.process_time()
            work.run(ready)
            found[name].append(time.process_time() - begin)
    return found


def rates(count: int, taken: Sequence[float]) -> list[float]:
    """How many a second, in each repeat."""
    return [count / each for each in taken]


def ratios(of: Sequence[float], to: Sequence[float]) -> list[float]:
    """The quotient of two measurements, for each round."""
    return [one / other for one, other in zip(of, to, strict=True)]
