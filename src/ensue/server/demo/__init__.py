"""The demonstration: a stream of made-up events and a library over it, when there is no file.

Sensors of a cold chain and logins of an office, a few events a second, in which something happens
often enough to be seen: a van that warms up, a door that stays open, a password that is guessed.
The rules are put as any library is, and can be changed, deleted and put again.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from importlib.resources import files
from typing import Any, Final

import msgspec

from ensue.errors import EnsueError
from ensue.events.cloudevents import event_of
from ensue.events.times import format_time
from ensue.server.station.rules.libraries import Edit, Libraries
from ensue.server.station.station import Station

AUTHOR: Final = "demo"
LIBRARIES: Final = ("coldchain", "logins")
EVENTS_PER_SECOND: Final = 6.0
VANS: Final = tuple(f"van-{number}" for number in range(1, 9))
USERS: Final = ("ann", "bob", "cem", "dora", "emil", "fay")


def text_of(name: str) -> str:
    return (files("ensue.server") / "demo" / f"{name}.cor").read_text("utf-8")


class Demonstration:
    """Publishes made-up events until it is cancelled."""

    def __init__(self, station: Station, libraries: Libraries, seed: int | None = None) -> None:
        self._station = station
        self._libraries = libraries
        self._random = random.Random(seed)
        self._celsius = dict.fromkeys(VANS, 4.0)
        self._warming: dict[str, int] = {}
        self._open: set[str] = set()
        self._number = 0
        self._run = f"{time.time_ns() // 1_000_000:x}"

    async def prepare(self) -> None:
        """Put the libraries of the demo, unless libraries of these names are there already."""
        known = {each.name for each in self._station.registry.in_force()}
        for name in LIBRARIES:
            if name not in known:
                edit = Edit(name, AUTHOR, "the demonstration")
                await self._libraries.put(edit, text_of(name))

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._random.expovariate(EVENTS_PER_SECOND))
            invented = [self._event() for _ in range(self._random.choice((1, 1, 1, 2)))]
            # A server that is busy with real events leaves the made-up ones out.
            with contextlib.suppress(EnsueError):
                await self._station.publish(
                    [(event_of(dict(each)), msgspec.json.encode(each)) for each in invented],
                    200 * len(invented),
                )

    def _event(self) -> dict[str, Any]:
        draw = self._random.random()
        if draw < 0.62:
            return self._reading()
        if draw < 0.78:
            return self._door()
        return self._login()

    def _reading(self) -> dict[str, Any]:
        van = self._random.choice(VANS)
        if van in self._warming:
            self._celsius[van] += self._random.uniform(0.8, 2.0)
            self._warming[van] -= 1
            if not self._warming[van]:
                del self._warming[van]
        else:
            self._celsius[van] += 0.4 * (4.0 - self._celsius[van]) + self._random.gauss(0, 0.3)
            if self._random.random() < 0.03:
                self._warming[van] = self._random.randint(3, 7)
        data = {"van": van, "celsius": round(self._celsius[van], 1)}
        return self._cloud_event("Reading", f"sensors/{van}", data)

    def _door(self) -> dict[str, Any]:
        van = self._random.choice(VANS)
        # A door is opened only if it is closed, so that the one event which a rule shows as the
        # cause is the one from which its time runs.
        kind = "DoorClosed" if van in self._open else "DoorOpened"
        self._open ^= {van}
        return self._cloud_event(kind, f"sensors/{van}", {"van": van})

    def _login(self) -> dict[str, Any]:
        user = self._random.choices(USERS, (5, 3, 2, 2, 1, 1))[0]
        kind = self._random.choices(("Failed", "Done"), (3, 2))[0]
        inside = self._random.random() < 0.6
        address = f"10.0.0.{self._random.randint(2, 40)}" if inside else "203.0.113.9"
        return self._cloud_event(kind, "office/gate", {"user": user, "address": address})

    def _cloud_event(self, kind: str, source: str, data: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        return {
            "specversion": "1.0",
            "id": f"{self._run}-{self._number}",
            "source": source,
            "type": kind,
            "time": format_time(time.time_ns() // 1000),
            "data": data,
        }
