"""Every view without findings of axe-core: light and dark, on a screen and on a phone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.server.console.axe import findings
from tests.server.console.opened import NEEDS_CHROMIUM, ON_A_PHONE, dialog, write
from tests.server.live import RULES, Live, reading, serving, settings

pytestmark = NEEDS_CHROMIUM

SIZES: dict[str, dict[str, Any]] = {"screen": {}, "phone": ON_A_PHONE}
SECRET = "a-secret-of-axe"
TOKEN = {"name": "me", "secret": SECRET, "roles": ["admin"]}


@pytest.fixture(scope="module")
def whole() -> Iterator[Live]:
    """Events, outputs, late events, two versions, two channels with a link between them."""
    given = settings(
        channels=[{"name": "alarms"}], links=[{"source": "main", "to": "alarms", "where": "true"}]
    )
    with serving(given) as running:
        running.put(RULES.replace("> 60", "> 50"))
        running.put()
        running.publish([reading(n, f"s{n % 4}", 20 if n < 8 else 70) for n in range(11)])
        running.publish([reading(11, "late", 20, 0)])
        running.put(RULES.replace("Rise", "Silent"), name="other")
        yield running


def views(page: Page, live: Live) -> Iterator[str]:
    """Every view, one after the other, each with what can be opened in it."""

    def show(path: str) -> None:
        page.goto(f"{live.url}/#/{path}")

    rows = page.locator("tr[data-row]")
    show("stream?kinds=event,output,late")
    expect(rows.nth(8)).to_be_visible()
    yield "stream"
    page.locator("tr.output").first.click()
    expect(page.locator("aside")).to_be_visible()
    yield "stream, opened"
    show("stream?filter=celsuis%20%3E%203")
    expect(page.locator(".hint")).to_be_visible()
    yield "stream, with an attribute that nothing has"
    show("history")
    expect(rows.nth(8)).to_be_visible()
    page.get_by_label("time range").select_option("between")
    yield "history"
    show("history/e1")
    expect(page.get_by_text("What followed from it")).to_be_visible()
    yield "an event"
    show("rules")
    expect(rows.nth(1)).to_be_visible()
    yield "rules"
    show("rules/other/Silent?why=not")
    expect(page.locator("article.reason").first).to_be_visible()
    expect(page.locator("svg.machine")).to_be_visible()
    yield "a rule"
    show("outputs")
    expect(rows.first).to_be_visible()
    yield "outputs"
    show(f"outputs/{live.outputs()[0]['position']}")
    expect(page.get_by_text("as low").first).to_be_visible()
    yield "an output"
    show("outputs/999999")
    expect(page.get_by_role("alert")).to_be_visible()
    yield "an output that is not there"
    show("playground")
    expect(page.locator(".result h2")).to_have_text("1 output")
    yield "playground"
    write(page, "rules", "Hot correlation")
    expect(page.locator(".told .error").first).to_be_visible()
    yield "playground, with a mistake"
    write(page, "rules", RULES)
    page.get_by_role("button", name="put on the server").click()
    expect(dialog(page)).to_be_visible()
    yield "the question for a name"
    page.keyboard.press("Escape")
    show("libraries")
    expect(rows.first).to_be_visible()
    yield "libraries"
    show("libraries/heat")
    field = page.get_by_label("the text of heat", exact=True)
    expect(field).to_have_value(RULES)
    field.fill(RULES.replace("> 60", "> 40"))
    page.get_by_role("button", name="try it").click()
    expect(page.get_by_text("It would have fired")).to_be_visible()
    yield "a library with a draft"
    page.get_by_role("button", name="put in force").click()
    expect(dialog(page)).to_be_visible()
    yield "the difference before something is replaced"
    page.keyboard.press("Escape")
    field.fill(RULES)
    show("gateways")
    expect(page.get_by_text("working")).to_be_visible()
    yield "channels"
    show("system")
    expect(page.locator("svg.plot").nth(3)).to_be_visible()
    expect(page.locator("table.changes")).to_be_visible()
    yield "system"
    page.keyboard.press("?")
    expect(dialog(page)).to_be_visible()
    yield "the keys"
    page.keyboard.press("Escape")
    page.keyboard.press("v")
    expect(dialog(page)).to_be_visible()
    yield "saved views"
    page.keyboard.press("Escape")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_every_view_is_open_to_everybody(whole: Live, opening: Any, size: str, scheme: str) -> None:
    """Above 5 s: all of twenty views are drawn and looked at."""
    page: Page = opening(whole, "#/system", color_scheme=scheme, **SIZES[size]).page
    found = [f"{view}: {each}" for view in views(page, whole) for each in findings(page)]

    assert not found, "\n".join(found)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_an_empty_server_with_tokens_is_open_to_everybody(
    opening: Any, size: str, scheme: str
) -> None:
    with serving(settings(tokens=[TOKEN])) as empty:
        opened = opening(empty, "#/stream", color_scheme=scheme, **SIZES[size])
        page: Page = opened.page
        expect(dialog(page)).to_be_visible()
        page.locator("#token").fill("wrong")
        page.get_by_role("button", name="use it").click()
        expect(dialog(page).get_by_role("alert")).to_be_visible()
        found = [f"token: {each}" for each in findings(page)]
        page.locator("#token").fill(SECRET)
        page.get_by_role("button", name="use it").click()
        for view, words in (
            ("stream", "No event has come yet"),
            ("history", "No event has come yet"),
            ("rules", "No rule runs"),
            ("outputs", "No output yet"),
            ("libraries", "No library yet"),
            ("gateways", "No gateway"),
        ):
            opened.go(f"#/{view}")
            expect(page.get_by_role("heading", name=words)).to_be_visible()
            found += [f"{view}: {each}" for each in findings(page)]
        page.goto("about:blank")

    assert not found, "\n".join(found)
