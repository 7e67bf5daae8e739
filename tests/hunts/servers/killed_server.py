"""A server that is killed again and again loses, doubles and disorders nothing.

Events are sent while libraries are changed, a subscriber listens and a webhook is posted to; the
process is killed at any moment (also while it starts or stops), started again, and senders and
subscribers go on as they do. In the end all is compared with the rules run by themselves over the
same events and changes: every acknowledged event is in the history once, every output came once,
the subscriber got each in order and once, the webhook each at least once.
"""

from __future__ import annotations

import json
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import httpx

import ensue
from tests.server.live import ServerProcess, reading

SHORT = (0,)
MOST_ROUNDS = 4
SETTINGS = """
[webhooks]
networks = ["127.0.0.0/8"]
[limits]
answers = 1000000
"""
TYPES = """
eventtype Reading { attribute string sensor; attribute double celsius; };
eventtype Hot { attribute string sensor; };
eventtype Alarm { attribute string sensor; };
"""
STEADY = """
Hot correlation Rise (Reading low where celsius < 30, Reading high where celsius > 60)
    low{2} ; high within 40 s by sensor
{ case true: push new Hot { sensor = high.sensor }; }
Alarm correlation Quiet (Reading r) r ; timeout(5 s) unless r by sensor
{ case true: push new Alarm { sensor = r.sensor }; }
"""
CHANGING = """
Hot correlation Warm (Reading r where celsius > %d) r{3} by sensor
{ case true: push new Hot { sensor = r.sensor }; }
"""
ABOVE = """
Alarm correlation Again (Hot hot) hot{2} by sensor
{ case true: push new Alarm { sensor = hot.sensor }; }
"""
LEVELS = (25, 40, 55)
ON_THE_WAY_DOWN = (429, 503)


def events(random: Random, begin: int, count: int) -> list[dict[str, Any]]:
    """Readings of some sensors, a tenth of a second apart, with a gap now and then."""
    made = []
    for number in range(begin, begin + count):
        sensor = f"s{random.randrange(8)}"
        made.append(reading(number, sensor, random.randrange(90), number / 10 + number // 97 * 7))
    return made


class Sink(ThreadingHTTPServer):
    """Where the webhook leads. It fails now and then."""

    def __init__(self, random: Random) -> None:
        self.ids: list[str] = []
        sink = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                fails = random.random() < 0.1
                if not fails:
                    sink.ids += [identity(each) for each in body]
                self.send_response(500 if fails else 204)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


def identity(event: dict[str, Any]) -> str:
    return f"{event['correlation']}/{event['id']}"


class Listener(threading.Thread):
    """A subscriber to outputs, which goes on from its last id."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self._url = url
        self.given: list[str] = []
        self.ends = False

    def run(self) -> None:
        last = "0"
        while not self.ends:
            with suppress(httpx.HTTPError):
                parameters = {"kinds": "output", "after": last}
                with httpx.stream("GET", f"{self._url}/v1/events", params=parameters) as answer:
                    if answer.status_code != 200:
                        raise httpx.HTTPError("come again")
                    found: dict[str, str] = {}
                    for line in answer.iter_lines():
                        name, _, value = line.partition(": ")
                        found[name] = value
                        if not line and "data" in found:
                            self.given.append(identity(json.loads(found["data"])))
                            last = found["id"]
                        if not line:
                            found = {}
            time.sleep(0.05)


@dataclass
class Trial:
    """One server of one seed."""

    folder: Path
    seed: int
    random: Random
    sent: list[dict[str, Any]] = field(default_factory=list)
    changes: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    """The texts that were put in force before an event, by the number of that event."""
    text: str = ""
    kills: int = 0

    def text_of(self, level: int) -> str:
        """A library of which two rules stay as they are, and one changes with its level.

        Half of the seeds have a rule that reads outputs.
        """
        return TYPES + STEADY + CHANGING % level + (ABOVE if self.seed % 2 else "")

    def begin(self) -> None:
        self.server = ServerProcess(self.folder, SETTINGS)
        self.url = self.server.url
        self.port = int(self.url.rpartition(":")[2])
        self.sink = Sink(Random(self.random.random()))
        self.client = httpx.Client(base_url=self.url, timeout=20)
        self._put(LEVELS[0])
        answer = self.client.put(
            "/v1/webhooks/out", json={"url": f"http://127.0.0.1:{self.sink.server_port}/"}
        )
        assert answer.status_code < 300, answer.text
        self.listener = Listener(self.url)
        self.listener.start()

    def round(self) -> None:
        """Send events and change rules, until the server is killed; then start it again."""
        loaded = threading.Event()
        killer = threading.Thread(target=self._kill, args=(loaded,))
        killer.start()
        batch: list[dict[str, Any]] = []
        with suppress(httpx.HTTPError, Stopped):
            while True:
                if self.random.random() < 0.2:
                    self._put(self.random.choice(LEVELS))
                batch = events(self.random, len(self.sent), self.random.choice((1, 20, 300)))
                self._publish(batch)
                self.sent += batch
                batch = []
                loaded.set()
        killer.join()
        self.kills += 1
        self._start_again()
        # What was under way is sent again; whether a change took hold is seen from the server.
        if batch:
            self._publish(batch)
        self._look_what_is_in_force()
        self.sent += batch

    def _kill(self, loaded: threading.Event) -> None:
        loaded.wait(30)
        time.sleep(self.random.uniform(0.0, 0.7))
        if self.random.random() < 0.3:
            self.server.process.send_signal(signal.SIGTERM)
            time.sleep(self.random.uniform(0.0, 0.4))
        self.server.kill()

    def _start_again(self) -> None:
        while self.random.random() < 0.25:
            # Killed while it starts.
            with suppress(AssertionError):
                starting = threading.Timer(self.random.uniform(0.3, 1.5), self._kill_starting)
                starting.start()
                self.server = self._started()
                starting.join()
            self.server.kill()
            self.kills += 1
        self.server = self._started()

    def _started(self) -> ServerProcess:
        return ServerProcess(self.folder, SETTINGS, self.port, self._remember)

    def _remember(self, server: ServerProcess) -> None:
        self.server = server

    def _kill_starting(self) -> None:
        self.server.process.kill()

    def _publish(self, batch: list[dict[str, Any]]) -> None:
        answer = self.client.post("/v1/events", json=batch)
        if answer.status_code in ON_THE_WAY_DOWN:
            raise Stopped
        assert answer.status_code == 200, answer.text
        found = answer.json()
        assert found["accepted"] + found["duplicates"] == len(batch), found

    def _put(self, level: int) -> None:
        text = self.text_of(level)
        answer = self.client.put(
            "/v1/libraries/rules", content=text, headers={"Content-Type": "text/plain"}
        )
        if answer.status_code in ON_THE_WAY_DOWN:
            raise Stopped
        assert answer.status_code < 300, answer.text
        self._changed(text)

    def _changed(self, text: str) -> None:
        self.text = text
        self.changes[len(self.sent)].append(text)

    def _look_what_is_in_force(self) -> None:
        """A change that was not acknowledged came before the batch that was not."""
        found = self.client.get("/v1/libraries/rules").json()["text"]
        if found != self.text:
            self._changed(found)

    # --- the end --------------------------------------------------------------------------------

    def expected(self) -> list[str]:
        """What the rules put out by themselves, over the same events and changes."""
        run = ensue.parse(self.changes[0][0]).start()
        made: list[str] = []
        for number, event in enumerate(self.sent):
            for text in self.changes.get(number, ()):
                run.change(ensue.parse(text))
            outputs = run.push(event)
            made += [f"{each.extensions['correlation']}/{each.id}" for each in outputs]
        return made

    def check(self) -> None:
        kept = self.client.get("/v1/history", params={"limit": 1_000_000}).json()["events"]
        assert [each["id"] for each in kept] == [each["id"] for each in self.sent]
        listed = self.client.get("/v1/outputs", params={"limit": 1_000_000}).json()["outputs"]
        outputs = [identity(each["event"]) for each in reversed(listed)]
        assert outputs == self.expected()
        rules = self.client.get("/v1/rules").json()
        assert sum(each["outputs"] for each in rules) <= len(outputs)
        self._wait(lambda: len(self.listener.given) >= len(outputs), "the subscriber")
        assert self.listener.given == outputs
        self._wait(lambda: set(self.sink.ids) >= set(outputs), "the webhook")
        assert set(self.sink.ids) == set(outputs)

    def _wait(self, is_there: Any, who: str) -> None:
        limit = time.monotonic() + 90
        while not is_there():
            assert time.monotonic() < limit, f"{who} lacks outputs"
            time.sleep(0.05)

    def end(self) -> None:
        self.listener.ends = True
        self.client.close()
        code = self.server.stop()
        assert code == 0, code
        said = self.server.errors.read_text()
        assert "Traceback" not in said, said
        assert "after a recovery" not in said, said
        self.sink.shutdown()


class Stopped(Exception):  # noqa: N818 - no error
    """The server is on its way down, and takes nothing."""


def hunt(seed: int) -> Mapping[str, int]:
    random = Random(seed)
    with TemporaryDirectory(prefix="ensue-killed-") as folder:
        trial = Trial(Path(folder), seed, random)
        trial.begin()
        try:
            for _ in range(1 + seed % MOST_ROUNDS):
                trial.round()
            trial.check()
            trial.end()
        finally:
            trial.listener.ends = True
            trial.server.kill()
        return {
            "kills": trial.kills,
            "events": len(trial.sent),
            "outputs": len(trial.listener.given),
        }
