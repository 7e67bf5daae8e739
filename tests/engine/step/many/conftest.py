"""Groups of the step engine, however few rules a test has."""

from __future__ import annotations

import pytest

from ensue.engine.step.many import grouping


@pytest.fixture(autouse=True)
def few_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """One rule is enough for a group."""
    monkeypatch.setattr(grouping, "FEWEST_IN_CELLS", 1)
