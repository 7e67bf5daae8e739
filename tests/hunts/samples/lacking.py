"""What the hunt needs is not there."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

SHORT = ()


def hunt(seed: int) -> Mapping[str, int]:
    pytest.skip("there is no moon")
