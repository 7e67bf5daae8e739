"""One browser, one server with a rule, and one demonstration for all tests of the console."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.server.console.opened import CHROMIUM, Addressed, Opened
from tests.server.live import Live, reading, serving, settings


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="package")
def demo() -> Iterator[Live]:
    with serving(settings(demo=True, clock="wall")) as running:
        yield running


@pytest.fixture(scope="package")
def live() -> Iterator[Live]:
    """Eight cold readings of four sensors, a hot one of `s1`, and a warm one of `s2`."""
    with serving(settings()) as running:
        running.put()
        running.publish([reading(n, f"s{n % 4}", 20) for n in range(8)])
        running.publish([reading(8, "s1", 70), reading(9, "s2", 45)])
        yield running


@pytest.fixture
def opening(browser: Browser) -> Iterator[Any]:
    opened: list[Opened] = []

    def make(live: Addressed, path: str = "", **context: Any) -> Opened:
        opened.append(Opened(browser, live, path, **context))
        return opened[-1]

    yield make
    for each in opened:
        each.close()
