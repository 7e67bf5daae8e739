"""Looking through events and outputs over HTTP, a page at a time; and what a filter names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.server.live import Live, reading, serving, settings

COUNT = 40


@pytest.fixture(scope="module")
def live() -> Iterator[Live]:
    """Readings of three sensors, cold and hot in turns, one a second: twenty outputs."""
    tokens = [
        {"name": "all", "secret": "s-all", "roles": ["admin"]},
        {"name": "none", "secret": "s-none", "roles": ["publish"]},
        {"name": "blind", "secret": "s-blind", "roles": ["subscribe"], "deny": ["Reading", "Hot"]},
    ]
    with serving(settings(tokens=tokens)) as running:
        running.client.headers["Authorization"] = "Bearer s-all"
        running.put()
        running.publish([reading(n, f"s{n // 2 % 3}", 70 if n % 2 else 20) for n in range(COUNT)])
        yield running


def pages(live: Live, path: str, what: str, **given: Any) -> list[list[Any]]:
    found: list[list[Any]] = []
    before: Any = None
    while True:
        asked = {**given, **({} if before is None else {"before": before})}
        answer = live.client.get(path, params=asked)
        assert answer.status_code == 200, answer.text
        found.append(answer.json()[what])
        before = answer.json()["next"]
        assert answer.json()["more"] is (before is not None)
        if before is None:
            return found


def test_the_latest_events_come_first_page_by_page(live: Live) -> None:
    found = pages(live, "/v1/history", "events", order="latest", limit=15)

    assert [len(each) for each in found] == [15, 15, 10]
    assert [each["id"] for page in found for each in page] == [
        f"e{n}" for n in reversed(range(COUNT))
    ]


def test_the_order_of_time_is_as_before(live: Live) -> None:
    answer = live.client.get("/v1/history", params={"limit": 3}).json()

    assert [each["id"] for each in answer["events"]] == ["e0", "e1", "e2"]
    assert answer["more"] is True


def test_events_are_searched_in_a_span(live: Live) -> None:
    given = {"search": "S1", "since": "2026-01-01T00:00:10Z", "until": "2026-01-01T00:00:20Z"}
    found = pages(live, "/v1/history", "events", order="latest", limit=2, **given)

    assert [each["id"] for page in found for each in page] == ["e15", "e14"]


def test_outputs_are_searched_in_a_span_page_by_page(live: Live) -> None:
    given = {"since": "2026-01-01T00:00:05Z", "until": "2026-01-01T00:00:30Z"}
    times = [
        each["event"]["time"]
        for page in pages(live, "/v1/outputs", "outputs", limit=4, **given)
        for each in page
    ]
    assert times == [f"2026-01-01T00:00:{n:02}Z" for n in range(29, 4, -2)]

    found = pages(live, "/v1/outputs", "outputs", limit=2, search='"sensor":"S2"', **given)
    assert [each["key"] for page in found for each in page] == ["s2"] * 5


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("order=newest", "`order` is `time` or `latest`"),
        ("search=x", "go with `order=latest`"),
        ("order=time&before=1-1", "go with `order=latest`"),
        ("before=yesterday", "`before` is the `next` of an earlier answer"),
        (f"before={10**18 * 99}-1", "`before` is the `next` of an earlier answer"),
        (f"order=latest&search={'x' * 1001}", "1000 are allowed"),
    ],
)
def test_what_makes_no_sense_is_refused_with_what_does(live: Live, query: str, words: str) -> None:
    answer = live.client.get(f"/v1/history?{query}")

    assert answer.status_code == 400
    assert words in answer.json()["detail"]


def test_a_filter_is_told_which_of_its_attributes_nothing_has(live: Live) -> None:
    filter_ = "celsuis > 3 AND sensor = 's1' AND type = 'Reading' AND Place = 'x'"
    found = live.client.get("/v1/filter", params={"filter": filter_}).json()

    by_name = {each["name"]: each for each in found["attributes"]}
    assert found["events"] == COUNT + COUNT // 2
    assert by_name["celsuis"] == {
        "name": "celsuis", "declared": False, "seen": 0, "hint": "celsius"
    }  # fmt: skip
    assert by_name["sensor"]["seen"] == COUNT + COUNT // 2
    assert by_name["type"]["declared"]
    assert (by_name["Place"]["declared"], by_name["Place"]["seen"]) == (False, 0)


def test_who_may_not_read_events_learns_nothing_of_their_attributes(live: Live) -> None:
    def ask(secret: str) -> Any:
        headers = {"Authorization": f"Bearer {secret}"}
        return live.client.get("/v1/filter", params={"filter": "sensor = 1"}, headers=headers)

    assert ask("s-none").status_code == 403
    (sensor,) = ask("s-blind").json()["attributes"]
    assert (sensor["declared"], sensor["seen"]) == (False, 0)
