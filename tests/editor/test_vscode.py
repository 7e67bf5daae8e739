"""The extension in the editor that it is for: Visual Studio Code, served to a headless browser.

Its own desktop program is not needed: code-server is the editor's workbench and extension host as a
process. Skipped unless `code-server` and Chromium are installed and the extension is packaged
(`make extension`).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from tests.editor.test_server import RULES, TYPES

CODE_SERVER = shutil.which("code-server")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
PACKAGE = Path(
    os.environ.get("ENSUE_VSIX", Path(__file__).parents[2] / "editors/vscode/ensue.vsix")
)
SECONDS = 60_000

pytestmark = pytest.mark.skipif(
    CODE_SERVER is None or CHROMIUM is None or not PACKAGE.exists(),
    reason="code-server, Chromium or the packaged extension is missing",
)


@contextmanager
def editor(folder: Path) -> Iterator[str]:
    """Visual Studio Code with the extension and a folder open; the address of it."""
    command = folder / "ensue"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ensue "$@"\n')
    command.chmod(0o755)
    settings = folder / "data" / "User" / "settings.json"
    settings.parent.mkdir(parents=True)
    given = {"ensue.path": str(command), "security.workspace.trust.enabled": False}
    settings.write_text(json.dumps(given))
    places = [
        *(str(CODE_SERVER), "--user-data-dir", str(folder / "data")),
        *("--extensions-dir", str(folder / "extensions")),
    ]
    environment = {**os.environ, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "config")}
    subprocess.run(
        [*places, "--install-extension", str(PACKAGE)],
        env=environment, check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    said = folder / "said.txt"
    with said.open("w") as file:
        process = subprocess.Popen(
            [*places, "--auth", "none", "--bind-addr", "127.0.0.1:0", "--disable-telemetry",
             "--disable-update-check"],
            env=environment, stdout=file, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        begun = time.monotonic()
        while "http://" not in said.read_text():
            assert process.poll() is None, said.read_text()
            assert time.monotonic() - begun < 60, said.read_text()
            time.sleep(0.1)
        yield "http://" + said.read_text().partition("http://")[2].split()[0]
    finally:
        process.terminate()
        process.wait(30)


def text_of(page: Page) -> str:
    lines: str = page.evaluate(
        "[...document.querySelectorAll('.view-line')]"
        ".sort((a, b) => parseInt(a.style.top) - parseInt(b.style.top))"
        ".map(each => each.textContent.replaceAll('\\u00a0', ' ')).join('\\n')"
    )
    return lines


def go_to(page: Page, before: str, word: str) -> None:
    """Put the cursor into a word, behind what stands before it."""
    text = text_of(page)
    place = text.index(before + word) + len(before) + 1
    line = text.count("\n", 0, place) + 1
    column = place - text.rfind("\n", 0, place)
    page.keyboard.press("Control+g")
    page.locator(".quick-input-box input[type=text]").first.fill(f":{line}:{column}")
    page.keyboard.press("Enter")
    expect(page.locator("[id='status.editor.selection']")).to_contain_text(
        f"Ln {line}, Col {column}"
    )


def run(page: Page, command: str) -> None:
    page.keyboard.press("F1")
    page.locator(".quick-input-box input[type=text]").first.fill(f">{command}")
    page.locator(".quick-input-list .monaco-list-row", has_text=command).first.click()


def test_a_library_is_written_in_visual_studio_code(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "rules.cor").write_text(TYPES + RULES.replace("; good", ";   goood"))
    with editor(tmp_path) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(30_000)
        page.goto(f"{url.rstrip('/')}/?folder={project}")
        page.get_by_role("treeitem", name="rules.cor").dblclick()
        expect(page.locator(".squiggly-error")).to_be_visible(timeout=SECONDS)
        expect(page.locator("[id='status.editor.mode']")).to_contain_text("Ensue")

        go_to(page, ";   ", "goood")
        page.keyboard.press("Delete")
        expect(page.locator(".squiggly-error")).to_have_count(0, timeout=SECONDS)

        go_to(page, "Alarm correlation ", "Guessed")
        run(page, "Show or Focus Hover")
        expect(page.locator(".monaco-hover-content").first).to_contain_text("3 times, then")
        page.keyboard.press("Escape")

        go_to(page, "(", "Failed")
        run(page, "Go to Definition")
        expect(page.locator("[id='status.editor.selection']")).to_contain_text("Ln 2, Col 11")

        go_to(page, "user = good.", "user")
        run(page, "Trigger Suggest")
        row = page.locator(".suggest-widget .monaco-list-row", has_text="string, of Login")
        expect(row).to_be_visible(timeout=SECONDS)
        page.keyboard.press("Escape")

        go_to(page, "Failed ", "bad")
        run(page, "Rename Symbol")
        page.locator(".rename-box input").fill("wrong")
        page.keyboard.press("Enter")
        expect(page.locator(".view-lines")).to_contain_text("few:wrong{3}", timeout=SECONDS)

        run(page, "Format Document")
        page.wait_for_function(
            "[...document.querySelectorAll('.view-line')].every("
            "each => !each.textContent.replaceAll('\\u00a0', ' ').includes(';   good'))"
        )
        assert "few:wrong{3} ; good" in text_of(page)
        browser.close()
