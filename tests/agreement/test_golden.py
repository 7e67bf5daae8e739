"""Golden cases put out the same whatever happens on the way."""

from __future__ import annotations

import pytest

from .comparing import difference
from .golden import golden_trials

CASES = list(golden_trials())


@pytest.mark.parametrize("way", ["step, small", "batch, small", "moved, small"])
def test_golden_cases_put_out_the_same_however_they_are_run(way: str) -> None:
    """Some nine hundred of them, saved, brought back and moved: seconds for each way."""
    found = [difference(each, way) for each in CASES]

    assert "\n\n".join(str(each) for each in found if each is not None) == ""
