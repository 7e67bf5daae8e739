"""Engines whose sizes are small, for tests of what happens when something becomes larger."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ensue.engine.sizes import small_sizes


@pytest.fixture
def everything_small() -> Iterator[None]:
    with small_sizes():
        yield
