"""The first minutes of somebody who has just started a server."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect

from tests.server.console.opened import NEEDS_CHROMIUM

pytestmark = NEEDS_CHROMIUM


@dataclass
class Shown:
    """A server that was started by hand."""

    url: str


@contextmanager
def demonstration(folder: Path) -> Iterator[Shown]:
    """`ensue serve`, as a newcomer starts it, but for the port."""
    errors = folder / "stderr.txt"
    with errors.open("w") as file:
        command = [sys.executable, "-m", "ensue", "serve", "--listen", "127.0.0.1:0"]
        process = subprocess.Popen(command, stderr=file, cwd=folder)
    try:
        while "ready" not in errors.read_text().split():
            assert process.poll() is None, errors.read_text()
            time.sleep(0.02)
        url = next(each for each in errors.read_text().split() if each.startswith("http"))
        yield Shown(url.rstrip("/"))
    finally:
        process.terminate()
        assert process.wait(60) == 0


def test_a_newcomer_has_a_rule_of_their_own_firing_within_two_minutes(
    tmp_path: Path, opening: Any
) -> None:
    """Above 5 s: a server as a newcomer starts it, and some 400 keys that are typed one by one."""
    begun = time.monotonic()
    with demonstration(tmp_path) as server:
        opened = opening(server)
        page: Page = opened.page
        # There is something to look at: events come, and a rule fires on them.
        expect(page.locator("td.data").first).to_be_visible()
        expect(page.get_by_text("A demonstration")).to_be_visible()
        page.get_by_role("link", name="playground", exact=True).click()
        expect(page.locator(".result h2")).to_have_text("1 output")
        opened.picture("playground")
        # A rule of one's own, typed key by key as people do.
        page.get_by_label("rules", exact=True).fill("")
        page.get_by_label("rules", exact=True).press_sequentially(
            "eventtype Reading { attribute string van; attribute double celsius; };\n"
            "eventtype Mine { attribute string van; };\n"
            "Mine correlation MyRule (Reading r where celsius > -50) r{2} by van\n"
            "{ case true: push new Mine { van = r.van }; }\n",
            delay=2,
            timeout=90_000,
        )
        page.get_by_label("events", exact=True).fill("")
        lines = [f'{n} Reading {{"van": "v", "celsius": 1.5}}' for n in (1, 2)]
        page.get_by_label("events", exact=True).press_sequentially(
            "\n".join(lines), delay=2, timeout=90_000
        )
        expect(page.locator(".outputs li")).to_contain_text("Mine at 2 s")
        # And on the server, over the events that come.
        page.get_by_role("button", name="put on the server").click()
        page.get_by_role("button", name="go on").click()
        page.get_by_role("button", name="put it on the server").click()
        row = page.locator("tbody tr", has_text="MyRule")
        expect(row.locator("td").nth(1)).not_to_have_text("0", timeout=60_000)
        took = time.monotonic() - begun

    print(f"from `ensue serve` to a rule that fires: {took:.0f} s")
    assert took < 120
