"""Rules with their machines and keys, and outputs with their causes."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import Page, expect

from tests.server.console.opened import NEEDS_CHROMIUM, write
from tests.server.live import RULES, Live, reading, serving, settings

pytestmark = NEEDS_CHROMIUM


def test_rules_show_counts_machines_keys_and_reasons(live: Live, opening: Any) -> None:
    page: Page = opening(live, "#/rules").page
    row = page.locator("tbody tr", has_text="Rise")
    expect(row.locator("td").nth(1)).to_have_text("1")
    expect(row).to_contain_text("for s1")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("#/rules/heat/Rise"))

    counts = page.locator("svg.machine .count text")
    expect(counts.first).to_have_text("3")
    live.publish([reading(20, "new", 20)])
    expect(page.locator("svg.machine .count text", has_text="4").first).to_be_visible()

    write(page, "key", "s2")
    expect(page.locator("article.reason")).to_contain_text("waits for")
    expect(page.locator("article.reason li.done")).to_contain_text("low by e2")
    live.client.post("/v1/libraries/heat/disable")
    live.client.post("/v1/libraries/heat/enable")


def test_the_key_of_a_question_is_in_the_address(live: Live, opening: Any) -> None:
    page: Page = opening(live, "#/rules/heat/Rise").page
    write(page, "key", "s2")
    expect(page).to_have_url(re.compile(r"#/rules/heat/Rise\?key=s2$"))
    other: Page = opening(live, page.url.removeprefix(live.url + "/")).page
    expect(other.locator("article.reason")).to_contain_text("key s2")


def test_a_rule_that_is_changed_is_drawn_anew(opening: Any) -> None:
    with serving(settings()) as live:
        live.put()
        opened = opening(live, "#/rules/heat/Rise")
        page: Page = opened.page
        expect(page.locator("pre.code")).to_contain_text("low ; high")
        live.put(RULES.replace("low ; high", "low ; low ; high"))
        expect(page.get_by_role("heading", level=1)).to_contain_text("version 2")
        expect(page.locator("pre.code")).to_contain_text("low ; low ; high")
        opened.close()


def test_links_in_a_row_lead_where_they_say_and_keep_the_focus(opening: Any) -> None:
    with serving(settings()) as live:
        live.put()
        live.publish([reading(0, "s1", 20), reading(1, "s1", 70)])
        opened = opening(live, "#/rules")
        page: Page = opened.page
        why = page.get_by_role("link", name="why")
        why.focus()
        page.wait_for_timeout(2_500)
        expect(why).to_be_focused()
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile(r"#/outputs/\d+$"))
        page.go_back()
        expect(page).to_have_url(re.compile(r"#/rules$"))
        opened.close()


def test_an_output_is_opened_to_its_causes_on_a_line_of_time(live: Live, opening: Any) -> None:
    opened = opening(live, "#/outputs")
    page: Page = opened.page
    page.locator("tbody tr", has_text="s1").first.locator("td.time").click()
    expect(page).to_have_url(re.compile(r"#/outputs/\d+"))
    expect(page.locator("svg.timeline .event")).to_have_count(2)
    expect(page.locator("svg.timeline .output")).to_have_count(1)
    expect(page.locator("svg.timeline .cause")).to_have_count(2)
    expect(page.locator("ol.causes li").first).to_contain_text("as low")
    opened.picture("output")
    page.locator("svg.timeline .event").first.click()
    expect(page.locator(".json").last).to_contain_text('"celsius": 20')


def test_never_yet_leads_to_why_not(opening: Any) -> None:
    with serving(settings()) as running:
        running.put()
        running.publish([reading(0, "s1", 20)])
        opened = opening(running, "#/rules")
        page: Page = opened.page
        expect(page.locator("tbody tr")).to_contain_text("never yet")
        page.get_by_role("link", name="why not").click()
        reason = page.locator("article.reason")
        expect(reason).to_contain_text("waits for high")
        reason.get_by_role("link", name="e0").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("Reading e0")
        opened.close()
