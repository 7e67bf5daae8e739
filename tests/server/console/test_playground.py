"""The playground: rules and events side by side, and what follows at once."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import Page, expect

from tests.server.console.opened import NEEDS_CHROMIUM, write
from tests.server.live import Live

pytestmark = NEEDS_CHROMIUM


def test_the_playground_marks_mistakes_and_shares_a_link(live: Live, opening: Any) -> None:
    opened = opening(live, "#/playground")
    page: Page = opened.page
    expect(page.locator(".result h2")).to_have_text("1 output")
    rules = page.get_by_label("rules", exact=True)
    text = rules.input_value()
    rules.fill(text.replace("Done done)", "Dnoe done)"))
    expect(page.locator(".told .error").first).to_contain_text("there is no event type `Dnoe`")
    expect(page.locator(".told .error").first).to_contain_text("did you mean `Done`?")
    expect(page.locator(".marks .error").first).to_have_text("Dnoe")
    opened.picture("mistake")
    rules.fill(text.replace("failed{3}", "failed{2}"))
    expect(page.locator(".result h2")).to_have_text("2 outputs")

    write(page, "events", page.get_by_label("events", exact=True).input_value() + "never Failed\n")
    expect(page.locator(".told").nth(1)).to_contain_text("is no time")

    page.get_by_role("button", name="copy a link").click()
    expect(page).to_have_url(re.compile(r"#/playground\?s="))
    other = opening(live, page.url.removeprefix(live.url + "/")).page
    expect(other.get_by_label("rules", exact=True)).to_have_value(re.compile(r"failed\{2\}"))
    expect(other.locator(".result h2")).to_have_text("2 outputs")


def test_the_playground_draws_the_whole_run_and_an_output_opened_shows_why(
    live: Live, opening: Any
) -> None:
    page: Page = opening(live, "#/playground").page
    expect(page.locator("svg.timeline .event")).to_have_count(7)
    expect(page.locator("svg.timeline .event:not(.idle)")).to_have_count(4)
    expect(page.locator("svg.timeline .cause")).to_have_count(4)
    # The only output is open from the beginning.
    expect(page.locator(".outputs details[open]")).to_contain_text("because failed was matched")
    expect(page.locator("svg.timeline .event.shown")).to_have_count(4)

    rules = page.get_by_label("rules", exact=True)
    rules.fill(rules.input_value().replace("failed{3}", "failed{2}"))
    expect(page.locator("svg.timeline .output")).to_have_count(2)
    expect(page.locator(".outputs details[open]")).to_have_count(0)
    page.locator("svg.timeline .output").last.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".outputs details[open]")).to_have_count(1)
    expect(page.locator(".outputs details").last).to_have_attribute("open", "")
    expect(page.locator("svg.timeline .event.shown")).to_have_count(3)
    page.locator(".outputs summary").first.click()
    expect(page.locator(".outputs details").last).not_to_have_attribute("open", "")
    expect(page.locator("svg.timeline .output.shown")).to_have_count(1)
    page.locator(".outputs summary").first.click()
    expect(page.locator("svg.timeline.chosen")).to_have_count(0)

    page.locator("svg.timeline .event.idle").first.click()
    expect(page.locator(".picked")).to_contain_text("led to no output")
    page.locator("svg.timeline .event:not(.idle)").last.click()
    expect(page.locator(".picked")).to_contain_text("led to Warning at 31 s")


def test_every_example_of_the_playground_puts_something_out(live: Live, opening: Any) -> None:
    page: Page = opening(live, "#/playground").page
    choose = page.get_by_label("examples", exact=True)
    for number in range(choose.locator("option").count()):
        choose.select_option(index=number)
        page.wait_for_timeout(900)
        expect(page.locator(".result h2")).to_have_text(re.compile(r"^[1-9]\d* outputs?$"))
        expect(page.locator(".told .error")).to_have_count(0)
