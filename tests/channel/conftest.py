"""After every test of a channel, its counts have to add up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ensue.channel import Channel
from tests.channel.accounting import unbalanced
from tests.channel.making import eventually


@pytest.fixture(autouse=True)
def balanced(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Collect the channels that a test makes, and check that none has lost an event silently."""
    made: list[Channel] = []
    begin = Channel.__init__

    def begin_and_note(self: Channel, *given: Any, **named: Any) -> None:
        begin(self, *given, **named)
        made.append(self)

    monkeypatch.setattr(Channel, "__init__", begin_and_note)
    yield
    eventually(lambda: not unbalanced(made), seconds=5.0)
    assert not unbalanced(made)
