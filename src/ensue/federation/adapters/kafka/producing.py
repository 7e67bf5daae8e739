"""Records to Kafka, in threads: when `produce` returns, the broker has them.

The client library sends in threads of its own, and goes on sending when no coroutine waits any
more. So `close` returns once nothing is on its way: what a later connection finds at the broker,
when it looks up which events are there, is then all that will ever come of this one.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from threading import Lock
from typing import Any

from ensue.federation.adapters.base import RefusedError, driver
from ensue.federation.adapters.kafka.reading import SECONDS_TO_ANSWER

kafka: Any = driver("confluent_kafka", "kafka")

_SECONDS_TO_END = 5.0

Record = dict[str, Any]


class Producing:
    def __init__(self, settings: dict[str, Any], name: str) -> None:
        self.client = kafka.Producer(
            settings
            | {
                "enable.idempotence": "true",
                "linger.ms": "2",
                "message.timeout.ms": str(int(SECONDS_TO_ANSWER * 1000)),
            }
        )
        self._name = name
        self._lock = Lock()
        self._is_closed = False
        self._taken: set[tuple[str, bytes]] = set()
        """Records that came behind a refused one, which the link sends again."""

    def produce(self, records: Sequence[Record]) -> None:
        """Raises `KafkaException`, or `RefusedError` for a record that is too large.

        Both tell by `confirmed` how many records the broker has before the first that it has not.
        """
        with self._lock:
            outcome = self._sent(records)
        confirmed = 0
        while confirmed < len(outcome) and outcome[confirmed] is True:
            confirmed += 1
        if confirmed == len(outcome):
            return
        errors = [each for each in outcome if each is not True and each is not None]
        too_large = [each for each in errors if each.code() == kafka.KafkaError.MSG_SIZE_TOO_LARGE]
        if too_large and len(too_large) == len(errors):
            behind = zip(records[confirmed:], outcome[confirmed:], strict=True)
            self._taken |= {_key(each) for each, is_there in behind if is_there is True}
            refused = RefusedError(f"service `{self._name}`: {too_large[0].str()}")
            refused.confirmed = confirmed
            raise refused
        failed = kafka.KafkaException(errors[0] if errors else _timed_out())
        failed.confirmed = confirmed
        raise failed

    def close(self) -> None:
        """Give up what is on its way, and wait until the sending thread has noticed."""
        self._is_closed = True
        until = time.monotonic() + _SECONDS_TO_END
        while True:
            with contextlib.suppress(kafka.KafkaException, RuntimeError):
                self.client.purge()
            if self._lock.acquire(timeout=0.05):
                self._lock.release()
                return
            if time.monotonic() > until:
                return

    def _sent(self, records: Sequence[Record]) -> list[Any]:
        """What has become of each record: true, an error, or nothing yet."""
        outcome: list[Any] = [None] * len(records)
        for number, each in enumerate(records):
            if self._taken and _key(each) in self._taken:
                self._taken.discard(_key(each))
                outcome[number] = True
                continue
            try:
                self._send(each, outcome, number)
            except kafka.KafkaException as error:
                outcome[number] = error.args[0]
        self.client.flush(SECONDS_TO_ANSWER + 1)
        return outcome

    def _send(self, record: Record, outcome: list[Any], number: int) -> None:
        def delivered(error: Any, _: Any) -> None:
            outcome[number] = True if error is None else error

        while not self._is_closed:
            try:
                self.client.produce(**record, on_delivery=delivered)
                return
            except BufferError:
                self.client.poll(0.05)


def _key(record: Record) -> tuple[str, bytes]:
    return record["topic"], record["value"]


def _timed_out() -> Any:
    return kafka.KafkaError(kafka.KafkaError._TIMED_OUT)
