"""Nobody overwrites the work of another: a name that is taken, and two editors of one library."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

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


@dataclass
class Shared:
    """A library of three rules that several people work on."""

    live: Live
    name: str

    @property
    def url(self) -> str:
        return self.live.url

    @property
    def view(self) -> str:
        return f"#/libraries/{self.name}"

    @property
    def path(self) -> str:
        return f"/v1/libraries/{self.name}"

    def field(self, page: Page) -> Locator:
        return page.get_by_label(f"the text of {self.name}", exact=True)

    def edit(self, page: Page, text: str = MINE) -> None:
        expect(self.field(page)).to_have_value(THREE)
        self.field(page).fill(text)

    def in_force(self) -> Any:
        return self.live.client.get(self.path).json()

    def others(self, text: str = THEIRS, note: str = "boils earlier") -> None:
        """Somebody else puts a text."""
        plain = {"Content-Type": "text/plain"}
        answer = self.live.client.put(self.path, content=text, params={"note": note}, headers=plain)
        assert answer.status_code == 200, answer.text


@pytest.fixture(scope="module")
def server() -> Iterator[Live]:
    with serving(settings()) as running:
        yield running


@pytest.fixture
def shared(server: Live, request: pytest.FixtureRequest) -> Iterator[Shared]:
    library = Shared(server, f"l{abs(hash(request.node.name))}")
    server.put(THREE, library.name)
    yield library
    server.client.delete(library.path)


def put(page: Page) -> None:
    page.get_by_role("button", name="put in force").click()


def test_a_name_that_is_taken_is_not_replaced_without_its_difference(
    shared: Shared, opening: Any
) -> None:
    page: Page = opening(shared, "#/playground").page
    page.get_by_label("rules", exact=True).fill(RULES)
    page.get_by_role("button", name="put on the server").click()
    page.get_by_label("name", exact=True).fill(shared.name)
    page.get_by_role("button", name="go on").click()
    asked = dialog(page)
    expect(asked).to_contain_text("version 1 by")
    expect(asked).to_contain_text("2 rules of it would be gone: Warm, Boiling")
    expect(asked.locator(".gone").filter(has_text="correlation Warm")).to_have_count(1)
    assert shared.in_force()["version"] == 1

    # Another name, after all.
    asked.get_by_role("button", name="cancel").click()
    expect(page.get_by_label("name", exact=True)).to_have_value(shared.name)
    page.get_by_label("name", exact=True).fill(f"{shared.name}-2")
    page.get_by_role("button", name="go on").click()
    page.get_by_role("button", name="put it on the server").click()
    expect(page).to_have_url(re.compile("#/rules$"))
    assert shared.in_force()["text"] == THREE


def test_what_is_replaced_has_a_note_that_others_read(shared: Shared, opening: Any) -> None:
    opened = opening(shared, shared.view)
    page: Page = opened.page
    shared.edit(page)
    put(page)
    write(page, "note", "colder cellar")
    page.get_by_role("button", name="replace version 1").click()
    expect(page.locator("table.versions")).to_contain_text("colder cellar")
    assert shared.in_force()["note"] == "colder cellar"


def test_the_second_of_two_is_told_what_changed_and_merges(shared: Shared, opening: Any) -> None:
    opened = opening(shared, shared.view)
    page: Page = opened.page
    shared.edit(page)
    put(page)
    expect(dialog(page)).to_contain_text("Replace l")
    shared.others()
    page.get_by_role("button", name="replace version 1").click()
    asked = dialog(page)
    expect(asked).to_contain_text("Others have changed")
    expect(asked).to_contain_text("boils earlier")
    expect(asked.locator(".new")).to_contain_text("celsius > 99")
    opened.picture("conflict")
    assert shared.in_force()["text"] == THEIRS

    asked.get_by_role("button", name="merge both").click()
    both = MINE.replace("celsius > 100", "celsius > 99")
    expect(shared.field(page)).to_have_value(both)
    put(page)
    page.get_by_role("button", name="replace version 2").click()
    expect(page.locator("#notice")).to_contain_text("Version 3 is in force")
    assert shared.in_force()["text"] == both


def test_the_second_of_two_sees_it_while_editing(shared: Shared, opening: Any) -> None:
    """Above 5 s: the page looks every four seconds at what others have put."""
    page: Page = opening(shared, shared.view).page
    shared.edit(page)
    shared.others()
    told = page.get_by_text("Meanwhile there is version 2 by")
    expect(told).to_be_visible(timeout=10_000)
    expect(told).to_contain_text("boils earlier")
    expect(shared.field(page)).to_have_value(MINE)
    expect(page.locator("table.versions")).to_contain_text("boils earlier")
    page.get_by_role("button", name="what did they change?").click()
    expect(dialog(page).locator(".new")).to_contain_text("celsius > 99")
    page.keyboard.press("Escape")
    assert shared.in_force()["text"] == THEIRS


def test_what_both_changed_stands_twice_between_marks(shared: Shared, opening: Any) -> None:
    page: Page = opening(shared, shared.view).page
    shared.edit(page, THREE.replace("celsius > 100", "celsius > 101"))
    shared.others()
    put(page)
    expect(dialog(page)).to_contain_text("1 place in different ways")
    page.get_by_role("button", name="merge both").click()
    field = shared.field(page)
    expect(field).to_have_value(
        re.compile(r"<<<<<<< yours\n.*celsius > 101\)\n.*theirs\n.*celsius > 99\)\n// >>>>>>>")
    )
    field.focus()
    page.keyboard.press("Control+z")
    expect(field).to_have_value(re.compile("celsius > 101"))


def test_the_second_of_two_takes_over_knowingly(shared: Shared, opening: Any) -> None:
    page: Page = opening(shared, shared.view).page
    shared.edit(page)
    shared.others()
    put(page)
    page.get_by_role("button", name="replace theirs by mine").click()
    expect(dialog(page).locator(".gone").filter(has_text="celsius > 99")).to_have_count(1)
    page.get_by_role("button", name="replace version 2").click()
    expect(page.locator("#notice")).to_contain_text("Version 3 is in force")
    texts = [each["text"] for each in shared.live.client.get(f"{shared.path}/versions").json()]
    assert texts == [MINE, THEIRS, THREE]


def test_the_second_of_two_takes_theirs_and_can_go_back(shared: Shared, opening: Any) -> None:
    page: Page = opening(shared, shared.view).page
    shared.edit(page)
    shared.others()
    put(page)
    page.get_by_role("button", name="take theirs").click()
    field = shared.field(page)
    expect(field).to_have_value(THEIRS)
    field.focus()
    page.keyboard.press("Control+z")
    expect(field).to_have_value(MINE)


def test_a_library_that_was_deleted_meanwhile_can_be_put_again(
    shared: Shared, opening: Any
) -> None:
    page: Page = opening(shared, shared.view).page
    shared.edit(page)
    shared.live.client.delete(shared.path)
    put(page)
    expect(dialog(page)).to_contain_text("was deleted meanwhile")
    page.get_by_role("button", name="put mine").click()
    page.get_by_role("button", name="put it on the server").click()
    expect(page.locator("#notice")).to_contain_text("Version 2 is in force")
    assert shared.in_force()["text"] == MINE


def test_a_version_is_not_restored_over_what_others_put(shared: Shared, opening: Any) -> None:
    page: Page = opening(shared, shared.view).page
    shared.others()
    expect(shared.field(page)).to_have_value(THEIRS)
    page.get_by_role("button", name="restore").click()
    expect(dialog(page)).to_contain_text("Restore version 1")
    shared.others(MINE, "colder cellar")
    page.get_by_role("button", name="restore version 1").click()
    expect(page.locator("#notice .bad")).to_be_visible()
    assert shared.in_force()["text"] == MINE


def test_two_people_in_two_browsers_lose_nothing(shared: Shared, opening: Any) -> None:
    ann: Page = opening(shared, shared.view).page
    bob: Page = opening(shared, shared.view).page
    shared.edit(ann, MINE)
    shared.edit(bob, THEIRS)
    put(ann)
    write(ann, "note", "colder cellar")
    ann.get_by_role("button", name="replace version 1").click()
    expect(ann.locator("#notice")).to_contain_text("Version 2 is in force")
    put(bob)
    expect(dialog(bob)).to_contain_text("colder cellar")
    bob.get_by_role("button", name="merge both").click()
    put(bob)
    bob.get_by_role("button", name="replace version 2").click()
    expect(bob.locator("#notice")).to_contain_text("Version 3 is in force")
    both = MINE.replace("celsius > 100", "celsius > 99")
    assert shared.in_force()["text"] == both
    # Who only looks sees it, too.
    expect(shared.field(ann)).to_have_value(both, timeout=10_000)
