"""A server under load, as its users see it: a process of its own, HTTP and WebSockets on loopback.

Events go out in batches, through ten rules, into the journal and the history. What the server does
is measured on one core and in its own processor time, since clients share the machine; latencies
and the memory of the process are as the clock and the system tell them, with all cores. The history
is filled behind the journal, so that the cost of an event is told up to its acknowledgement and up
to the history apart.
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
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from ensue.events.times import format_time
from ensue_bench.effort import Effort
from ensue_bench.report import Figure, cost, rate

RULES: Final = 10
BATCH: Final = 1_000
KEYS: Final = 1_000
LEVELS: Final = 1_001
"""Different temperatures. Coprime to the keys, so that each sensor comes to show all of them."""
PACE: Final = 5_000
PACED_BATCH: Final = 50
HOUR_EVENTS: Final = 3_600_000
HOUR_MICROSECONDS: Final = 3_600_000_000
MOST_SECONDS: Final = 330.0
"""How long an hour of events may take; the rest of it is left out then."""
INDEXING: Final = "ensue_history_processor_seconds_total{"
ORIGIN: Final = 1_767_225_600_000_000
TYPES: Final = """
eventtype Reading { attribute string sensor; attribute double celsius; };
eventtype Hot { attribute string sensor; };
"""


def library() -> str:
    """Ten rules over one type and one key; at one event of some two hundred they all fire."""
    rules = [
        f"Hot correlation Rule{number} (Reading low where celsius < 20, "
        f"Reading high where celsius > {99.5 - number / 100}) low ; high within 10 min by sensor "
        "{ case true: push new Hot { sensor = high.sensor }; }"
        for number in range(RULES)
    ]
    return TYPES + "\n".join(rules)


def batch(first: int, count: int, step: int = 100) -> bytes:
    """Events some microseconds apart."""
    events = [
        {
            "specversion": "1.0",
            "id": f"e{number}",
            "source": "bench",
            "type": "Reading",
            "time": format_time(ORIGIN + number * step),
            "data": {"sensor": f"s{number * 7919 % KEYS}", "celsius": number * 31 % LEVELS / 10},
        }
        for number in range(first, first + count)
    ]
    return json.dumps(events, separators=(",", ":")).encode()


class Served:
    """`ensue serve` in a folder, and a client."""

    def __init__(self, folder: Path, limits: str = "") -> None:
        import httpx

        config = folder / "ensue.toml"
        config.write_text(
            '[server]\nlisten = "127.0.0.1:0"\ndata = "data"\nclock = "events"\n'
            f"[limits]\nsubscribers = 5000\n{limits}"
        )
        errors = folder / "stderr.txt"
        with errors.open("w") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "ensue", "serve", str(config)],
                stderr=file, stdout=subprocess.DEVNULL, cwd=folder,
            )  # fmt: skip
        started = time.monotonic()
        while "ready" not in errors.read_text().split():
            if self.process.poll() is not None or time.monotonic() - started > 120:
                raise RuntimeError(errors.read_text())
            time.sleep(0.01)
        self.took = time.monotonic() - started
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
        """Wait until the history holds everything: a question to it does."""
        self.client.get("/v1/history", params={"limit": 1}).raise_for_status()

    def processor_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def indexing_seconds(self) -> float:
        """Processor time of the thread that fills the history."""
        text = self.client.get("/metrics").text
        line = next(each for each in text.splitlines() if each.startswith(INDEXING))
        return float(line.split()[-1])

    def resident_mebibytes(self) -> float:
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def stop(self, how: int = signal.SIGTERM) -> None:
        self.client.close()
        self.process.send_signal(how)
        self.process.wait(120)


@contextmanager
def on_one_core(server: Served) -> Iterator[None]:
    """Give a server the last core, where the system lets that be said: clients take the others."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = os.sched_getaffinity(0)
    _move(server.process.pid, {max(cores)})
    yield
    _move(server.process.pid, cores)


def _move(pid: int, cores: set[int]) -> None:
    for thread in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(thread.name), cores)


@contextmanager
def served(folder: Path, limits: str = "") -> Iterator[Served]:
    server = Served(folder, limits)
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
            first = warm(server)
            with on_one_core(server):
                yield from throughput(server, effort, first)
            first += effort.size(100_000, 4_000) * effort.times(5)
            yield from latency(server, effort, first)
            first += PACE * effort.size(10, 2) * effort.times(3)
            yield asyncio.run(subscribers(server, effort, first))
            server.stop(signal.SIGKILL)
        with served(place) as again:
            yield cost(
                "start after a kill, up to `ready`", "s", [again.took],
                note="saved states, and what the journal holds since",
            )  # fmt: skip
    yield from hour(effort.size(HOUR_EVENTS, 20_000))


def warm(server: Served) -> int:
    for number in range(5):
        server.publish(batch(number * BATCH, BATCH))
    server.settle()
    return 5 * BATCH


def throughput(server: Served, effort: Effort, first: int) -> Iterator[Figure]:
    count = effort.size(100_000, 4_000)
    by_clock: list[float] = []
    acknowledged: list[float] = []
    kept: list[float] = []
    for turn in range(effort.times(5)):
        begin = first + turn * count
        bodies = [batch(begin + each, BATCH) for each in range(0, count, BATCH)]
        indexing, used = server.indexing_seconds(), server.processor_seconds()
        at = time.perf_counter()
        for body in bodies:
            server.publish(body)
        by_clock.append(count / (time.perf_counter() - at))
        server.settle()
        whole = max(0.01, server.processor_seconds() - used)
        acknowledged.append(count / max(0.01, whole - server.indexing_seconds() + indexing))
        kept.append(count / whole)
    yield rate(
        "publish in batches of 1,000, ten rules, acknowledged", acknowledged, 50_000,
        note="events for a second of the server's processor time, but that of the history's thread",
    )  # fmt: skip
    yield rate(
        "the same, history filled", kept, 50_000,
        note="events for a second of all of the server's processor time",
    )  # fmt: skip
    yield rate(
        "the same, acknowledged, one sender by the clock", by_clock,
        note="the sender makes its batches before, and shares the machine",
    )  # fmt: skip


def hour(events: int) -> Iterator[Figure]:
    """An hour of events, sent as fast as the server takes them: what grows on the way.

    Memory is measured from a third on: until then caches fill, and what is remembered of events
    that may be sent again. A slow machine is not kept for longer than `MOST_SECONDS`.
    """
    resident: list[float] = []
    used: list[float] = []
    sixth, sent = events // BATCH // 6, 0
    with (
        TemporaryDirectory(prefix="ensue-bench-") as folder,
        served(Path(folder), "journal_events = 200000\n") as server,
    ):
        server.put()
        started = time.monotonic()
        for number in range(events // BATCH):
            if number % sixth == 0:
                server.settle()
                used.append(server.processor_seconds())
                if number >= 3 * sixth and time.monotonic() - started > MOST_SECONDS:
                    break
            server.publish(batch(number * BATCH, BATCH, HOUR_MICROSECONDS // events))
            sent += BATCH
            if number >= 2 * sixth:
                resident.append(server.resident_mebibytes())
        else:
            server.settle()
            used.append(server.processor_seconds())
    part = max(1, len(resident) // 4)
    early, late = max(resident[:part]), max(resident[-part:])
    yield cost(
        f"memory over an hour of {events:,} events, growth", "MiB", [max(0.0, late - early)], 32.0,
        note=f"the most of the last quarter against the first, {late:.0f} MiB in the end;"
        f" {sent:,} events were sent",
    )  # fmt: skip
    costs = [1e6 * (later - sooner) / (sixth * BATCH) for sooner, later in pairwise(used)]
    yield cost(
        "the same, processor time for an event", "us", costs,
        note="of the server, the history filled; each sixth of the hour by itself, in their order",
    )  # fmt: skip
    yield cost(
        "the same, its last third to its second sixth", "x",
        [sum(costs[4:6]) / 2 / costs[1] if len(costs) > 5 else costs[-1] / costs[0]], 1.15,
        note="whether an event costs more when more is stored",
    )  # fmt: skip


class Sender:
    """Posts batches over one connection, with as little work as possible: it shares the machine."""

    def __init__(self, url: str) -> None:
        self._host, _, port = url.removeprefix("http://").partition(":")
        self._port = int(port)
        self._turn = asyncio.Lock()

    async def open(self) -> None:
        self._reader, self._writer = await asyncio.open_connection(self._host, self._port)

    async def post(self, body: bytes) -> None:
        head = (
            f"POST /v1/events HTTP/1.1\r\nHost: {self._host}\r\nContent-Length: {len(body)}\r\n"
            "Content-Type: application/cloudevents-batch+json\r\n\r\n"
        )
        async with self._turn:
            self._writer.write(head.encode() + body)
            answer = await self._reader.readuntil(b"\r\n\r\n")
            if not answer.startswith(b"HTTP/1.1 200 "):
                raise RuntimeError(answer.decode())
            length = answer.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
            await self._reader.readexactly(int(length))

    def close(self) -> None:
        self._writer.close()


def latency(server: Served, effort: Effort, first: int) -> Iterator[Figure]:
    """From the moment before a batch is sent to the moment its events are at a WebSocket."""
    count = PACE * effort.size(10, 2)
    middle: list[float] = []
    slow: list[float] = []
    used: list[float] = []
    for turn in range(effort.times(3)):
        before = server.processor_seconds()
        waited = asyncio.run(paced(server, first + turn * count, count))
        used.append(1e6 * (server.processor_seconds() - before) / count)
        middle.append(1e3 * waited[count // 2])
        slow.append(1e3 * waited[int(count * 0.99)])
    yield cost("publish to WebSocket at 5,000 events/s, median", "ms", middle)
    yield cost("publish to WebSocket at 5,000 events/s, 99 of 100", "ms", slow, 20.0)
    yield cost(
        "the same, the server's processor time for an event", "us", used,
        note="in batches of 50, each event delivered, the history filled",
    )  # fmt: skip


async def paced(server: Served, first: int, count: int) -> list[float]:
    """How long each event took, in seconds, the shortest time first."""
    from websockets.asyncio.client import connect

    sent: dict[int, float] = {}
    waited: list[float] = []

    async def listen(opened: Any) -> None:
        for _ in range(count):
            text = await opened.recv()
            # The id of the event stands behind that of the delivery.
            place = text.index('"id":"e', 8) + 7
            number = int(text[place : text.index('"', place)])
            waited.append(time.perf_counter() - sent[(number - first) // PACED_BATCH])

    url = server.url.replace("http", "ws") + "/v1/events/socket?kinds=event"
    senders = [Sender(server.url) for _ in range(4)]
    for each in senders:
        await each.open()
    bodies = [batch(first + n, PACED_BATCH) for n in range(0, count, PACED_BATCH)]
    async with connect(url, compression=None, max_queue=10_000) as opened:
        listening = asyncio.create_task(listen(opened))
        started = time.perf_counter()
        sending: set[asyncio.Task[Any]] = set()
        for number, body in enumerate(bodies):
            due = started + number * PACED_BATCH / PACE
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            sent[number] = time.perf_counter()
            task = asyncio.create_task(senders[number % len(senders)].post(body))
            sending.add(task)
            task.add_done_callback(sending.discard)
        await asyncio.wait_for(listening, 60)
    for each in senders:
        each.close()
    return sorted(waited)


async def subscribers(server: Served, effort: Effort, first: int) -> Figure:
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
    started = time.perf_counter()
    async with httpx.AsyncClient(base_url=server.url, timeout=120) as client:
        (await client.post("/v1/events", content=body, headers=headers)).raise_for_status()
        for each, expected in zip(opened, wanted, strict=True):
            for _ in range(expected):
                await asyncio.wait_for(each.recv(), 60)
    took = time.perf_counter() - started
    for each in opened:
        await each.close()
    return rate(
        f"delivered to {count:,} WebSocket subscribers with a filter each", [sum(wanted) / took],
        note="events a second, all of them arrived, by the clock",
    )  # fmt: skip
