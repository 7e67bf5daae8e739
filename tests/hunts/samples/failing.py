"""Every third seed is wrong, and the seed 100 never ends."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

SHORT = (1, 2)
FAULTS = ("loss", "delay")


def hunt(seed: int, faults: Sequence[str]) -> Mapping[str, int]:
    if seed == 100:
        time.sleep(1000)
    if seed % 3 == 0:
        raise AssertionError(f"{seed} is wrong with {', '.join(faults)}")
    return {"numbers": 1}
