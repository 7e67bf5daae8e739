"""Tokens: asked for, refused, changed, and lacking a role."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.server.console.opened import NEEDS_CHROMIUM, dialog
from tests.server.live import Live, serving, settings

pytestmark = NEEDS_CHROMIUM

SECRET = "a-secret-of-the-console"
READER = "a-secret-of-a-reader"


@pytest.fixture(scope="module")
def closed() -> Iterator[Live]:
    tokens = [
        {"name": "me", "secret": SECRET, "roles": ["admin"]},
        {"name": "reader", "secret": READER, "roles": ["subscribe"]},
    ]
    with serving(settings(tokens=tokens)) as running:
        yield running


def give(page: Page, secret: str) -> None:
    page.locator("#token").fill(secret)
    page.get_by_role("button", name="use it").click()


def test_a_token_is_asked_for_once(closed: Live, opening: Any) -> None:
    opened = opening(closed, "#/rules")
    page: Page = opened.page
    expect(dialog(page)).to_have_count(1)
    give(page, SECRET)
    expect(page.get_by_text("No rule runs")).to_be_visible()
    page.reload()
    expect(page.get_by_text("No rule runs")).to_be_visible()
    assert dialog(page).count() == 0
    for each in page.locator("nav a").all():
        expect(each).to_be_in_viewport(ratio=1)
    opened.go("#/stream")
    expect(page.get_by_text("waiting for events")).to_be_visible()


def test_a_wrong_token_is_said_and_another_can_be_given(closed: Live, opening: Any) -> None:
    page: Page = opening(closed, "#/rules").page
    give(page, "mistyped")
    expect(dialog(page).get_by_role("alert")).to_contain_text("does not know this token")
    expect(page.locator("#token")).to_have_value("")
    give(page, SECRET)
    expect(page.get_by_text("No rule runs")).to_be_visible()


def test_escape_closes_the_question_which_can_be_asked_again(closed: Live, opening: Any) -> None:
    page: Page = opening(closed, "#/rules").page
    expect(dialog(page)).to_have_count(1)
    page.keyboard.press("Escape")
    expect(page.locator("main").get_by_role("alert")).to_contain_text("The server wants a token")
    page.wait_for_timeout(1_500)
    assert dialog(page).count() == 0
    page.get_by_role("button", name="give a token").click()
    give(page, SECRET)
    expect(page.get_by_text("No rule runs")).to_be_visible()


def test_who_lacks_a_role_is_told_and_can_use_another_token(closed: Live, opening: Any) -> None:
    page: Page = opening(closed, "#/rules").page
    give(page, READER)
    trouble = page.locator("main").get_by_role("alert")
    expect(trouble).to_contain_text("lacks the role")
    trouble.get_by_role("button", name="use another token").click()
    give(page, SECRET)
    expect(page.get_by_text("No rule runs")).to_be_visible()


def test_a_token_can_be_forgotten(closed: Live, opening: Any) -> None:
    page: Page = opening(closed, "#/rules").page
    give(page, SECRET)
    expect(page.get_by_text("No rule runs")).to_be_visible()
    page.get_by_role("button", name="token", exact=True).click()
    page.get_by_role("button", name="forget the one in use").click()
    expect(dialog(page)).to_contain_text("kept until this tab is closed")
    assert page.evaluate("sessionStorage.getItem('ensue-token')") is None
