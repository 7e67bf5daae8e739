"""The stores that every test of this room runs over."""

from __future__ import annotations

from pathlib import Path

import pytest

STORES = ("memory", "sqlite")


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty history."""
    match request.param:
        case "memory":
            return "memory:"
        case _:
            return f"sqlite:{tmp_path / 'history.db'}"
