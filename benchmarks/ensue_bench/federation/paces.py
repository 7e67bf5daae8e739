"""The pace of a gateway between two brokers, beside that of the slower client library alone.

Both are measured in turns, so that only their ratio says something. `ensue serve` runs the gateway,
a process of its own. A pair that does not get through is tried once more, and then told as such.
How many events are sent is found by a first run that does not count: as many as the slower library
moves in a fraction of a second, so that slow brokers do not make the whole take long.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event as Flag
from threading import Thread

from ensue.errors import UsageError
from ensue.events.cloudevents import encode
from ensue.events.event import Event
from ensue_bench.effort import Effort
from ensue_bench.federation.clients import Client, Traffic
from ensue_bench.report import Figure, cost, rate

AIM = 0.5
_SECONDS_TO_START = 60.0
_SECONDS_OF_A_RUN = 0.7
"""How long the slower client library is to be at work in one run."""
_SENT_SINGLY = 20
_SECONDS_BETWEEN = 0.02
"""Between events that are sent one by one, of which each has crossed before the next is sent."""
_numbers = count(1)


def paces(addresses: dict[str, str], effort: Effort) -> Iterator[Figure]:
    """Three figures for each pair of brokers, in both directions."""
    size = effort.size(5_000, 50)
    for source in addresses:
        for target in addresses:
            if source != target:
                yield from _tried(source, target, addresses, size, effort.times(5))


def _tried(
    source: str, target: str, addresses: dict[str, str], size: int, repeats: int
) -> list[Figure]:
    try:
        return asyncio.run(_pace(source, target, addresses, size, repeats))
    except UsageError:
        try:
            return asyncio.run(_pace(source, target, addresses, size, repeats))
        except UsageError as error:
            name, told = f"{source} to {target}: of the slower client alone", str(error)
            return [Figure(name, "x", (0.0,), "higher", AIM, told.splitlines()[0])]


async def _pace(
    source: str, target: str, addresses: dict[str, str], size: int, repeats: int
) -> list[Figure]:
    mark = next(_numbers)
    ends = {
        kind: Client(kind, addresses[kind], f"bench.{mark}.{kind}") for kind in (source, target)
    }
    alone: dict[str, list[float]] = {source: [], target: []}
    bridged: list[float] = []
    plain = {kind: Client(kind, end.url, f"{end.address}.alone") for kind, end in ends.items()}
    with _gateway(f"bench{mark}", ends[source], ends[target]):
        few = max(50, size // 10)
        slowest = max([(await client.alone(_traffic(few))).seconds for client in plain.values()])
        await ends[target].through(_traffic(few), ends[source])
        size = min(size, max(few, round(few * _SECONDS_OF_A_RUN / slowest)))
        single, direct = [], []
        for _ in range(repeats):
            for kind, client in plain.items():
                alone[kind].append(size / (await client.alone(_traffic(size))).seconds)
            crossed = await ends[target].through(_traffic(size), ends[source])
            bridged.append(size / crossed.seconds)
            single.append(_delay(await ends[target].through(_one_by_one(), ends[source])))
            direct.append(_delay(await plain[target].alone(_one_by_one())))
    slower = [min(pair) for pair in zip(*alone.values(), strict=True)]
    part = [one / other for one, other in zip(bridged, slower, strict=True)]
    added = [one - other for one, other in zip(single, direct, strict=True)]
    name = f"{source} to {target}"
    return [
        rate(f"{name}: through a gateway", bridged),
        Figure(f"{name}: of the slower client alone", "x", tuple(part), "higher", AIM),
        cost(f"{name}: a hop adds", "ms", added, note="to an event that is published at its end"),
    ]


def _delay(traffic: Traffic) -> float:
    """The milliseconds that half of the messages were under way at most."""
    return 1e3 * statistics.median(traffic.delays)


def _one_by_one() -> Traffic:
    return Traffic(_bodies(_SENT_SINGLY), at_once=1, pause=_SECONDS_BETWEEN)


def _traffic(size: int) -> Traffic:
    return Traffic(_bodies(size))


@contextmanager
def _gateway(name: str, source: Client, target: Client) -> Iterator[None]:
    """`ensue serve` between two services, until it is ready and while it is needed."""
    lines = [f'[gateway]\nname = "{name}"\nsettling = 0.1\n']
    for end in (source, target):
        lines.append(f'[[service]]\nname = "{end.kind}"\nkind = "{end.kind}"\nurl = "{end.url}"')
        lines.append(f'address = "{end.address}"')
        lines.append('exchange = "fanout"\n' if end.kind == "amqp" else "")
    lines.append(f'[[subscribe]]\nat = "{target.kind}"\nfrom = ["{source.kind}"]')
    lines.append('where = "speed >= 0"\n')
    with TemporaryDirectory() as folder:
        path = Path(folder) / "gateway.toml"
        path.write_text("\n".join(lines), "utf-8")
        command = [sys.executable, "-m", "ensue", "serve", str(path)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            try:
                _wait_until_ready(process)
                yield
            finally:
                process.terminate()


def _wait_until_ready(process: subprocess.Popen[str]) -> None:
    assert process.stderr is not None
    said: list[str] = []
    ready = Flag()

    def read() -> None:
        # It is read to its end, so that what a gateway says later does not fill the pipe.
        for line in process.stderr or ():
            if line.strip() == "ready":
                ready.set()
            said.append(line)

    Thread(target=read, daemon=True).start()
    if not ready.wait(_SECONDS_TO_START):
        raise UsageError("the gateway has not started:\n" + "".join(said[-5:]))


def _bodies(size: int) -> list[bytes]:
    drawn = (
        Event.of("Speed", time=number, source="bench", data={"speed": 60, "licence": "191-D-1"})
        for number in range(size)
    )
    return [encode(each) for each in drawn]
