"""An afternoon of card payments, as records of Kafka.

In come a number of events and a seed; out go waves of records, each an event of CloudEvents, about
a kilobyte large as such events are. Payments are in binary mode, all others in structured mode.
Among the ordinary ones are planted: frauds, a terminal that falls silent, events that come out of
order, some so late that nobody waits for them any more, and records that are no events at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from ensue import Event
from ensue.spark.kafka.records import Record, write_record

START = 1_714_996_800_000_000  # 2024-05-06T12:00:00Z, in microseconds
SECOND = 1_000_000
AFTERNOON = 4 * 3600 * SECOND
WAVES = 4
OUT_OF_ORDER = 20 * SECOND

MERCHANTS = [
    ("Corner Bakery", 5462, "Lyon", "FR"),
    ("Northern Rail", 4112, "Leeds", "GB"),
    ("Bücher am Dom", 5942, "Köln", "DE"),
    ("Feira do Mar", 5422, "Porto", "PT"),
    ("Grand Café", 5812, "Utrecht", "NL"),
    ("Electra Home", 5732, "Athens", "GR"),
]
SCORES = [
    f"{of}_{over}" for of in ("velocity", "amount", "distance") for over in ("1h", "1d", "30d")
]


@dataclass
class Planted:
    """What a good rule must find, and where the rest must end."""

    tested: set[str] = field(default_factory=set)
    taken_over: set[str] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)
    late: set[str] = field(default_factory=set)
    broken: int = 0


class Afternoon:
    """`waves()` gives the records in the order of sending; `planted` says what is among them."""

    def __init__(self, events: int = 20_000, seed: int = 1) -> None:
        self._random = Random(seed)
        self._count = events
        self._number = 0
        self._cards = [f"4000-{n:06}" for n in range(max(50, events // 10))]
        self._terminals = [f"T{n:03}" for n in range(20)]
        self.planted = Planted()

    def waves(self) -> Iterator[list[Record]]:
        timed = [*self._ordinary(), *self._frauds(), *self._heartbeats()]
        # An event is sent a little after it happened, some later than others.
        timed.sort(key=lambda each: each[0] + self._random.randrange(OUT_OF_ORDER))
        length = AFTERNOON // WAVES
        for wave in range(WAVES):
            due = [each for at, each in timed if (at - START) // length == wave]
            sent = [write_record(each, self._mode(each)) for each in due]
            if wave == WAVES - 1:
                sent += self._late_and_broken()
            yield sent

    def _mode(self, event: Event) -> str:
        return "binary" if event.type == "Payment" else "structured"

    def _ordinary(self) -> Iterator[tuple[int, Event]]:
        for _ in range(self._count):
            at = START + self._random.randrange(AFTERNOON)
            amount = round(self._random.lognormvariate(3.2, 1.0) + 5, 2)
            yield at, self._payment(at, self._random.choice(self._cards), amount, self._approved())

    def _frauds(self) -> Iterator[tuple[int, Event]]:
        for number in range(max(2, self._count // 4000)):
            card, at = f"4111-{number:06}", self._moment()
            self.planted.tested.add(card)
            for probe in range(3):
                when = at + probe * 70 * SECOND
                yield when, self._payment(when, card, 1.0 + probe, approved=False)
            when = at + 300 * SECOND
            yield when, self._payment(when, card, 849.0, approved=True)

            card, at = f"4222-{number:06}", self._moment()
            self.planted.taken_over.add(card)
            steps = [("PasswordReset", 0), ("DeviceAdded", 90)]
            for type_, after in self._random.sample(steps, 2):
                when = at + after * SECOND
                yield when, self._event(type_, when, card, {"card": card, **self._device()})
            when = at + 600 * SECOND
            yield when, self._payment(when, card, 1290.0, approved=True)

    def _heartbeats(self) -> Iterator[tuple[int, Event]]:
        lost = self._terminals[7]
        self.planted.lost.add(lost)
        for terminal in self._terminals:
            end = AFTERNOON // 2 if terminal == lost else AFTERNOON
            for at in range(START, START + end, 240 * SECOND):
                data = {"terminal": terminal, "firmware": "7.4.1", "paper": 0.8, "queue": []}
                yield at, self._event("TerminalAlive", at, terminal, data)

    def _late_and_broken(self) -> Iterator[Record]:
        for number in range(3):
            at = START + 1800 * SECOND
            late = self._payment(at, self._cards[number], 450.0, approved=True)
            self.planted.late.add(late.id)
            yield write_record(late, "binary")
        good = self._payment(START + AFTERNOON, self._cards[0], 12.5, approved=True)
        record = write_record(good, "structured")
        self.planted.broken = 2
        yield record._replace(value=(record.value or b"")[:200])
        words = Event.of("Payment", time=good.time, data={**good.data, "amount": "twelve"})
        yield write_record(words, "binary")

    def _payment(self, at: int, card: str, amount: float, approved: bool) -> Event:
        random = self._random
        name, category, city, country = random.choice(MERCHANTS)
        data = {
            "card": card,
            "amount": amount,
            "approved": approved,
            "currency": "EUR",
            "entry": random.choice(["chip", "contactless", "online"]),
            "terminal": random.choice(self._terminals),
            "merchant": {"name": name, "category": category, "city": city, "country": country},
            "authorisation": f"{random.getrandbits(40):010x}" if approved else None,
            "response": "00" if approved else "51",
            "scores": {name: round(random.random(), 6) for name in SCORES},
            "trace": f"00-{random.getrandbits(128):032x}-{random.getrandbits(64):016x}-01",
            **self._device(),
        }
        return self._event("Payment", at, card, data)

    def _device(self) -> dict[str, Any]:
        random = self._random
        address = ".".join(str(random.randrange(1, 255)) for _ in range(4))
        agent = "Mozilla/5.0 (Linux; Android 14) AppleWebKit/537.36 (KHTML, like Gecko) Mobile"
        device = {"fingerprint": f"{random.getrandbits(256):064x}", "address": address}
        return {"device": {**device, "agent": agent, "languages": ["fr-FR", "en-GB"]}}

    def _event(self, type_: str, at: int, key: str, data: dict[str, Any]) -> Event:
        self._number += 1
        source = "payments/eu-west" if type_ == "Payment" else "accounts/eu-west"
        return Event.of(
            type_, id=f"{self._number:09}", source=source, time=at, data=data, partitionkey=key
        )

    def _moment(self) -> int:
        return START + self._random.randrange(AFTERNOON - 1800 * SECOND)

    def _approved(self) -> bool:
        return self._random.random() < 0.96
