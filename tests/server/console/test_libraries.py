"""Libraries: changed, tried, put in force and restored."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page, expect

from tests.server.console.opened import NEEDS_CHROMIUM, dialog, write
from tests.server.live import RULES, reading, serving, settings

pytestmark = NEEDS_CHROMIUM


def test_a_library_is_changed_tried_put_and_restored(opening: Any) -> None:
    with serving(settings()) as live:
        live.put()
        live.publish([reading(n, "a", 20 if n % 2 else 50) for n in range(10)])
        opened = opening(live, "#/libraries/heat")
        page: Page = opened.page
        text = page.get_by_label("the text of heat", exact=True)
        expect(text).to_have_value(RULES)
        text.fill(RULES.replace("> 60", "> 40"))
        page.get_by_role("button", name="try it").click()
        expect(page.get_by_text("It would have fired 4 times")).to_be_visible()
        expect(page.locator("dd.good")).to_have_text("+4")
        opened.picture("dry-run")
        page.get_by_role("button", name="put in force").click()
        expect(dialog(page)).to_contain_text("Rise is changed, and begins anew")
        write(page, "note", "warm is enough")
        page.get_by_role("button", name="replace version 1").click()
        expect(page.locator("#notice")).to_contain_text("Version 2 is in force")
        expect(page.locator("table.versions")).to_contain_text("warm is enough")
        live.publish([reading(20, "a", 20), reading(21, "a", 50)])
        assert len(live.outputs()) == 1
        page.get_by_role("button", name="restore").click()
        expect(dialog(page).locator(".gone")).to_contain_text(["celsius > 40"])
        page.get_by_role("button", name="restore version 1").click()
        expect(page.get_by_text("version 1 again")).to_be_visible()
        live.publish([reading(22, "a", 20), reading(23, "a", 50)])
        assert len(live.outputs()) == 1
        opened.close()
