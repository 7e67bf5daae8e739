"""A real server for tests: uvicorn on a free port of loopback, in a thread of this process.

`serving` starts one and stops it in order; `ServerProcess` is `ensue serve` as a process of its
own, for tests that kill it.
"""

from __future__ import annotations

import asyncio
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec

from ensue.server.serving import ServingProcess
from ensue.server.settings import Settings
from ensue.server.settings.tables import (
    HistoryTable,
    LimitsTable,
    OntologyTable,
    ServerChannelTable,
    ServerLinkTable,
    ServerTable,
    TokenTable,
    WebhooksTable,
)
from tests.servers.forking import forked

RULES = """
eventtype Reading { attribute string sensor; attribute double celsius; };
eventtype Hot { attribute string sensor; };

Hot correlation Rise (Reading low where celsius < 30, Reading high where celsius > 60)
    low ; high
    by sensor
{
    case true: push new Hot { sensor = high.sensor };
}
"""


def settings(data: Path | None = None, **given: Any) -> Settings:
    """Settings on a free port; `given` are keys of `[server]`, `[limits]` and other tables."""
    webhooks = WebhooksTable(**given.pop("webhooks", {}))
    limits = {key: given.pop(key) for key in list(given) if key in LimitsTable.__struct_fields__}
    return Settings(
        limits=LimitsTable(**limits),
        tokens=[TokenTable(**each) for each in given.pop("tokens", ())],
        history=HistoryTable(**given.pop("history", {})),
        ontology=OntologyTable(**given.pop("ontology", {})),
        webhooks=webhooks,
        channels=[ServerChannelTable(**each) for each in given.pop("channels", ())],
        links=[ServerLinkTable(**each) for each in given.pop("links", ())],
        server=ServerTable(
            listen=given.pop("listen", "127.0.0.1:0"),
            data=None if data is None else str(data),
            clock=given.pop("clock", "events"),
            **given,
        ),
    )


class Live:
    """A server that runs, and a client for it."""

    def __init__(self, process: ServingProcess, loop: asyncio.AbstractEventLoop) -> None:
        self.process = process
        self.loop = loop
        assert process.address is not None
        self.url = f"http://127.0.0.1:{process.address[1]}"
        self.client = httpx.Client(base_url=self.url, timeout=30)

    @property
    def station(self) -> Any:
        return self.process._channels.main.station

    def put(self, text: str = RULES, name: str = "heat") -> Any:
        answer = self.client.put(
            f"/v1/libraries/{name}", content=text, headers={"Content-Type": "text/plain"}
        )
        assert answer.status_code in (200, 201), answer.text
        return answer.json()

    def publish(self, events: Sequence[Mapping[str, Any]]) -> Any:
        answer = self.client.post(
            "/v1/events",
            content=msgspec.json.encode(events),
            headers={"Content-Type": "application/cloudevents-batch+json"},
        )
        assert answer.status_code == 200, answer.text
        return answer.json()

    def outputs(self, **parameters: Any) -> list[dict[str, Any]]:
        answer = self.client.get("/v1/outputs", params={"limit": 10_000, **parameters})
        assert answer.status_code == 200, answer.text
        found: list[dict[str, Any]] = answer.json()["outputs"]
        return found


@contextmanager
def serving(given: Settings) -> Iterator[Live]:
    said: list[str] = []
    loop = asyncio.new_event_loop()
    begun: list[ServingProcess] = []
    failure: list[BaseException] = []
    is_begun = threading.Event()

    async def main() -> None:
        process = ServingProcess(given, None, said.append)
        begun.append(process)
        task = asyncio.create_task(process.run(with_signals=False))
        ready = asyncio.create_task(process.ready())
        await asyncio.wait({task, ready}, return_when=asyncio.FIRST_COMPLETED)
        is_begun.set()
        try:
            await task
        except BaseException as error:
            failure.append(error)

    def run() -> None:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(main())

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert is_begun.wait(30)
    if failure:
        raise failure[0]
    live = Live(begun[0], loop)
    try:
        yield live
    finally:
        live.client.close()
        loop.call_soon_threadsafe(begun[0].stop)
        thread.join(60)
        loop.close()
    if failure:
        raise failure[0]


def reading(
    number: int, sensor: str, celsius: float, second: float | None = None
) -> dict[str, Any]:
    at = number if second is None else second
    whole, part = divmod(round(at * 1000), 1000)
    minutes, seconds = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return {
        "specversion": "1.0",
        "id": f"e{number}",
        "source": "test",
        "type": "Reading",
        "time": f"2026-01-01T{hours:02}:{minutes:02}:{seconds:02}.{part:03}Z",
        "data": {"sensor": sensor, "celsius": celsius},
    }


READY = re.compile(r'^ready$|"message":"ready"', re.MULTILINE)
ADDRESS = re.compile(r"console and API at (\S+?)/(?=[\s\"])")


class ServerProcess:
    """`ensue serve FILE` as a process; its folder survives it."""

    def __init__(
        self,
        folder: Path,
        text: str = "",
        port: int | None = None,
        on_begun: Callable[[ServerProcess], None] = lambda _: None,
    ) -> None:
        self.folder = folder
        self.config = folder / "ensue.toml"
        self.config.write_text(
            f'[server]\nlisten = "127.0.0.1:{port or 0}"\ndata = "data"\nclock = "events"\n{text}'
        )
        self.errors = folder / "stderr.txt"
        with self.errors.open("w") as errors:
            self.process = forked(["serve", str(self.config)], folder, stderr=errors.fileno())
        on_begun(self)
        self.url = self._wait()

    def _wait(self) -> str:
        limit = time.monotonic() + 60
        while time.monotonic() < limit:
            text = self.errors.read_text()
            if READY.search(text) and (found := ADDRESS.search(text)):
                return found[1]
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        told = self.errors.read_text()
        raise AssertionError(f"the server does not start (exit {self.process.poll()}): {told}")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)
