"""What belongs to every view: its address, keys, colours, and that it fits a phone."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.server.console.opened import NEEDS_CHROMIUM, ON_A_PHONE, PHONE, write
from tests.server.live import Live

pytestmark = NEEDS_CHROMIUM

VIEWS = (
    "stream", "history", "rules", "outputs", "playground", "libraries", "gateways", "system"
)  # fmt: skip


def test_an_address_that_is_badly_encoded_shows_its_view(live: Live, opening: Any) -> None:
    page: Page = opening(live, "#/rules/%zz/Rise").page
    expect(page.locator(".problem").first).to_contain_text("There is no library")


def test_a_view_is_in_the_address_and_can_be_saved(live: Live, opening: Any) -> None:
    opened = opening(live, "#/stream?filter=celsius%20%3E%2060")
    page: Page = opened.page
    expect(page.locator("#filter")).to_have_value("celsius > 60")
    page.keyboard.press("v")
    write(page, "name of this view", "hot ones")
    page.get_by_role("button", name="save this view").click()
    page.get_by_role("button", name="close").click()
    page.keyboard.press("3")
    expect(page).to_have_url(re.compile("#/rules"))
    page.reload()
    page.keyboard.press("v")
    page.get_by_role("link", name="hot ones").click()
    expect(page.locator("#filter")).to_have_value("celsius > 60")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_follow_the_system_and_can_be_chosen(demo: Live, opening: Any, scheme: str) -> None:
    opened = opening(demo, "#/rules/coldchain/WarmAfterDoor", color_scheme=scheme)
    page: Page = opened.page
    expect(page.locator("svg.machine")).to_be_visible()
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    is_dark = sum(map(int, re.findall(r"\d+", ground)[:3])) < 200
    assert is_dark is (scheme == "dark")
    if scheme == "dark":
        page.wait_for_timeout(1_500)
        opened.picture("rule-dark")
    page.keyboard.press("t")
    page.keyboard.press("t")
    chosen = page.evaluate("document.documentElement.dataset.theme")
    assert chosen == "dark"


def test_it_fits_a_phone(demo: Live, opening: Any) -> None:
    opened = opening(demo, **ON_A_PHONE)
    page: Page = opened.page
    for view in (
        "stream",
        "history",
        "rules",
        "outputs",
        "playground",
        "libraries",
        "system",
        "gateways",
    ):
        page.goto(f"{demo.url}/#/{view}")
        page.wait_for_timeout(400)
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= PHONE["width"] + 1, view
        expect(page.locator("nav a[aria-current=page]")).to_be_in_viewport(ratio=0.9)
    page.goto(f"{demo.url}/#/stream")
    expect(page.locator("tbody tr").nth(3)).to_be_visible(timeout=20_000)
    page.wait_for_timeout(400)
    opened.picture("phone")


def test_the_way_past_the_head_of_the_page_stays_in_its_view(live: Live, opening: Any) -> None:
    page: Page = opening(live, "#/rules").page
    expect(page.locator("tr[data-row]").first).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    expect(page).to_have_url(re.compile(r"#/rules$"))
    page.keyboard.press("Tab")
    expect(page.locator("tr[data-row]").first).to_be_focused()


def test_everything_can_be_reached_by_keys(live: Live, opening: Any) -> None:
    page: Page = opening(live, "#/stream").page
    expect(page.locator("table")).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("heading", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    for number, view in enumerate(
        ("stream", "history", "rules", "outputs", "playground", "libraries", "gateways", "system"),
        1,
    ):
        page.keyboard.press(str(number))
        expect(page).to_have_url(re.compile(f"#/{view}"))
        expect(page.locator("nav a[aria-current=page]")).to_have_attribute("data-view", view)
    for key, row in (("3", "rules/heat/Rise"), ("4", r"outputs/\d+"), ("6", "libraries/heat")):
        page.keyboard.press(key)
        # Until they come, the rows of the view before are still there.
        place = row.partition("\\")[0]
        rows = page.locator("tr[data-row]")
        expect(rows.first.locator(f"a[href^='#/{place}']").first).to_be_visible()
        page.keyboard.press("j")
        expect(rows.first).to_be_focused()
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile(f"#/{row}$"))
    for each in page.locator("input, textarea, select, button").all():
        name = each.evaluate(
            "e => e.getAttribute('aria-label') || e.textContent || e.title || e.labels?.length"
        )
        assert name, each.evaluate("e => e.outerHTML")


@pytest.mark.parametrize("view", ["system", "outputs", "playground", "rule"])
def test_labels_of_drawings_can_be_read_on_a_phone(live: Live, opening: Any, view: str) -> None:
    """A label is as high as it is drawn, whatever its drawing is scaled to."""
    path = {"outputs": f"outputs/{live.outputs()[0]['position']}", "rule": "rules/heat/Rise"}
    page: Page = opening(live, f"#/{path.get(view, view)}", **ON_A_PHONE).page
    labels = page.locator("main svg:not(.spark) text")
    expect(labels.first).to_be_visible()
    heights = labels.evaluate_all(
        """all => all.map((each) => parseFloat(getComputedStyle(each).fontSize)
            * each.ownerSVGElement.getScreenCTM().a)"""
    )
    assert min(heights) >= 11
