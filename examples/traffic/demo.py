"""Traffic monitoring over three brokers: a car on MQTT, the air on NATS, the office on Redis.

The car drives from the north of the city to the south and tells its speed once a moment. Monitors
beside the road hear it while it is near, and the office gets what is above the limit of the area.
Half-way the office lowers the limit in the south, by a request over its own service. Everything is
real but the car: three brokers and three gateways, each a process, on ports of this machine alone.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
GATEWAYS = ("vehicle", "monitor-north", "monitor-south")
SPEEDS = (45, 60, 70, 85, 55, 90, 65, 75, 40, 95)
PATIENCE = 60.0
NO_MONITOR = 1000
NORTH, SOUTH = 53.3600, 53.3300
OLD_LIMIT, NEW_LIMIT = "area = 'south' AND speed > 80", "area = 'south' AND speed > 60"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def program(name: str) -> str:
    found = shutil.which(name, path=os.environ.get("PATH", "") + os.pathsep + "/usr/sbin")
    if found is None:
        sys.exit(
            f"`{name}` is not installed: tests/servers/install.sh brings it on Debian, as root"
        )
    return found


@contextmanager
def running(command: list[str], log: Path) -> Iterator[None]:
    with log.open("wb") as said:
        process = subprocess.Popen(command, stdout=said, stderr=said)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()


def wait_for(condition: Any, what: str) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > until:
            sys.exit(f"waited in vain for {what}")
        time.sleep(0.05)


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def start_brokers(stack: ExitStack, folder: Path) -> dict[str, int]:
    ports = {name: free_port() for name in ("mqtt", "nats", "redis")}
    settings = folder / "mosquitto.conf"
    settings.write_text(f"listener {ports['mqtt']} 127.0.0.1\nallow_anonymous true\n")
    commands = {
        "mqtt": [program("mosquitto"), "-c", str(settings)],
        "nats": [program("nats-server"), "-a", "127.0.0.1", "-p", str(ports["nats"])],
        "redis": [program("redis-server"), "--port", str(ports["redis"]), "--bind", "127.0.0.1"],
    }
    commands["redis"] += ["--save", "", "--dir", str(folder)]
    for name, command in commands.items():
        stack.enter_context(running(command, folder / f"{name}.log"))
    for name, port in ports.items():
        wait_for(lambda port=port: answers(port), f"the {name} broker")
    return ports


def start_gateways(stack: ExitStack, folder: Path) -> None:
    for name in GATEWAYS:
        command = [sys.executable, "-m", "ensue", "serve", str(HERE / f"{name}.toml")]
        stack.enter_context(running(command, folder / f"{name}.log"))
    for name in GATEWAYS:
        log = folder / f"{name}.log"
        wait_for(lambda log=log: "ready" in log.read_text(), f"the gateway `{name}`")


def request(verb: str, where: str) -> None:
    """The office changes a limit: a request over its own service."""
    office = ("--via", "office", "--url", os.environ["TRAFFIC_REDIS"], "--at", "office")
    command = [sys.executable, "-m", "ensue", "request", verb, *office]
    subprocess.run([*command, "--where", where], check=True)


class Car:
    """Simulated: a place between north (0) and south (1), and speeds that vary."""

    def __init__(self, folder: Path, port: int) -> None:
        from paho.mqtt.client import Client
        from paho.mqtt.enums import CallbackAPIVersion

        self._folder = folder
        self._told = 0
        self._network = Client(CallbackAPIVersion.VERSION2)
        self._network.connect("127.0.0.1", port)
        self._network.loop_start()

    def stop(self) -> None:
        self._network.disconnect()
        self._network.loop_stop()

    def be_at(self, part: float) -> None:
        latitude = NORTH + (SOUTH - NORTH) * part
        (self._folder / "position").write_text(f"{latitude:.5f},-6.26000")
        # The gateway in the car looks for its position several times a second.
        time.sleep(0.4)

    def tell_speeds(self) -> None:
        for speed in SPEEDS:
            self._told += 1
            event = {
                "specversion": "1.0",
                "id": str(self._told),
                "source": "car/191-D-1234",
                "type": "Speed",
                "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                "data": {"speed": speed, "licence": "191-D-1234"},
            }
            self._network.publish("car/speed", json.dumps(event), 1).wait_for_publish(10)


def main() -> int:
    import redis

    with tempfile.TemporaryDirectory(prefix="traffic-") as name, ExitStack() as stack:
        folder = Path(name)
        ports = start_brokers(stack, folder)
        os.environ |= {
            "TRAFFIC_FOLDER": str(folder),
            "TRAFFIC_MQTT": f"mqtt://127.0.0.1:{ports['mqtt']}",
            "TRAFFIC_NATS": f"nats://127.0.0.1:{ports['nats']}",
            "TRAFFIC_REDIS": f"redis://127.0.0.1:{ports['redis']}",
        }
        car = Car(folder, ports["mqtt"])
        car.be_at(0.0)
        print("three brokers run; three gateways start", flush=True)
        start_gateways(stack, folder)
        office: Any = redis.Redis(port=ports["redis"])
        seen = 0

        def report(what: str, limit: int) -> list[int]:
            nonlocal seen
            expected = sum(speed > limit for speed in SPEEDS)
            until = time.monotonic() + 20
            while office.xlen("traffic:office") < seen + expected and time.monotonic() < until:
                time.sleep(0.1)
            # What must not come needs time not to come.
            time.sleep(1.0)
            entries = office.xrange("traffic:office")[seen:]
            seen += len(entries)
            data = [json.loads(fields[b"event"])["data"] for _, fields in entries]
            speeds = [int(each["speed"]) for each in data]
            areas = ", ".join(sorted({each["area"] for each in data})) or "nowhere"
            print(f"{what}: the office learns of {len(speeds)} ({areas}): {speeds}", flush=True)
            return speeds

        found = []
        car.tell_speeds()
        found.append(report("in the north, limit 50", 50))
        car.be_at(0.5)
        car.tell_speeds()
        found.append(report("between the monitors", NO_MONITOR))
        car.be_at(1.0)
        car.tell_speeds()
        found.append(report("in the south, limit 80", 80))
        request("subscribe", NEW_LIMIT)
        request("unsubscribe", OLD_LIMIT)
        car.tell_speeds()
        found.append(report("in the south, limit 60", 60))
        car.stop()
    limits = (50, NO_MONITOR, 80, 60)
    wanted = [[each for each in SPEEDS if each > limit] for limit in limits]
    print("as it has to be" if found == wanted else f"expected was {wanted}", flush=True)
    return 0 if found == wanted else 1


if __name__ == "__main__":
    sys.exit(main())
