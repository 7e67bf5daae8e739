"""The language server in an editor that people use: Neovim and its own client, without a screen."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ensue
from tests.editor.test_server import RULES, TYPES
from tests.servers.programs import skip_as_missing

STORY = Path(__file__).parent / "neovim.lua"


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the editor showed on the way through `neovim.lua`."""
    command = shutil.which("nvim")
    if command is None:
        skip_as_missing("Neovim is not installed")
    folder = tmp_path_factory.mktemp("neovim")
    file = folder / "rules.cor"
    file.write_text(TYPES + RULES.replace("; good", ";   goood"), "utf-8")
    result = folder / "seen.json"
    environment = {
        **os.environ,
        "ENSUE_LSP": json.dumps([sys.executable, "-m", "ensue", "lsp"]),
        "ENSUE_FILE": str(file),
        "ENSUE_SEEN": str(result),
        # Nothing of the person's own editor.
        "HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder),
        "XDG_STATE_HOME": str(folder),
        "XDG_DATA_HOME": str(folder),
        "XDG_CACHE_HOME": str(folder),
    }
    done = subprocess.run(
        [command, "--headless", "-u", "NONE", "-i", "NONE", "-n", "-S", str(STORY)],
        env=environment, capture_output=True, text=True, timeout=180, cwd=folder,
    )  # fmt: skip
    assert result.exists(), done.stderr
    found = json.loads(result.read_text("utf-8"))
    assert "problem" not in found, f"{found['problem']}\n{done.stderr}"
    return found


def test_a_mistake_is_shown_at_its_line(seen: Any) -> None:
    assert seen["diagnostic"]["code"] == "unknown-port"
    assert seen["diagnostic"]["line"] == 6
    assert "goood" in seen["diagnostic"]["message"]


def test_attributes_are_offered_behind_a_port(seen: Any) -> None:
    assert {"user", "host.name"} <= set(seen["completion"])


def test_a_rule_is_explained_where_the_cursor_stands(seen: Any) -> None:
    assert "`bad` 3 times, then `good`" in seen["hover"]


def test_the_cursor_jumps_to_the_definition(seen: Any) -> None:
    assert seen["definition"].startswith("eventtype Failed : Login")


def test_a_port_is_renamed_wherever_it_stands(seen: Any) -> None:
    renamed = seen["renamed"]

    assert "Failed wrong where tries > 1" in renamed
    assert "few:wrong{3}" in renamed
    assert " bad" not in renamed


def test_the_text_is_laid_out_as_the_command_does(seen: Any) -> None:
    assert ";   good" in seen["renamed"]
    assert ";   good" not in seen["formatted"]
    assert ensue.parse(seen["formatted"]).warnings == ()
