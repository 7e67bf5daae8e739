"""The process ends in the middle of a round."""

from __future__ import annotations

import os
from collections.abc import Mapping

SHORT = ()


def hunt(seed: int) -> Mapping[str, int]:
    print(f"the last words of {seed}", flush=True)
    os._exit(7)
