"""Three sites of a plant over a real broker: only what a match needs crosses it.

Each site is a gateway with a channel of its own and a link to the bus, a Redis server on a port of
this machine. A rush of badges and readings comes to the channels; rules run where `sites.toml` puts
them. At the end the alarms are compared with those of one machine that has read everything.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import ensue
from ensue.channel import build
from ensue.federation import Gateway, provide
from ensue.federation.configuration import read_file

HERE = Path(__file__).parent
SITES = {"doors": "badges", "machines": "readings", "office": "desk"}
PATIENCE = 30.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start_bus(folder: str) -> tuple[subprocess.Popen[bytes], int]:
    found = shutil.which("redis-server")
    if found is None:
        sys.exit("`redis-server` is not installed: tests/servers/install.sh brings it on Debian")
    port = free_port()
    command = [found, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return process, port


def rush() -> list[tuple[str, str, dict[str, Any]]]:
    """A channel, a type and data, in the order in which they happen."""
    draw = random.Random(7)
    found: list[tuple[str, str, dict[str, Any]]] = []
    for number in range(400):
        machine = f"m{number % 4}"
        hot = machine == "m3" and 200 < number < 230
        celsius = round(draw.uniform(96, 99) if hot else draw.uniform(60, 94), 1)
        found.append(("readings", "Reading", {"machine": machine, "celsius": celsius}))
        if number % 3 == 0:
            badge = {"user": draw.choice(["ann", "ben", "joe"]), "door": f"d{number % 2}"}
            found.append(("badges", "Refused" if number % 15 == 0 else "Entered", badge))
        if number == 120:
            found += [("badges", "Refused", {"user": "eve", "door": "d1"})] * 3
            found.append(("badges", "Entered", {"user": "eve", "door": "d1"}))
        if number in (130, 300):
            override = {"user": "eve", "machine": "m3" if number == 300 else "m1"}
            found.append(("desk", "Override", override))
    return found


async def run(port: int) -> int:
    os.environ["PLANT_BUS"] = f"redis://127.0.0.1:{port}"
    channels = {}
    for name in (*SITES.values(), "alarms"):
        channels[name] = build("full", name).done()
        provide(name, channels[name])
    alarms: list[ensue.Event] = []
    channels["alarms"].consumers.connect("people", alarms.append)
    gateways = []
    for site in SITES:
        path = HERE / f"{site}.toml"
        gateways.append(Gateway.from_config(read_file(path), str(path)))
    await asyncio.gather(*(each.start() for each in gateways))
    await asyncio.sleep(1.0)
    print("one broker and three sites run", flush=True)

    events = []
    for number, (channel, kind, data) in enumerate(rush(), 1):
        now = time.time_ns() // 1000
        event = ensue.Event.of(kind, time=now, id=str(number), source="plant", data=data)
        events.append(event)
        channels[channel].push(event)
        await asyncio.sleep(0.002)

    expected = sorted(each.id for each in ensue.load(HERE / "rules.cor").start().push_all(events))
    until = time.monotonic() + PATIENCE
    while len(alarms) < len(expected) and time.monotonic() < until:
        await asyncio.sleep(0.1)
    # What must not come needs time not to come.
    await asyncio.sleep(0.5)
    for gateway in gateways:
        await gateway.stop()

    found = sorted(each.id for each in alarms)
    for alarm in sorted(alarms, key=lambda each: each.time):
        print(f"{alarm.type:11} {dict(alarm.data)}", flush=True)
    crossed = 0
    for gateway in gateways:
        status = gateway.site_status()
        assert status is not None
        crossed += sum(each["events"] + each["resets"] for each in status["sent"].values())
    print(f"{len(events)} events arose, {crossed} messages crossed the bus", flush=True)
    print("as one machine has it" if found == expected else f"expected was {expected}", flush=True)
    return 0 if found == expected else 1


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="plant-") as folder:
        bus, port = start_bus(folder)
        try:
            return asyncio.run(run(port))
        finally:
            bus.terminate()
            bus.wait(10)


if __name__ == "__main__":
    sys.exit(main())
