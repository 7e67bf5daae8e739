"""Every hunt that computes, for a few seeds, so that none of them rots."""

from __future__ import annotations

import pytest

from tests.hunts.runner.registry import hunts, short_run


@pytest.mark.parametrize("name", [each.name for each in hunts(["computing"])])
def test_a_short_hunt_finds_nothing(name: str) -> None:
    """As long as the seeds in `SHORT` of the module of the hunt take."""
    short_run(name)
