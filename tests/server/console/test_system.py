"""Figures, gateways and channels."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import Page, expect

from tests.server.console.opened import NEEDS_CHROMIUM
from tests.server.live import Live, reading, serving, settings

pytestmark = NEEDS_CHROMIUM


def test_figures_and_gateways_are_shown(demo: Live, opening: Any) -> None:
    opened = opening(demo, "#/system")
    page: Page = opened.page
    expect(page.locator("svg.plot")).to_have_count(4)
    expect(page.locator(".series-0").first).to_contain_text("events")
    expect(page.get_by_text("the demonstration").first).to_be_visible()
    page.wait_for_timeout(2_000)
    opened.picture("system")
    page.keyboard.press("7")
    expect(page.get_by_role("heading", name="No gateway")).to_be_visible()


def test_a_channel_is_chosen_and_links_are_shown(opening: Any) -> None:
    given = settings(
        channels=[{"name": "alarms"}], links=[{"source": "main", "to": "alarms", "where": "true"}]
    )
    with serving(given) as running:
        running.put()
        running.publish([reading(0, "s1", 20), reading(1, "s1", 70)])
        opened = opening(running, "#/gateways")
        page: Page = opened.page
        expect(page.get_by_text("main → alarms")).to_be_visible()
        expect(page.get_by_text("working")).to_be_visible()
        opened.picture("channels")
        page.get_by_label("channel", exact=True).select_option("alarms")
        expect(page).to_have_url(re.compile("/channels/alarms/#/gateways"))
        expect(page.get_by_text("main → alarms")).to_be_visible()
        page.keyboard.press("1")
        expect(page.locator("#filter")).to_be_visible()
        running.client.post("/channels/alarms/v1/events", json=[reading(2, "here", 1.0)])
        expect(page.locator("td.data").first).to_contain_text("here")
        # Of `main` it has what the link brings over, and no more.
        expect(page.locator("td.data").filter(has_text="s1")).to_have_count(1)
        page.keyboard.press("3")
        expect(page.get_by_text("No rule runs")).to_be_visible()
