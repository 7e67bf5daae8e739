"""Libraries: changed, tried, put in force and restored."""

from __future__ import annotations

import re
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


def test_an_earlier_version_is_edited_further_and_taken_back(opening: Any) -> None:
    with serving(settings()) as live:
        live.put()
        live.put(RULES.replace("> 60", "> 40"))
        opened = opening(live, "#/libraries/heat")
        page: Page = opened.page
        text = page.get_by_label("the text of heat", exact=True)
        expect(text).to_have_value(re.compile("> 40"))
        page.get_by_role("button", name="edit from here").click()
        expect(text).to_have_value(RULES)
        page.keyboard.press("Control+z")
        expect(text).to_have_value(re.compile("> 40"))
        opened.close()


def test_a_library_is_switched_off_after_a_question_and_on_again(opening: Any) -> None:
    with serving(settings()) as live:
        live.put()
        opened = opening(live, "#/libraries/heat")
        page: Page = opened.page
        page.get_by_role("button", name="switch off").click()
        expect(dialog(page)).to_contain_text("forget what they have read")
        page.get_by_role("button", name="switch it off").click()
        expect(page.get_by_text("Switched off: no rule of it runs.")).to_be_visible()
        assert live.client.get("/v1/rules").json() == []
        page.get_by_role("button", name="switch on").click()
        expect(page.get_by_text("1 rule runs")).to_be_visible()
        page.get_by_role("button", name="delete").click()
        write(page, "note", "no use")
        page.get_by_role("button", name="delete it").click()
        expect(page.get_by_role("heading", name="No library yet")).to_be_visible()
        opened.close()
