"""A server under load, as its users see it: a process of its own, HTTP and WebSockets on loopback.

Events go out in batches, through ten rules, into the journal and the history. What the server does
is measured in its own processor time, since clients share the machine; latencies and the memory of
the process are as the clock and the system tell them. The history is filled behind the journal, so
that the cost of an event is told up to its acknowledgement and up to the history apart.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from ensue.bench.effort import Effort
from ensue.bench.report import Figure, cost, rate
from ensue.events.times import format_time

RULES: Final = 10
BATCH: Final = 1_000
KEYS: Final = 1_000
PACE: Final = 5_000
PACED_BATCH: Final = 50
ORIGIN: Final = 1_767_225_600_000_000
TYPES: Final = """
eventtype Reading { attribute string sensor; attribute double celsius; };
eventtype Hot { attribute string sensor; };
"""


def library() -> str:
    """Ten rules over one type and one key; an output for some two hundred events."""
    rules = [
        f"Hot correlation Rule{number} (Reading low where celsius < 20, "
        f"Reading high where celsius > {99.5 - number / 100}) low ; high within 10 min by sensor "
        "{ case true: push new Hot { sensor = high.sensor }; }"
        for number in range(RULES)
    ]
    return TYPES + "\n".join(rules)


def batch(first: int, count: int) -> bytes:
    events = [
        {
            "specversion": "1.0",
            "id": f"e{number}",
            "source": "bench",
            "type": "Reading",
            "time": format_time(ORIGIN + number * 100),
            "data": {"sensor": f"s{number * 7919 % KEYS}", "celsius": number * 31 % 1000 / 10},
        }
        for number in range(first, first + count)
    ]
    return json.dumps(events, separators=(",", ":")).encode()


class Served:
    """`ensue serve` in a folder, and a client."""

    def __init__(self, folder: Path) -> None:
        import httpx

        config = folder / "ensue.toml"
        config.write_text(
            '[server]\nlisten = "127.0.0.1:0"\ndata = "data"\nclock = "events"\n'
            "[limits]\nsubscribers = 5000\n"
        )
        errors = folder / "stderr.txt"
        with errors.open("w") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "ensue", "serve", str(config)],
                stderr=file, stdout=subprocess.DEVNULL, cwd=folder,
            )  # fmt: skip
        begun = time.monotonic()
        while "ready" not in errors.read_text().split():
            if self.process.poll() is not None or time.monotonic() - begun > 120:
                raise RuntimeError(errors.read_text())
            time.sleep(0.01)
        self.took = time.monotonic() - begun
        url = next(each for each in errors.read_text().split() if each.startswith("http"))
        self.url = url.rstrip("/")
        self.client = httpx.Client(base_url=self.url, timeout=120)
        self.sent = 0

    def put(self) -> None:
        headers = {"Content-Type": "text/plain"}
        self.client.put("/v1/libraries/ten", content=library(), headers=headers).raise_for_status()

    def publish(self, body: bytes) -> None:
        headers = {"Content-Type": "application/cloudevents-batch+json"}
        while True:
            answer = self.client.post("/v1/events", content=body, headers=headers)
            if answer.status_code != 429:
                break
            time.sleep(int(answer.headers["retry-after"]))
        answer.raise_for_status()

    def settle(self) -> None:
        """Wait until the history holds everything."""
        while self.client.get("/v1/figures", params={"seconds": 1}).json()["history_lag"]:
            time.sleep(0.05)

    def processor_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_mebibytes(self) -> float:
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def stop(self, how: int = signal.SIGTERM) -> None:
        self.client.close()
        self.process.send_signal(how)
        self.process.wait(120)


@contextmanager
def served(folder: Path) -> Iterator[Served]:
    server = Served(folder)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.stop()


def measure(effort: Effort) -> Iterator[Figure]:
    with TemporaryDirectory(prefix="ensue-bench-") as folder:
        place = Path(folder)
        with served(place) as server:
            server.put()
            first = _warm(server)
            made = list(_throughput(server, effort, first))
            yield from made
            first += effort.size(100_000, 4_000) * effort.times(5) + BATCH
            yield from asyncio.run(_latency(server, effort, first))
            first += 2_000_000
            yield asyncio.run(_many(server, effort, first))
            server.stop(signal.SIGKILL)
        with served(place) as again:
            yield cost(
                "start after a kill, up to `ready`", "s", [again.took],
                note="saved states, and what the journal holds since",
            )  # fmt: skip


def _warm(server: Served) -> int:
    for number in range(5):
        server.publish(batch(number * BATCH, BATCH))
    server.settle()
    return 5 * BATCH


def _throughput(server: Served, effort: Effort, first: int) -> Iterator[Figure]:
    count = effort.size(100_000, 4_000)
    acknowledged: list[float] = []
    kept: list[float] = []
    memory = [server.resident_mebibytes()]
    for turn in range(effort.times(5)):
        begin = first + turn * count
        bodies = [batch(begin + each, BATCH) for each in range(0, count, BATCH)]
        used, at = server.processor_seconds(), time.perf_counter()
        for body in bodies:
            server.publish(body)
        acknowledged.append(count / (time.perf_counter() - at))
        server.settle()
        kept.append(count / max(0.01, server.processor_seconds() - used))
        memory.append(server.resident_mebibytes())
    yield rate(
        "publish in batches of 1,000, ten rules, history filled", kept, 50_000,
        note="events for a second of the server's processor time, the history included",
    )  # fmt: skip
    yield rate(
        "the same, acknowledged, one sender by the clock", acknowledged,
        note="the sender makes its batches before, and shares the machine",
    )  # fmt: skip
    yield cost("memory, from the first load to the last", "MiB", [memory[-1] - memory[1]])


async def _latency(server: Served, effort: Effort, first: int) -> list[Figure]:
    """From the moment before a batch is sent to the moment its events are at a WebSocket."""
    import httpx
    from websockets.asyncio.client import connect

    seconds = effort.size(20, 2)
    sent: dict[int, float] = {}
    waited: list[float] = []
    count = PACE * seconds

    async def listen(opened: Any) -> None:
        for _ in range(count):
            event = json.loads(await opened.recv())["event"]
            waited.append(time.perf_counter() - sent[(int(event["id"][1:]) - first) // PACED_BATCH])

    url = server.url.replace("http", "ws") + "/v1/events/socket?kinds=event"
    headers = {"Content-Type": "application/cloudevents-batch+json"}
    async with (
        connect(url, compression=None, max_queue=10_000) as opened,
        httpx.AsyncClient(base_url=server.url, timeout=60) as client,
    ):
        listening = asyncio.create_task(listen(opened))
        begun = time.perf_counter()
        bodies = [batch(first + n, PACED_BATCH) for n in range(0, count, PACED_BATCH)]
        sending: set[asyncio.Task[Any]] = set()
        for number, body in enumerate(bodies):
            due = begun + number * PACED_BATCH / PACE
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            sent[number] = time.perf_counter()
            task = asyncio.create_task(client.post("/v1/events", content=body, headers=headers))
            sending.add(task)
            task.add_done_callback(sending.discard)
        await asyncio.wait_for(listening, 60)
    waited.sort()
    return [
        cost("publish to WebSocket at 5,000 events/s, median", "ms", [1e3 * waited[count // 2]]),
        cost(
            "publish to WebSocket at 5,000 events/s, 99 of 100", "ms",
            [1e3 * waited[int(count * 0.99)]], 20.0,
        ),
    ]  # fmt: skip


async def _many(server: Served, effort: Effort, first: int) -> Figure:
    """Very many subscribers, each with a filter of its own; each gets what it asks for."""
    import httpx
    from websockets.asyncio.client import connect

    count = effort.size(1_000, 50)
    url = server.url.replace("http", "ws") + "/v1/events/socket"
    wants = [f"{url}?kinds=event&filter=sensor%20=%20's{number}'" for number in range(count)]
    opened = [await connect(each, compression=None) for each in wants]
    body = batch(first, 20 * KEYS)
    wanted = [0] * count
    for event in json.loads(body):
        number = int(event["data"]["sensor"][1:])
        if number < count:
            wanted[number] += 1
    headers = {"Content-Type": "application/cloudevents-batch+json"}
    begun = time.perf_counter()
    async with httpx.AsyncClient(base_url=server.url, timeout=120) as client:
        (await client.post("/v1/events", content=body, headers=headers)).raise_for_status()
        for each, expected in zip(opened, wanted, strict=True):
            for _ in range(expected):
                await asyncio.wait_for(each.recv(), 60)
    took = time.perf_counter() - begun
    for each in opened:
        await each.close()
    return rate(
        f"delivered to {count:,} WebSocket subscribers with a filter each", [sum(wanted) / took],
        note="events a second, all of them arrived, by the clock",
    )  # fmt: skip
