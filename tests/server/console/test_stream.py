"""The stream: events and outputs as they come, filtered, paused and opened."""

from __future__ import annotations

import os
import re
from typing import Any

from playwright.sync_api import Page, expect

from tests.server.console.opened import NEEDS_CHROMIUM, write
from tests.server.live import Live

pytestmark = NEEDS_CHROMIUM


def test_the_stream_is_filtered_paused_and_opened(demo: Live, opening: Any) -> None:
    opened = opening(demo)
    page: Page = opened.page
    rows = page.locator("tbody tr")
    expect(rows.nth(12)).to_be_visible(timeout=30_000)
    if os.environ.get("ENSUE_PICTURES"):
        expect(page.locator("tr.output").first).to_be_visible(timeout=60_000)
    opened.picture("stream")

    page.keyboard.press("/")
    expect(page.locator("#filter")).to_be_focused()
    page.keyboard.type("type = 'Reading' AND celsius > 0")
    expect(page).to_have_url(re.compile(r"filter=type"))
    page.wait_for_timeout(600)
    expect(page.locator("[role=status]").first).to_contain_text("received", timeout=20_000)
    received = rows.first.locator(".type")
    expect(received).to_contain_text("Reading")

    page.keyboard.press("Escape")
    expect(page.locator("#filter")).to_have_value("type = 'Reading' AND celsius > 0")
    page.keyboard.press("p")
    count = rows.count()
    expect(page.locator(".bar .note")).to_contain_text("held", timeout=20_000)
    assert rows.count() == count
    page.get_by_role("button", name="go on").click()
    expect(page.locator(".bar .note")).to_contain_text("received")

    rows.first.click()
    expect(page.locator("aside .json")).to_contain_text('"specversion"')


def test_a_filter_that_is_wrong_is_told_where(live: Live, opening: Any) -> None:
    page: Page = opening(live, "#/stream").page
    write(page, "filter in CESQL", "celsius > 3 AND")
    expect(page.locator("pre.problem")).to_contain_text("<filter>:1:")
    expect(page.locator("pre.problem")).to_contain_text("^")
    write(page, "filter in CESQL", "celsius > 1")
    expect(page.locator("pre.problem")).to_be_hidden()


def test_the_stream_begins_with_the_latest_and_shows_only_what_a_filter_finds(
    live: Live, opening: Any
) -> None:
    page: Page = opening(live, "#/stream").page
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(live.client.get("/v1/figures").json()["position"])
    page.keyboard.press("p")
    write(page, "filter in CESQL", "EXISTS correlation OR celsius > 60")
    expect(rows).to_have_count(2)
    expect(page.get_by_role("button", name="pause")).to_be_visible()
    # A filter that is half written leaves what is there.
    write(page, "filter in CESQL", "celsius > ")
    expect(page.get_by_role("alert")).to_contain_text("<filter>:1:")
    expect(rows).to_have_count(2)
    for each in ("outputs", "events"):
        page.get_by_label(each, exact=True).click()
    expect(page.get_by_label("events", exact=True)).to_be_checked()


def test_an_attribute_that_nothing_has_is_told_with_what_may_be_meant(
    live: Live, opening: Any
) -> None:
    page: Page = opening(live, "#/stream").page
    write(page, "filter in CESQL", "celsuis > 3 AND sensor = 's1'")
    hint = page.locator(".hint")
    expect(hint).to_contain_text("Nothing has an attribute celsuis")
    hint.get_by_role("button", name="celsius").click()
    expect(page.locator("#filter")).to_have_value("celsius > 3 AND sensor = 's1'")
    expect(hint).to_be_hidden()
    expect(page.locator("tbody tr").first).to_contain_text("s1")


def test_escape_closes_what_is_opened_and_the_row_has_the_focus_again(
    live: Live, opening: Any
) -> None:
    page: Page = opening(live, "#/stream").page
    row = page.locator("tbody tr").nth(2)
    row.click()
    expect(page.locator("aside .json")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("aside")).to_be_hidden()
    expect(row).to_be_focused()


def test_an_output_of_the_stream_leads_to_its_causes(live: Live, opening: Any) -> None:
    page: Page = opening(live, "#/stream?kinds=output").page
    page.locator("tr.output").last.click()
    page.locator("aside").get_by_role("link", name="e5", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Reading e5")
