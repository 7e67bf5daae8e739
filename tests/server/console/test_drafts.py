"""What is written is not lost: undo over examples, drafts in the browser, a question at leaving."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Dialog, Locator, Page, expect

from tests.server.console.opened import NEEDS_CHROMIUM, dialog, write
from tests.server.live import RULES, Live, serving, settings

pytestmark = NEEDS_CHROMIUM

OWN = "// mine\n" + RULES


@pytest.fixture(scope="module")
def served() -> Iterator[Live]:
    with serving(settings()) as running:
        running.put()
        running.put(name="other")
        yield running


def rules(page: Page) -> Locator:
    return page.get_by_label("rules", exact=True)


def text(page: Page, name: str = "heat") -> Locator:
    return page.get_by_label(f"the text of {name}", exact=True)


def test_undo_takes_back_the_choice_of_an_example(served: Live, opening: Any) -> None:
    page: Page = opening(served, "#/playground").page
    expect(rules(page)).to_have_value(re.compile("GuessedPassword"))
    rules(page).fill(OWN)
    write(page, "events", "0 Reading")
    page.get_by_label("examples").select_option(label="something that does not come")
    expect(rules(page)).to_have_value(re.compile("NotPaid"))
    expect(page.get_by_label("time at the end")).to_have_value("1000")

    # The choice is one edit, wherever the focus is.
    page.keyboard.press("Control+z")
    expect(rules(page)).to_have_value(OWN)
    expect(page.get_by_label("events", exact=True)).to_have_value("0 Reading")
    expect(page.get_by_label("time at the end")).to_have_value("")
    page.keyboard.press("Control+Shift+z")
    expect(rules(page)).to_have_value(re.compile("NotPaid"))
    page.get_by_role("button", name="undo").click()
    page.get_by_role("button", name="undo").click()
    expect(rules(page)).to_have_value(OWN)
    expect(page.get_by_label("events", exact=True)).to_have_value(re.compile("Failed"))


def test_undo_takes_back_typing_word_by_word(served: Live, opening: Any) -> None:
    page: Page = opening(served, "#/playground").page
    rules(page).fill("")
    rules(page).press_sequentially("one two")
    page.keyboard.press("Control+z")
    expect(rules(page)).to_have_value("one")
    page.keyboard.press("Control+z")
    expect(rules(page)).to_have_value("")
    page.keyboard.press("Control+y")
    page.keyboard.press("Control+y")
    expect(rules(page)).to_have_value("one two")


def test_a_text_that_made_way_for_an_example_can_be_chosen_after_a_reload(
    served: Live, opening: Any
) -> None:
    page: Page = opening(served, "#/playground").page
    rules(page).fill(OWN)
    page.get_by_label("examples").select_option(label="something that does not come")
    expect(rules(page)).to_have_value(re.compile("NotPaid"))
    page.reload()
    expect(rules(page)).to_have_value(re.compile("NotPaid"))
    aside = page.get_by_label("examples").locator("optgroup[label='set aside'] option")
    expect(aside).to_contain_text("Rise")
    page.get_by_label("examples").select_option(value="aside 0")
    expect(rules(page)).to_have_value(OWN)


def test_edits_after_a_link_was_copied_survive_a_reload(served: Live, opening: Any) -> None:
    page: Page = opening(served, "#/playground").page
    page.get_by_role("button", name="copy a link").click()
    expect(page).to_have_url(re.compile(r"\?s="))
    link = page.url
    rules(page).fill(OWN)
    expect(page).to_have_url(re.compile("#/playground$"))
    page.reload()
    expect(rules(page)).to_have_value(OWN)

    # A link shows what it holds, and one's own text is at hand.
    page.goto("about:blank")
    page.goto(link)
    expect(rules(page)).to_have_value(re.compile("GuessedPassword"))
    page.get_by_role("button", name="bring it back").click()
    expect(rules(page)).to_have_value(OWN)


def test_the_playground_keeps_its_text_for_a_tab_that_is_opened_later(
    served: Live, opening: Any
) -> None:
    opened = opening(served, "#/playground")
    rules(opened.page).fill(OWN)
    opened.page.wait_for_timeout(100)
    opened.page.close()
    later = opened.context.new_page()
    later.goto(f"{served.url}/#/playground")
    expect(rules(later)).to_have_value(OWN)


def test_the_draft_of_a_library_is_kept_told_and_discarded(served: Live, opening: Any) -> None:
    opened = opening(served, "#/libraries/heat")
    page: Page = opened.page
    expect(text(page)).to_have_value(RULES)
    text(page).fill(OWN)
    expect(page.get_by_text("A draft, kept in this browser")).to_be_visible()
    page.once("dialog", lambda asked: asked.accept())
    page.reload()
    expect(text(page)).to_have_value(OWN)
    expect(page.get_by_text("A draft, kept in this browser")).to_be_visible()

    page.get_by_role("button", name="discard the draft").click()
    expect(text(page)).to_have_value(RULES)
    text(page).focus()
    page.keyboard.press("Control+z")
    expect(text(page)).to_have_value(OWN)
    page.keyboard.press("Control+Shift+z")
    expect(page.get_by_text("A draft, kept in this browser")).to_be_hidden()


def test_each_library_has_a_draft_of_its_own(served: Live, opening: Any) -> None:
    opened = opening(served, "#/libraries/heat")
    page: Page = opened.page
    expect(text(page)).to_have_value(RULES)
    text(page).fill(OWN)
    opened.go("#/libraries/other")
    page.get_by_role("button", name="leave, keep the draft").click()
    expect(text(page, "other")).to_have_value(RULES)
    opened.go("#/libraries")
    expect(page.get_by_role("row", name="heat")).to_contain_text("draft")
    expect(page.get_by_role("row", name="other")).not_to_contain_text("draft")


def test_leaving_an_editor_with_changes_asks(served: Live, opening: Any) -> None:
    opened = opening(served, "#/libraries/heat")
    page: Page = opened.page
    expect(text(page)).to_have_value(RULES)
    text(page).fill(OWN)

    page.get_by_role("link", name="Rules", exact=True).click()
    expect(dialog(page)).to_contain_text("Leave the editor?")
    page.keyboard.press("Escape")
    expect(page).to_have_url(re.compile("#/libraries/heat$"))
    expect(text(page)).to_have_value(OWN)

    page.get_by_role("link", name="Rules", exact=True).click()
    page.get_by_role("button", name="leave, keep the draft").click()
    expect(page).to_have_url(re.compile("#/rules$"))
    page.go_back()
    expect(text(page)).to_have_value(OWN)

    page.get_by_role("link", name="Rules", exact=True).click()
    page.get_by_role("button", name="leave, discard it").click()
    expect(page).to_have_url(re.compile("#/rules$"))
    opened.go("#/libraries/heat")
    expect(text(page)).to_have_value(RULES)


def test_closing_the_page_with_changes_asks(served: Live, opening: Any) -> None:
    page: Page = opening(served, "#/libraries/heat").page
    expect(text(page)).to_have_value(RULES)
    asked: list[str] = []

    def accept(each: Dialog) -> None:
        asked.append(each.type)
        each.accept()

    page.on("dialog", accept)
    page.reload()
    assert asked == []
    expect(text(page)).to_have_value(RULES)
    text(page).press_sequentially("// more")
    page.reload()
    assert asked == ["beforeunload"]


def test_two_tabs_keep_two_drafts_of_one_library(served: Live, opening: Any) -> None:
    opened = opening(served, "#/libraries/heat")
    one: Page = opened.page
    other = opened.context.new_page()
    other.goto(f"{served.url}/#/libraries/heat")
    for page, more in ((one, "// one\n"), (other, "// other\n")):
        expect(text(page)).to_have_value(RULES)
        text(page).fill(more + RULES)
        expect(page.get_by_text("A draft, kept in this browser")).to_be_visible()
    for page, more in ((one, "// one\n"), (other, "// other\n")):
        page.once("dialog", lambda asked: asked.accept())
        page.reload()
        expect(text(page)).to_have_value(more + RULES)
    # The draft of the other tab stays, also for a tab that is opened later.
    one.get_by_role("button", name="discard the draft").click()
    later = opened.context.new_page()
    later.goto(f"{served.url}/#/libraries/heat")
    expect(text(later)).to_have_value("// other\n" + RULES)
