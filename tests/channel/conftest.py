"""After every test of a channel, its counts have to add up."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.channel.accounting import balanced


@pytest.fixture(autouse=True)
def check_balance() -> Iterator[None]:
    """No channel that a test makes may lose an event silently."""
    with balanced():
        yield
