"""Nobody overwrites the work of another: a name that is taken, and two editors of one library."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.server.console.opened import NEEDS_CHROMIUM, dialog, write
from tests.server.live import RULES, Live, serving, settings

pytestmark = NEEDS_CHROMIUM

THREE = RULES + "".join(
    f"""
Hot correlation {name} (Reading high where celsius > {degrees})
    high
    by sensor
{{
    case true: push new Hot {{ sensor = high.sensor }};
}}
"""
    for name, degrees in (("Warm", 80), ("Boiling", 100))
)
MINE = THREE.replace("celsius < 30", "celsius < 25")
THEIRS = THREE.replace("celsius > 100", "celsius > 99")


@pytest.fixture
def shared() -> Iterator[Live]:
    with serving(settings()) as running:
        running.put(THREE)
        yield running


def in_force(live: Live) -> Any:
    return live.client.get("/v1/libraries/heat").json()


def others(live: Live, text: str = THEIRS, note: str = "boils earlier") -> None:
    plain = {"Content-Type": "text/plain"}
    answer = live.client.put(
        "/v1/libraries/heat", content=text, params={"note": note}, headers=plain
    )
    assert answer.status_code == 200, answer.text


def edit(page: Page, text: str = MINE) -> None:
    field = page.get_by_label("the text of heat", exact=True)
    expect(field).to_have_value(THREE)
    field.fill(text)


def put(page: Page) -> None:
    page.get_by_role("button", name="put in force").click()


def test_a_name_that_is_taken_is_not_replaced_without_its_difference(
    shared: Live, opening: Any
) -> None:
    page: Page = opening(shared, "#/playground").page
    page.get_by_label("rules", exact=True).fill(RULES)
    page.get_by_role("button", name="put on the server").click()
    page.get_by_label("name", exact=True).fill("heat")
    page.get_by_role("button", name="go on").click()
    asked = dialog(page)
    expect(asked).to_contain_text("version 1 by")
    expect(asked).to_contain_text("2 rules of it would be gone: Warm, Boiling")
    expect(asked.locator(".gone").filter(has_text="correlation Warm")).to_have_count(1)
    assert in_force(shared)["version"] == 1

    # Another name, after all.
    asked.get_by_role("button", name="cancel").click()
    expect(page.get_by_label("name", exact=True)).to_have_value("heat")
    page.get_by_label("name", exact=True).fill("heat-2")
    page.get_by_role("button", name="go on").click()
    page.get_by_role("button", name="put it on the server").click()
    expect(page).to_have_url(re.compile("#/rules$"))
    assert in_force(shared)["text"] == THREE


def test_what_is_replaced_has_a_note_that_others_read(shared: Live, opening: Any) -> None:
    opened = opening(shared, "#/libraries/heat")
    page: Page = opened.page
    edit(page)
    put(page)
    write(page, "note", "colder cellar")
    page.get_by_role("button", name="replace version 1").click()
    expect(page.locator("table.versions")).to_contain_text("colder cellar")
    assert in_force(shared)["note"] == "colder cellar"


def test_the_second_of_two_is_told_what_changed_and_merges(shared: Live, opening: Any) -> None:
    opened = opening(shared, "#/libraries/heat")
    page: Page = opened.page
    edit(page)
    put(page)
    expect(dialog(page)).to_contain_text("Replace heat")
    others(shared)
    page.get_by_role("button", name="replace version 1").click()
    asked = dialog(page)
    expect(asked).to_contain_text("Others have changed heat meanwhile")
    expect(asked).to_contain_text("boils earlier")
    expect(asked.locator(".new")).to_contain_text("celsius > 99")
    opened.picture("conflict")
    assert in_force(shared)["text"] == THEIRS

    asked.get_by_role("button", name="merge both").click()
    both = MINE.replace("celsius > 100", "celsius > 99")
    expect(page.get_by_label("the text of heat", exact=True)).to_have_value(both)
    put(page)
    page.get_by_role("button", name="replace version 2").click()
    expect(page.locator("#notice")).to_contain_text("Version 3 is in force")
    assert in_force(shared)["text"] == both


def test_the_second_of_two_sees_it_while_editing(shared: Live, opening: Any) -> None:
    """Above 5 s: the page looks every four seconds at what others have put."""
    page: Page = opening(shared, "#/libraries/heat").page
    edit(page)
    others(shared)
    told = page.get_by_text("Meanwhile there is version 2 by")
    expect(told).to_be_visible(timeout=10_000)
    expect(told).to_contain_text("boils earlier")
    expect(page.get_by_label("the text of heat", exact=True)).to_have_value(MINE)
    page.get_by_role("button", name="what did they change?").click()
    expect(dialog(page).locator(".new")).to_contain_text("celsius > 99")
    page.keyboard.press("Escape")
    assert in_force(shared)["text"] == THEIRS


def test_what_both_changed_stands_twice_between_marks(shared: Live, opening: Any) -> None:
    page: Page = opening(shared, "#/libraries/heat").page
    edit(page, THREE.replace("celsius > 100", "celsius > 101"))
    others(shared)
    put(page)
    expect(dialog(page)).to_contain_text("1 place in different ways")
    page.get_by_role("button", name="merge both").click()
    field = page.get_by_label("the text of heat", exact=True)
    expect(field).to_have_value(
        re.compile(r"<<<<<<< yours\n.*celsius > 101\)\n.*theirs\n.*celsius > 99\)\n// >>>>>>>")
    )
    field.focus()
    page.keyboard.press("Control+z")
    expect(field).to_have_value(re.compile("celsius > 101"))


def test_the_second_of_two_takes_over_knowingly(shared: Live, opening: Any) -> None:
    page: Page = opening(shared, "#/libraries/heat").page
    edit(page)
    others(shared)
    put(page)
    page.get_by_role("button", name="replace theirs by mine").click()
    expect(dialog(page).locator(".gone").filter(has_text="celsius > 99")).to_have_count(1)
    page.get_by_role("button", name="replace version 2").click()
    expect(page.locator("#notice")).to_contain_text("Version 3 is in force")
    texts = [each["text"] for each in shared.client.get("/v1/libraries/heat/versions").json()]
    assert texts == [MINE, THEIRS, THREE]


def test_the_second_of_two_takes_theirs_and_can_go_back(shared: Live, opening: Any) -> None:
    page: Page = opening(shared, "#/libraries/heat").page
    edit(page)
    others(shared)
    put(page)
    page.get_by_role("button", name="take theirs").click()
    field = page.get_by_label("the text of heat", exact=True)
    expect(field).to_have_value(THEIRS)
    field.focus()
    page.keyboard.press("Control+z")
    expect(field).to_have_value(MINE)


def test_a_library_that_was_deleted_meanwhile_can_be_put_again(shared: Live, opening: Any) -> None:
    page: Page = opening(shared, "#/libraries/heat").page
    edit(page)
    shared.client.delete("/v1/libraries/heat")
    put(page)
    expect(dialog(page)).to_contain_text("heat was deleted meanwhile")
    page.get_by_role("button", name="put mine").click()
    page.get_by_role("button", name="put it on the server").click()
    expect(page.locator("#notice")).to_contain_text("Version 2 is in force")
    assert in_force(shared)["text"] == MINE


def test_a_version_is_not_restored_over_what_others_put(shared: Live, opening: Any) -> None:
    page: Page = opening(shared, "#/libraries/heat").page
    others(shared)
    expect(page.get_by_label("the text of heat", exact=True)).to_have_value(THEIRS)
    page.get_by_role("button", name="restore").click()
    expect(dialog(page)).to_contain_text("Restore version 1")
    others(shared, MINE, "colder cellar")
    page.get_by_role("button", name="restore version 1").click()
    expect(page.locator("#notice .bad")).to_be_visible()
    assert in_force(shared)["text"] == MINE
