"""axe-core, which finds what shuts people out of a page: run over a page as it stands.

`package.json` pins it. The first use installs it beside this file with npm, which compares it with
the lock file; nothing of it is in a package of Ensue.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

FOLDER = Path(__file__).parent
RUN = """async () => {
    const found = await axe.run(document, { resultTypes: ["violations"] });
    return found.violations.flatMap((each) => each.nodes.map((node) =>
        `${each.id}: ${node.html.slice(0, 160)}: ${node.failureSummary}`));
}"""


@cache
def _source() -> str:
    file = FOLDER / "node_modules" / "axe-core" / "axe.min.js"
    npm = shutil.which("npm")
    if not file.exists() and npm is not None:
        command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        subprocess.run(command, cwd=FOLDER, capture_output=True, timeout=300, check=False)
    if not file.exists() and os.environ.get("CI") != "true":
        pytest.skip("axe-core cannot be installed: npm is missing, or has no way to its registry")
    return file.read_text()


def findings(page: Page) -> list[Any]:
    """What shuts somebody out of the page as it stands; each with its element and what to do."""
    # What still appears has colours in between.
    page.evaluate("document.getAnimations().forEach((each) => each.finish())")
    if not page.evaluate("typeof axe === 'object'"):
        page.evaluate(_source())
    found: list[Any] = page.evaluate(RUN)
    return found
