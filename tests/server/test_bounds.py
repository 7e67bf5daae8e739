"""What one caller can make the server hold, or do for ever: bounded in number and in bytes."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from ensue.events.event import Event
from ensue.history import History
from ensue.history.asking.bounding import bounded_by
from ensue.library import parse
from ensue.server.access.rates import Rate
from ensue.server.access.tokens import Principal
from ensue.server.api import console
from ensue.server.api.requests.turns import AT_ONCE, MOST_WAITING, QuestionTurns
from ensue.server.station.entries import EVENT, JournalEntry
from ensue.server.station.feed import WAITING_BYTES, SubscriberWish
from ensue.server.station.indexing import MOST_HELD_BYTES, Indexer, WrittenEntries
from ensue.server.station.line import BusyError
from ensue.server.station.record.journal import PAGE_BYTES, RUN_BYTES, ServerJournal
from ensue.server.station.record.known import LONGEST_KEPT, KnownIdentities
from ensue.server.station.rules.dry_run import dry_run
from ensue.server.webhooks.addresses import is_allowed, target_of
from tests.server.live import RULES, Live, reading, serving, settings

SECRET = "a-token-of-enough-characters"
TEMPORAL = "celsius > 60 AND start AFTER(10 s) (celsius < 30)"


@pytest.fixture(scope="module")
def live() -> Iterator[Live]:
    tokens = [
        {"name": "boss", "secret": SECRET, "roles": ["admin"]},
        {
            "name": "some",
            "secret": f"some-{SECRET}",
            "roles": ["subscribe", "history"],
            "subjects": ("Hot",),
        },
    ]
    with serving(settings(tokens=tokens, libraries=3)) as running:
        running.client.headers["Authorization"] = f"Bearer {SECRET}"
        yield running


# --- what is remembered -------------------------------------------------------------------------


def test_names_of_files_that_are_not_there_are_not_remembered(live: Live) -> None:
    with httpx.Client(base_url=live.url) as stranger:
        for name in (
            "x" * 60_000 + ".js",
            "x" * 300 + ".js",
            "%00.js",
            "..%2fserving.py",
            "%2e%2e",
        ):
            assert stranger.get(f"/console/{name}").status_code == 404, name[:20]
        assert stranger.get("/console/app.js").status_code == 200

    assert not [each for each in console._contents() if len(each) > 40]


def test_long_subjects_are_not_remembered() -> None:
    principal = Principal("p", ["publish"], ("com.*",), ("com.secret.*",), Rate(1))

    for number in range(100):
        assert principal.may_have(f"com.{number}" + "x" * 1_000)
        assert not principal.may_have(f"com.secret.{number}" + "x" * 1_000)
        assert principal.may_have(f"com.{number}")
    assert principal._known.cache_info().currsize == 100


def test_long_ids_and_sources_are_remembered_by_their_digests() -> None:
    known = KnownIdentities(1_000)
    events = [
        Event.of("A", time=1, id=id_, source=source)
        for id_ in ("a" * 10_000, "a" * 10_001, "a")
        for source in ("s" * 10_000, "s" * 9_999, "s")
    ]

    assert all(map(known.is_new, events))
    assert not any(map(known.is_new, events))
    parts = [part for each in known._younger for part in each if isinstance(part, str | bytes)]
    assert max(map(len, parts)) <= LONGEST_KEPT
    assert max(map(len, known._sources)) <= LONGEST_KEPT


def test_large_events_are_read_and_kept_in_portions(tmp_path: Path) -> None:
    journal = ServerJournal(tmp_path / "journal.db")
    body = b'{"data":"' + b"x" * 500_000 + b'"}'
    with journal.write():
        journal.append([JournalEntry(number, EVENT, body) for number in range(1, 41)])
    page = journal.page(0, 40)
    rows = journal.ask("SELECT length(body) FROM journal")
    read = page
    while len(read) < 40:
        read = read + journal.page(read[-1].seq, 40)
    journal.close()

    assert max(size for (size,) in rows) < RUN_BYTES + len(body) + 100
    assert sum(len(each.body) for each in page) < PAGE_BYTES + RUN_BYTES + len(body)
    assert [each.seq for each in read] == list(range(1, 41))


def test_events_wait_for_the_history_in_bounded_bytes(tmp_path: Path) -> None:
    journal = ServerJournal(tmp_path / "journal.db")
    with History.open("memory:") as history:
        indexer = Indexer(journal, history, 0)
        for number in range(1, 200):
            indexer.wake(number, WrittenEntries(number, number, [], 1024 * 1024))
        held = sum(each.size for each in indexer._held)
    journal.close()

    assert 0 < held <= MOST_HELD_BYTES


def test_large_deliveries_wait_for_a_subscriber_in_bounded_bytes() -> None:
    with serving(settings()) as live:

        async def subscribed() -> Any:
            made = await live.station.subscribe(SubscriberWish(frozenset({EVENT})), None)
            live.station.feed.go_live(made)
            return made

        subscriber = asyncio.run_coroutine_threadsafe(subscribed(), live.loop).result(10)
        text = "x" * 900_000
        for number in range(12):
            live.publish([{**reading(number, "a", 20), "data": {"sensor": text, "celsius": 1}}])
        time.sleep(0.2)
        waiting = sum(len(each.body) for each in subscriber._queue)

        async def first() -> list[str]:
            found: list[str] = []
            async for batch in subscriber.batches():
                found += [each.id for each in batch]
                if len(found) >= 12:
                    break
            await live.station.unsubscribe(subscriber)
            return found

        given = asyncio.run_coroutine_threadsafe(first(), live.loop).result(20)

    assert waiting <= WAITING_BYTES
    assert given == [str(each) for each in range(1, 13)]


def test_versions_of_removed_libraries_are_bounded(live: Live) -> None:
    for number in range(8):
        live.put(RULES, f"passing-{number}")
        assert live.client.delete(f"/v1/libraries/passing-{number}").status_code == 204
    kept = live.station.journal.ask("SELECT DISTINCT name FROM versions WHERE name LIKE 'passing%'")

    assert [name for (name,) in kept] == ["passing-5", "passing-6", "passing-7"]


# --- what takes for ever ------------------------------------------------------------------------


class OverError(Exception):
    pass


def looking(most: int) -> Any:
    seen = 0

    def look() -> None:
        nonlocal seen
        seen += 1
        if seen > most:
            raise OverError

    return look


def readings(count: int) -> list[Event]:
    return [
        Event.of("Reading", time=number, id=str(number), data={"sensor": "a", "celsius": 40.0})
        for number in range(count)
    ]


@pytest.mark.parametrize("text", ["celsius + 0 > 1000", None, "start AFTER (celsius + 0 < 3)"])
def test_a_search_can_be_ended_though_nothing_is_found(text: str | None) -> None:
    with History.open("memory:") as history:
        history.add_all(readings(500))
        with bounded_by(looking(100)), pytest.raises(OverError):
            list(history.scan(text))


@pytest.mark.parametrize("change", ["", "low ; high"])
def test_a_dry_run_that_puts_nothing_out_ends_at_its_limit(change: str) -> None:
    library = parse(RULES)
    in_force = parse(RULES) if change else None
    with History.open("memory:") as history:
        history.add_all(readings(3_000))
        made = dry_run(history, library, in_force, None, None, 0.0)

    assert not made.whole
    assert made.why is not None
    assert "query_seconds" in made.why


def test_questions_wait_for_their_turn_and_too_many_are_told_to_come_again() -> None:
    release, running = threading.Event(), []

    def question(number: int) -> int:
        running.append(number)
        release.wait(20)
        return number

    async def story() -> tuple[int, int, list[Any]]:
        turns = QuestionTurns()
        asked = [
            asyncio.create_task(turns.take(question, number))
            for number in range(AT_ONCE + MOST_WAITING + 5)
        ]
        await asyncio.sleep(0.3)
        at_once = len(running)
        release.set()
        answers = await asyncio.gather(*asked, return_exceptions=True)
        asked_later = await turns.take(question, 99)
        return at_once, asked_later, answers

    at_once, later, answers = asyncio.run(story())
    assert at_once == AT_ONCE
    assert later == 99
    assert sum(isinstance(each, BusyError) for each in answers) == 5
    assert sorted(each for each in answers if isinstance(each, int)) == [
        *range(AT_ONCE + MOST_WAITING)
    ]


@pytest.mark.parametrize("path", ["/v1/history", "/v1/events"])
def test_a_filter_that_is_too_long_is_not_read(live: Live, path: str) -> None:
    text = " OR ".join(f"a = {number}" for number in range(2_000))
    answer = live.client.get(path, params={"filter": text})

    assert answer.status_code == 400
    assert "16,384 are allowed" in answer.text


# --- what a limited token may ask ---------------------------------------------------------------


@pytest.mark.parametrize("path", ["/v1/history", "/v1/events"])
def test_a_temporal_filter_would_tell_of_events_that_a_token_may_not_read(
    live: Live, path: str
) -> None:
    headers = {"Authorization": f"Bearer some-{SECRET}"}
    with httpx.Client(base_url=live.url, headers=headers, timeout=10) as some:
        refused = some.get(path, params={"filter": TEMPORAL})
        plain = some.get("/v1/history", params={"filter": "sensor = 'a'"})

    assert refused.status_code == 403
    assert "limited to some subjects" in refused.text
    assert plain.status_code == 200
    assert live.client.get("/v1/history", params={"filter": TEMPORAL}).status_code == 200


# --- where webhooks lead ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    [
        "::127.0.0.1", "::10.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b:1::7f00:1", "fec0::1",
        "192.0.0.192", "192.88.99.1", "::", "0.0.0.0", "0.1.2.3", "255.255.255.255", "100.64.0.1",
        "100.100.100.200", "fd00:ec2::254", "2001:0:7f00:1::", "2002:7f00:1::", "ff02::1",
        "64:ff9b::a9fe:a9fe", "::ffff:169.254.169.254", "198.18.0.1", "240.0.0.1", "5f00::1",
    ],
)  # fmt: skip
def test_no_spelling_of_an_inner_address_is_public(address: str) -> None:
    assert not is_allowed(address, [])


@pytest.mark.parametrize(
    "url",
    [
        "http://127.1/", "http://2130706433/", "http://0x7f000001/", "http://0177.0.0.1/",
        "http://0/", "http://[::]/", "http://[::ffff:7f00:1]/", "http://[::1%25lo]/",
        "http://localhost./", "http://\uff11\uff12\uff17.0.0.1/", "http://127.0.0.1\\@example.org/",
        "http://a b/", "http://\x00/", "http://b\u00fccher\u2028.example/", "http://example.org/\x01",
    ],
)  # fmt: skip
def test_no_url_leads_a_webhook_to_this_machine(live: Live, url: str) -> None:
    answer = live.client.put("/v1/webhooks/hook", json={"url": url})

    assert answer.status_code == 422, answer.text
    assert live.client.get("/v1/webhooks").json() == []


def test_a_host_of_other_letters_is_called_by_its_name_on_the_network() -> None:
    assert (
        target_of("https://b\u00fccher.example:8443/x").host_header == "xn--bcher-kva.example:8443"
    )
