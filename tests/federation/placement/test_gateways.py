"""Sites at gateways, over services in memory and over real brokers."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import ensue
from ensue.errors import UsageError
from ensue.events.event import Event
from ensue.federation.adapters.base import Outgoing
from ensue.federation.adapters.memory.hub import hub
from ensue.federation.gateway import Gateway
from tests.federation.conftest import StartServer
from tests.servers.programs import MissingServerError, program, skip_as_missing

RULES = """
eventtype Failed { attribute string user; };
eventtype Entered { attribute string user; };
eventtype Granted { attribute string user; };
eventtype Out { attribute string user; };
Out correlation Break (Failed f, Entered e, Granted g from outside, Twice)
    (f{3} ; e) ; g within 1 min by user
{ case true: push new Out { user = g.user }; }
Granted correlation Twice (Granted g) g{2} by user { case true: push g; }
"""
SITES = """
[[site]]
name = "gate"
types = ["Failed", "Entered"]
[[site]]
name = "office"
types = ["Granted"]
"""
EXAMPLE = Path(__file__).parents[3] / "examples" / "placement" / "demo.py"
_numbers = count(1)


class Plant:
    """Two gateways with a site each; what arises at a site is published at a service in memory."""

    def __init__(self, folder: Path, bus: dict[str, Any], hops: int = 1) -> None:
        self.mark = f"plant{os.getpid()}x{next(_numbers)}"
        self.folder = folder
        (folder / "rules.cor").write_text(RULES)
        (folder / "sites.toml").write_text(SITES)
        between = [{**bus, "name": f"bus{n}", "address": f"{self.mark}.{n}"} for n in range(hops)]
        if bus["kind"] == "memory":
            between = [{**each, "url": f"memory:{self.mark}/{each['name']}"} for each in between]
        tables = [
            self._tables("gate", [self._own("doors"), between[0]]),
            self._tables("office", [self._own("desk"), self._own("alarms"), between[-1]]),
        ]
        tables += [self._tables(None, between[n : n + 2], f"between{n}") for n in range(hops - 1)]
        self._all_tables = tables
        self.gateways = [self._gateway(number) for number in range(len(tables))]
        self.events: list[Event] = []

    def _gateway(self, number: int) -> Gateway:
        tables = self._all_tables[number]
        memory = self.folder / f"{tables['gateway']['name']}.json"
        return Gateway.from_config(tables, str(self.folder / "x.toml"), memory)

    async def kill(self, number: int) -> None:
        """End a gateway in the middle of whatever it does."""
        gateway = self.gateways[number]
        for link in gateway._links.values():
            if link._task is not None:
                link._task.cancel()
        for task in (*gateway._tasks, *gateway._answering.tasks):
            task.cancel()
        await asyncio.sleep(0.05)

    async def come_back(self, number: int) -> None:
        self.gateways[number] = self._gateway(number)
        await self.gateways[number].start()

    def _own(self, name: str) -> dict[str, Any]:
        return {"name": name, "kind": "memory", "url": f"memory:{self.mark}/{name}"}

    def _tables(self, site: str | None, services: list[Any], name: str = "") -> dict[str, Any]:
        tables: dict[str, Any] = {
            "gateway": {"name": name or f"{site}-gateway", "settling": 0.1, "beat": 0.1},
            "service": services,
        }
        if site is not None:
            tables["site"] = {
                "name": site,
                "library": "rules.cor",
                "sites": "sites.toml",
                "from": ["doors", "desk"],
                "lateness": "100 ms",
                "beat": "50 ms",
            }
        if site == "office":
            # Asked for from everywhere: what sites tell each other is still not for clients.
            tables["subscribe"] = [{"at": "alarms"}]
        return tables

    def happen(self, kind: str, user: str = "ann") -> None:
        now = time.time_ns() // 1000
        event = Event.of(kind, time=now, id=str(next(_numbers)), source="p", data={"user": user})
        self.events.append(event)
        service = "desk" if kind == "Granted" else "doors"
        hub(f"{self.mark}/{service}").publish(Outgoing(event))

    @property
    def alarms(self) -> list[Event]:
        found = hub(f"{self.mark}/alarms").events
        return [each for each in found if "correlation" in each.extensions]

    @property
    def others(self) -> list[str]:
        found = hub(f"{self.mark}/alarms").events
        return sorted({each.type for each in found if "correlation" not in each.extensions})

    async def until(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + 20
        while not condition() and time.monotonic() < end:
            await asyncio.sleep(0.05)

    def expected(self) -> list[str]:
        run = ensue.parse(RULES).start("reference")
        return sorted(each.id for each in run.push_all(self.events))


async def story(plant: Plant) -> None:
    await asyncio.gather(*(each.start() for each in plant.gateways))
    await asyncio.sleep(1.0)
    try:
        for user in ("ann", "ben"):
            for kind in ("Failed", "Failed", "Failed", "Entered", "Granted"):
                plant.happen(kind, user)
                await asyncio.sleep(0.01)
        for _ in range(20):
            plant.happen("Failed", "eve")
            await asyncio.sleep(0.005)
        for _ in range(4):
            plant.happen("Granted", "eve")
            await asyncio.sleep(0.01)
        await plant.until(lambda: len(plant.alarms) >= len(plant.expected()))
        await asyncio.sleep(0.3)
        status = plant.gateways[0].site_status()
    finally:
        await asyncio.gather(*(each.stop() for each in plant.gateways))

    assert sorted(each.id for each in plant.alarms) == plant.expected()
    assert len(plant.expected()) == 4
    # Eve's failures complete nothing, and stay where they are.
    assert status is not None
    assert status["sent"]["office"]["events"] == 8
    assert plant.others == ["Entered", "Failed", "Granted"]


@pytest.mark.parametrize("hops", [1, 2])
def test_rules_over_sites_put_out_what_one_machine_does(tmp_path: Path, hops: int) -> None:
    asyncio.run(story(Plant(tmp_path, {"kind": "memory"}, hops)))


@pytest.mark.parametrize("kind", ["redis", "nats", "mqtt"])
def test_rules_over_sites_run_over_real_brokers(
    tmp_path: Path, kind: str, server: StartServer
) -> None:
    asyncio.run(story(Plant(tmp_path, {"kind": kind, "url": server(kind).url})))


def test_an_event_that_comes_too_late_is_refused_and_counted(tmp_path: Path) -> None:
    async def late() -> dict[str, Any]:
        plant = Plant(tmp_path, {"kind": "memory"})
        await asyncio.gather(*(each.start() for each in plant.gateways))
        old = Event.of("Failed", time=0, id="old", source="p", data={"user": "ann"})
        hub(f"{plant.mark}/doors").publish(Outgoing(old))
        gate = plant.gateways[0]

        def of_site() -> dict[str, Any]:
            return next(each for each in gate.status() if each["service"] == "gate")

        await plant.until(lambda: bool(of_site()["dropped"]))
        found = of_site()
        await asyncio.gather(*(each.stop() for each in plant.gateways))
        return found

    found = asyncio.run(late())

    assert found["dropped"].keys() == {"refused"}
    assert "comes too late" in found["last_error"]


def test_mistakes_in_the_table_of_a_site_are_told_at_once() -> None:
    tables = {
        "gateway": {"name": "g"},
        "service": [{"name": "gate", "kind": "memory"}],
        "site": {"name": "gate", "libary": "x", "lateness": "soon", "clock": "sun", "from": 3},
    }

    with pytest.raises(UsageError) as caught:
        Gateway.from_config(tables)

    for each in ("libary", "lateness", "clock", "from", "sites", "library", "of a service"):
        assert f"{each}" in str(caught.value)


def test_a_site_that_is_not_in_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rules.cor").write_text(RULES)
    (tmp_path / "sites.toml").write_text(SITES)
    tables = {
        "gateway": {"name": "g"},
        "service": [{"name": "a", "kind": "memory"}],
        "site": {"name": "gat", "library": "rules.cor", "sites": "sites.toml"},
    }

    with pytest.raises(UsageError, match="no site `gat`: did you mean `gate`"):
        Gateway.from_config(tables, str(tmp_path / "g.toml"))


def test_the_example_runs_over_a_real_broker() -> None:
    try:
        program("redis-server")
    except MissingServerError as error:
        skip_as_missing(str(error))
    done = subprocess.run(
        [sys.executable, str(EXAMPLE)], capture_output=True, text=True, timeout=120, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "as one machine has it" in done.stdout
