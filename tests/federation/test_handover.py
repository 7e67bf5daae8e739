"""One gateway takes over from another in the middle of traffic: every event arrives, and once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ensue.federation.adapters.base import Outgoing
from ensue.federation.adapters.memory.adapter import MemoryAdapter

from .simulation import World


def limited(work: Coroutine[Any, Any, None]) -> None:
    async def story() -> None:
        async with asyncio.timeout(60):
            await work

    asyncio.run(story())


class Gate:
    """Lets what a gateway publishes at a service wait, as a busy machine or a slow network does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, gateway: str, service: str) -> None:
        self.is_open = asyncio.Event()
        self.is_open.set()
        self.waiting = 0
        publish = MemoryAdapter.publish

        async def later(adapter: MemoryAdapter, outgoing: Sequence[Outgoing]) -> None:
            if (adapter.service.gateway, adapter.service.name) == (gateway, service):
                self.waiting += len(outgoing)
                await self.is_open.wait()
            await publish(adapter, outgoing)

        monkeypatch.setattr(MemoryAdapter, "publish", later)


def link_of(world: World, name: str, service: str) -> dict[str, Any]:
    return next(each for each in world.gateways[name].status() if each["service"] == service)


def two_ways() -> World:
    world = World()
    for name in ("a", "b"):
        world.add(name, ["s0", "s1"], ("s1", [], "TRUE"))
    return world


def test_a_gateway_that_is_back_waits_for_what_its_deputy_has_under_way(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    world = two_ways()

    async def story() -> None:
        await world.start("a", memory=tmp_path / "a")
        await world.start("b", memory=tmp_path / "b")
        await world.stop("a")
        await world.until(lambda: link_of(world, "b", "s1")["active"])
        gate = Gate(monkeypatch, "b", "s1")
        gate.is_open.clear()
        sent = [world.publish("s0", speed=50).id for _ in range(20)]
        await world.until(lambda: gate.waiting == 20)

        await world.start("a", memory=tmp_path / "a")
        await asyncio.sleep(0.5)
        assert link_of(world, "a", "s1")["waits_for"] == ["b"]
        sent += [world.publish("s0", speed=60).id for _ in range(20)]
        await asyncio.sleep(0.1)
        gate.is_open.set()
        await world.until(lambda: len(world.arrived("s1")) >= 40)
        await world.quiet()

        assert sorted(world.arrived("s1"), key=int) == sent
        assert link_of(world, "a", "s1")["active"]
        await world.stop()

    limited(story())


def test_a_deputy_that_is_cut_off_does_not_bring_again_what_others_have_brought(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    world = two_ways()

    async def story() -> None:
        await world.start("a", "b", memory=None)
        await world.until(lambda: link_of(world, "a", "s1")["active"])
        gate = Gate(monkeypatch, "a", "s1")
        gate.is_open.clear()
        sent = [world.publish("s0", speed=50).id for _ in range(20)]
        await world.until(lambda: gate.waiting == 20)
        world.hub("s1").break_off()
        await asyncio.sleep(0.2)
        gate.is_open.set()
        await world.until(lambda: len(world.arrived("s1")) >= 20)
        await world.quiet()

        assert sorted(world.arrived("s1"), key=int) == sent
        await world.stop()

    limited(story())


def test_a_gateway_that_was_stopped_brings_nothing_again_to_a_service_that_it_cannot_ask(
    monkeypatch: pytest.MonkeyPatch, limit: Callable[..., None], tmp_path: Path
) -> None:
    """One link waits for a neighbour that is gone, so that events which another service has got
    cannot be acknowledged when the gateway is told to stop."""
    unable = replace(MemoryAdapter.capabilities, recalls=False)
    monkeypatch.setattr(MemoryAdapter, "capabilities", unable)
    limit(seconds_to_drain=0.5)
    world = World()
    world.add("a", ["s0", "s1", "s2"], ("s1", [], "TRUE"), ("s2", [], "TRUE"), patience=4.0)
    world.add("b", ["s2", "s3"])

    async def story() -> None:
        await world.start("b")
        await world.start("a", memory=tmp_path / "a")
        await world.until(lambda: link_of(world, "a", "s2")["active"])
        await world.kill("b")
        await world.stop("a")
        await world.start("a", memory=tmp_path / "a")
        sent = [world.publish("s0", speed=50).id for _ in range(20)]
        await world.until(lambda: len(world.arrived("s1")) == 20)
        assert link_of(world, "a", "s2")["waits_for"] == ["b"]
        assert world.arrived("s2") == []
        await world.stop("a")
        await world.start("a", memory=tmp_path / "a")
        await world.until(lambda: len(world.arrived("s2")) >= 20)
        await world.quiet()

        assert sorted(world.arrived("s2"), key=int) == sent
        assert sorted(world.arrived("s1"), key=int) == sent
        await world.stop()

    limited(story())
