"""Parameters of a library: shown, changed with a note, refused at the field, kept beside others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.server.console.axe import findings
from tests.server.console.opened import NEEDS_CHROMIUM, ON_A_PHONE, dialog, write
from tests.server.live import RULES, Live, reading, serving, settings

pytestmark = NEEDS_CHROMIUM

TEXT = (
    "parameter double hot = 60.0;\nparameter long times = 1;\n"
    "parameter duration pause = 5 min;\nparameter boolean loud = false;\n"
    'parameter string room = "a";'
    + RULES.replace("> 60", "> hot")
    + """
Hot correlation Cold (Reading low where celsius < 0 and (loud or sensor = room)) low{times}
    within pause by sensor
{
    case true: push new Hot { sensor = low.sensor };
}
"""
)
PATH = "/v1/libraries/heat/parameters"


@pytest.fixture
def live() -> Iterator[Live]:
    with serving(settings()) as running:
        running.put(TEXT)
        yield running


def field(page: Page, name: str) -> Locator:
    return page.get_by_label(name, exact=True)


def put(page: Page) -> None:
    page.get_by_role("button", name="put values in force").click()


def others(live: Live, **values: Any) -> None:
    """Somebody else puts values."""
    answer = live.client.put(PATH, json=values, params={"note": "of others"})
    assert answer.status_code == 200, answer.text


def test_values_are_changed_by_keys_with_a_note_and_taken_back(live: Live, opening: Any) -> None:
    page: Page = opening(live, "#/libraries/heat").page
    rows = page.locator("table.parameters tbody tr")
    expect(rows).to_have_count(5)
    expect(rows.nth(2)).to_contain_text("pause duration5 min")
    expect(field(page, "pause")).to_have_value("5 min")
    expect(page.get_by_role("button", name="put values in force")).to_be_disabled()
    field(page, "hot").fill("40")
    field(page, "loud").select_option("true")
    field(page, "hot").press("Enter")
    expect(dialog(page)).to_contain_text("Rise, Cold are changed, and begin anew")
    expect(dialog(page).locator(".new")).to_contain_text(["hot = 40.0", "loud = TRUE"])
    write(page, "note", "a cool summer")
    page.keyboard.press("Enter")

    expect(page.locator("table.versions")).to_contain_text("a cool summer")
    expect(page.locator("#notice")).to_contain_text("Version 2 is in force")
    expect(page.get_by_label("the text of heat", exact=True)).to_have_value(re.compile("hot = 40"))
    live.publish([reading(1, "a", 20), reading(2, "a", 50)])
    assert len(live.outputs()) == 1

    page.get_by_role("button", name="the default of hot").click()
    expect(field(page, "hot")).to_have_value("60")
    put(page)
    page.get_by_role("button", name="replace version 2").click()
    expect(page.locator("#notice")).to_contain_text("Version 3 is in force")
    values = live.client.get(PATH).json()
    assert (values["hot"]["value"], values["loud"]["value"]) == (60.0, True)


def test_what_does_not_fit_is_told_at_its_field(live: Live, opening: Any) -> None:
    page: Page = opening(live, "#/libraries/heat").page
    field(page, "hot").fill("warm")
    field(page, "pause").fill("5")
    put(page)
    expect(field(page, "hot")).to_have_attribute("aria-invalid", "true")
    expect(field(page, "hot")).to_be_focused()
    expect(field(page, "hot")).to_have_accessible_description(re.compile("warm.*does not fit"))
    expect(field(page, "pause")).to_have_accessible_description(re.compile("write a number and"))

    # What fits its type, and not the place where it stands.
    field(page, "hot").fill("60")
    field(page, "pause").fill("1 min")
    field(page, "times").fill("0")
    put(page)
    expect(field(page, "times")).to_have_accessible_description(re.compile("at least 1"))
    assert field(page, "hot").get_attribute("aria-invalid") is None
    assert live.client.get("/v1/libraries/heat").json()["version"] == 1


def test_what_others_put_meanwhile_is_told_and_stays(live: Live, opening: Any) -> None:
    page: Page = opening(live, "#/libraries/heat").page
    field(page, "hot").fill("40")
    others(live, times=2)
    put(page)
    expect(dialog(page)).to_contain_text("Others have changed heat meanwhile")
    expect(dialog(page)).to_contain_text("of others")
    expect(dialog(page).locator(".new")).to_contain_text(["times = 2"])
    page.get_by_role("button", name="put my values into theirs").click()
    page.get_by_role("button", name="replace version 2").click()
    expect(page.locator("#notice")).to_contain_text("Version 3 is in force")
    values = live.client.get(PATH).json()
    assert (values["hot"]["value"], values["times"]["value"]) == (40.0, 2)


def test_values_of_others_are_shown_beside_what_is_typed(live: Live, opening: Any) -> None:
    """Above 5 s: the page looks for changes every four."""
    page: Page = opening(live, "#/libraries/heat").page
    field(page, "hot").fill("40")
    others(live, times=2, hot=50)
    expect(field(page, "times")).to_have_value("2")
    expect(field(page, "hot")).to_have_value("40")


def test_typed_values_are_not_left_without_a_question(live: Live, opening: Any) -> None:
    page: Page = opening(live, "#/libraries/heat").page
    field(page, "hot").fill("40")
    page.get_by_role("link", name="Rules").click()
    expect(dialog(page)).to_contain_text("gone when you leave")
    page.keyboard.press("Escape")
    expect(field(page, "hot")).to_have_value("40")
    page.get_by_role("link", name="Rules").click()
    page.get_by_role("button", name="forget them").click()
    expect(page).to_have_url(re.compile("#/rules$"))


def test_a_library_without_parameters_has_no_form(live: Live, opening: Any) -> None:
    live.put()
    page: Page = opening(live, "#/libraries/heat").page
    expect(page.locator("table.versions")).to_be_visible()
    expect(page.locator("table.parameters")).to_be_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("context", [{}, ON_A_PHONE], ids=["screen", "phone"])
def test_the_form_is_open_to_everybody(
    live: Live, opening: Any, context: dict[str, Any], scheme: str
) -> None:
    page: Page = opening(live, "#/libraries/heat", color_scheme=scheme, **context).page
    field(page, "hot").fill("warm")
    others(live, pause="1 h")
    page.reload()
    field(page, "hot").fill("warm")
    put(page)
    expect(field(page, "hot")).to_have_attribute("aria-invalid", "true")
    found = findings(page)
    field(page, "hot").fill("40")
    put(page)
    expect(dialog(page)).to_be_visible()

    assert not [*found, *findings(page)]
    width = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert width <= 0
