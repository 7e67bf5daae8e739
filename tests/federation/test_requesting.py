"""A request from outside, and the answers that gateways bring back."""

from __future__ import annotations

import asyncio

import pytest

from ensue.federation import requesting
from ensue.federation.adapters.base import Service
from ensue.federation.routing import control


class Answering:
    """A service where two gateways bring back one answer, and a third gives its own."""

    def __init__(self, _: Service) -> None:
        self._told: list[control.Request] = []

    async def connect(self) -> None: ...

    async def close(self) -> None: ...

    async def tell(self, message: bytes) -> None:
        said = control.read(message)
        assert isinstance(said, control.Request)
        self._told.append(said)

    async def hear(self) -> list[bytes]:
        if not self._told:
            await asyncio.sleep(60)
        request = self._told.pop().id
        answers = [
            control.RequestDone("1", request, "near", ("office",)),
            control.RequestDone("1", request, "near", ("office",), hops=1),
            control.RequestDone("2", request, "far", ("office",)),
        ]
        return [control.write(each) for each in answers]


def test_an_answer_that_comes_several_ways_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requesting, "adapter_class", lambda _: Answering)
    said: list[str] = []
    request = control.Request("r", "subscribe", "office")

    assert requesting.run_request(Service("cars", "memory"), request, 0.5, said.append)
    assert said == ["done by `near` at `office`", "done by `far` at `office`"]
