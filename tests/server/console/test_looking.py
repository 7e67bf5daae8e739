"""Looking back: time ranges, search and pages over events and outputs; zones, and ids as links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import unquote

import pytest
from playwright.sync_api import Page, expect

from tests.server.console.opened import NEEDS_CHROMIUM, write
from tests.server.live import Live, reading, serving, settings

pytestmark = NEEDS_CHROMIUM

EVENTS = 120


@pytest.fixture(scope="module")
def past() -> Iterator[Live]:
    """A reading a minute from the beginning of 2026 on, cold and hot in turns, and two of today."""
    with serving(settings()) as running:
        running.put()
        events = [reading(n, f"s{n // 2 % 3}", 70 if n % 2 else 20, 60 * n) for n in range(EVENTS)]
        running.publish(events)
        now = datetime.now(UTC)
        for minutes, name in ((180, "earlier"), (5, "today")):
            time = (now - timedelta(minutes=minutes)).isoformat().replace("+00:00", "Z")
            running.publish([{**reading(0, "s9", 20), "id": name, "time": time}])
        yield running


def test_the_history_is_shown_a_page_at_a_time_the_latest_first(past: Live, opening: Any) -> None:
    page: Page = opening(past, "#/history").page
    ids = page.locator("td.id")
    expect(ids).to_have_count(50)
    expect(ids.first).to_have_text("today")
    seen = ids.all_text_contents()
    for number, count in ((2, 50), (3, EVENTS + 2 - 100)):
        page.get_by_role("button", name="older").click()
        expect(page.get_by_text(f"page {number}")).to_be_visible()
        expect(ids).to_have_count(count)
        seen += ids.all_text_contents()
    expect(page.get_by_role("button", name="older")).to_be_disabled()
    assert seen == ["today", "earlier", *(f"e{n}" for n in reversed(range(EVENTS)))]

    page.get_by_role("button", name="newer").click()
    expect(ids.first).to_have_text("e71")


def test_the_history_is_searched_filtered_and_told_when_nothing_matches(
    past: Live, opening: Any
) -> None:
    page: Page = opening(past, "#/history").page
    ids = page.locator("td.id")
    write(page, "search", "S9")
    expect(ids).to_have_text(["today", "earlier"])
    write(page, "search", "")
    write(page, "filter in CESQL", "celsius > 60 AND sensor = 's0'")
    expect(ids).to_have_count(20)
    expect(page).to_have_url(re.compile("filter=celsius"))
    page.reload()
    expect(ids).to_have_count(20)
    write(page, "search", "nowhere at all")
    expect(page.get_by_text("No event matches.")).to_be_visible()
    page.get_by_role("button", name="show all events").click()
    expect(ids).to_have_count(50)


def test_a_range_of_time_is_chosen_and_is_in_the_address(past: Live, opening: Any) -> None:
    opened = opening(past, "#/history", timezone_id="Europe/Berlin")
    page: Page = opened.page
    ids = page.locator("td.id")
    choose = page.get_by_label("time range")
    choose.select_option("15m")
    expect(ids).to_have_text(["today"])
    choose.select_option("24h")
    expect(ids).to_have_text(["today", "earlier"])
    expect(page).to_have_url(re.compile("last=24h"))

    # What is typed is in the zone that is shown: an hour ahead of UTC in winter.
    choose.select_option("between")
    page.get_by_label(re.compile("^from")).fill("2026-01-01T01:10:30")
    page.get_by_label(re.compile("^to")).fill("2026-01-01T01:13:30")
    expect(ids).to_have_text(["e13", "e12", "e11"])
    opened.picture("history")
    address = unquote(page.url)
    assert "since=2026-01-01T00:10:30.000Z&until=2026-01-01T00:13:30.000Z" in address
    page.reload()
    expect(page.get_by_label(re.compile("^from"))).to_have_value("2026-01-01T01:10:30")
    expect(ids).to_have_text(["e13", "e12", "e11"])


def test_times_have_their_day_and_a_zone_that_can_be_changed(past: Live, opening: Any) -> None:
    page: Page = opening(past, "#/history?search=e3", timezone_id="America/New_York").page
    time = page.locator("td.time time").last
    expect(time).to_have_text("2025-12-31 19:03:00.000")
    expect(time).to_have_attribute("title", re.compile("2026-01-01T00:03:00Z"))
    expect(page.locator("th").first).to_have_text(re.compile("^time, (EST|EDT|GMT-[45])$"))
    page.keyboard.press("Escape")
    page.locator("#zone").click()
    expect(time).to_have_text("2026-01-01 00:03:00.000")
    expect(page.locator("th").first).to_have_text("time, UTC")
    page.reload()
    expect(time).to_have_text("2026-01-01 00:03:00.000")


def test_outputs_are_shown_by_pages_range_and_search(past: Live, opening: Any) -> None:
    page: Page = opening(past, "#/outputs").page
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(50)
    page.get_by_role("button", name="older").click()
    expect(rows).to_have_count(EVENTS // 2 - 50)
    write(page, "search", '"sensor":"S2"')
    expect(rows).to_have_count(EVENTS // 6)
    expect(page.get_by_role("button", name="older")).to_be_hidden()
    page.get_by_label("time range").select_option("24h")
    expect(page.get_by_text("No output matches.")).to_be_visible()


def test_an_id_leads_to_its_event_and_on_to_what_followed_from_it(past: Live, opening: Any) -> None:
    page: Page = opening(past, "#/outputs?search=e7").page
    page.locator("tbody tr").last.get_by_role("link", name="Hot").click()
    cause = page.locator("ol.causes li").first
    expect(cause).to_contain_text("as low")
    cause.get_by_role("link").click()
    expect(page).to_have_url(re.compile("#/history/e6"))
    expect(page.get_by_role("heading", level=1)).to_contain_text("Reading e6")
    expect(page.locator(".json").first).to_contain_text('"celsius": 20')
    page.get_by_role("link", name="Hot").click()
    expect(page).to_have_url(re.compile(r"#/outputs/\d+$"))


def test_an_event_that_is_not_there_is_told(past: Live, opening: Any) -> None:
    page: Page = opening(past, "#/history/nobody").page
    expect(page.get_by_text("The history does not have it")).to_be_visible()
