"""The first minute on a server of one's own: where events go, and what to do next."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.server.console.opened import NEEDS_CHROMIUM
from tests.server.live import Live, serving, settings

pytestmark = NEEDS_CHROMIUM


@pytest.fixture(scope="module")
def empty() -> Iterator[Live]:
    with serving(settings(clock="wall")) as running:
        yield running


def test_empty_views_lead_on(empty: Live, opening: Any) -> None:
    opened = opening(empty, "#/rules")
    page: Page = opened.page
    for view, words in (
        ("rules", "No rule runs"),
        ("outputs", "No output yet"),
        ("libraries", "No library yet"),
        ("history", "No event has come yet"),
    ):
        opened.go(f"#/{view}")
        expect(page.get_by_role("heading", name=words)).to_be_visible()
        page.locator("main").get_by_role("link", name="playground").click()
        expect(page).to_have_url(f"{empty.url}/#/playground")


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_the_empty_stream_shows_a_line_that_sends_an_event(empty: Live, opening: Any) -> None:
    opened = opening(empty)
    page: Page = opened.page
    expect(page.get_by_text(f"{empty.url}/v1/events", exact=True)).to_be_visible()
    opened.picture("first")
    line = page.locator("#curl").inner_text()
    sent = subprocess.run(shlex.split(line), capture_output=True, text=True, timeout=20)
    assert '"accepted":1' in sent.stdout
    expect(page.locator("tbody td.type")).to_have_text("Hello")
    expect(page.get_by_text("No event has come yet")).to_be_hidden()
