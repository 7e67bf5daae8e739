"""Pages of the console, opened in Chromium, which `tests/servers/install.sh` installs on Debian.

With `ENSUE_PICTURES=1` the pictures of the documentation are taken anew.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any, Protocol

import pytest
from playwright.sync_api import Browser, Page

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser"))),
    None,
)
PICTURES = Path(__file__).parents[3] / "docs" / "pictures"
NEEDS_CHROMIUM = pytest.mark.skipif(
    CHROMIUM is None and os.environ.get("CI") != "true", reason="there is no Chromium"
)
SCREEN = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 780}
ON_A_PHONE: dict[str, Any] = {
    "viewport": PHONE, "is_mobile": True, "has_touch": True, "device_scale_factor": 2
}  # fmt: skip


class Addressed(Protocol):
    """Whatever serves a console."""

    url: str


class Opened:
    """A page that collects what goes wrong in it, and where it sends requests."""

    def __init__(self, browser: Browser, live: Addressed, path: str = "", **context: Any) -> None:
        self.context = browser.new_context(viewport=context.pop("viewport", SCREEN), **context)
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(15_000)
        self.problems: list[str] = []
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("console", self._console)
        self.page.on("request", self._request)
        self.url = live.url
        self.page.goto(f"{live.url}/{path}")

    def _console(self, message: Any) -> None:
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.problems.append(message.text)

    def _request(self, request: Any) -> None:
        if not request.url.startswith((self.url, "data:", "blob:")):
            self.problems.append(f"a request to {request.url}")

    def go(self, path: str) -> Page:
        """Another view of the same page."""
        self.page.goto(f"{self.url}/{path}")
        return self.page

    def picture(self, name: str) -> None:
        if os.environ.get("ENSUE_PICTURES"):
            self.page.screenshot(path=PICTURES / f"console-{name}.png")

    def close(self) -> None:
        self.context.close()
        assert self.problems == []


def write(page: Page, label: str, text: str) -> None:
    page.get_by_label(label, exact=True).fill(text)


def dialog(page: Page) -> Any:
    return page.get_by_role("dialog")
