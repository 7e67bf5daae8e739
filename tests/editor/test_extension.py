"""The extension for Visual Studio Code: what its files name is there, and fits the language."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import ensue
from ensue.editor.vocabulary import words_of

FOLDER = Path(__file__).parents[2] / "editors" / "vscode"
ECL = "Rule: ECL"
TYPES = "eventtype Type { attribute string key; };\neventtype Output { attribute string key; };\n"


def _json(name: str) -> Any:
    return json.loads((FOLDER / name).read_text("utf-8"))


def test_every_file_that_the_manifest_names_is_there() -> None:
    contributes = _json("package.json")["contributes"]
    named = [
        *(each["configuration"] for each in contributes["languages"]),
        *(each["path"] for each in contributes["grammars"] + contributes["snippets"]),
    ]

    assert [each for each in named if not (FOLDER / each).is_file()] == []


def test_the_grammar_knows_every_word_of_the_language() -> None:
    patterns = (FOLDER / "syntaxes" / "ensue.tmLanguage.json").read_text("utf-8").lower()
    words = {word.lower() for each in words_of().values() for word in each}
    # Written as two words, and as a call.
    words -= {"not between", "ontprop", "select*"}

    # In a pattern, a `b` of `\\b` may stand right before the word.
    missing = [each for each in words if not re.search(rf"(?<![a-z_])b?{each}(?![a-z_])", patterns)]

    assert sorted(missing) == []


@pytest.mark.parametrize("name", _json("snippets/ensue.json").keys())
def test_a_snippet_expands_to_a_library_that_checks(name: str) -> None:
    body = "\n".join(_json("snippets/ensue.json")[name]["body"])
    choices = re.sub(r"\$\{\d+\|([^,|]*)[^|]*\|\}", r"\1", body)
    text = re.sub(r"\$\{\d+:([^}]*)\}", r"\1", choices)

    types = TYPES.replace("Output { attribute string key; }", "Output {}") if name == ECL else TYPES
    library = ensue.parse(types + text)

    assert library.warnings == ()


def _tools() -> Path:
    """The folder with the packages of the extension's lock file, installed once for each lock."""
    if shutil.which("npm") is None:
        pytest.skip("there is no npm: `tests/servers/install.sh` installs it on Debian")
    lock = (FOLDER / "package-lock.json").read_bytes()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "ensue" / f"vscode-{hashlib.sha256(lock).hexdigest()[:16]}"
    if not (folder / "installed").exists():
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(FOLDER / name, folder / name)
        # Nothing that the tests need is built when it is installed.
        command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
        if run.returncode != 0:
            pytest.skip(f"the packages of the extension cannot be had: {run.stderr[-300:]}")
        (folder / "installed").touch()
    return folder / "node_modules" / ".bin"


def test_the_grammar_colours_as_its_cases_say() -> None:
    command = [str(_tools() / "vscode-tmgrammar-test"), "tests/*.cor"]
    run = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, timeout=300)

    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.count("run success") == len(list((FOLDER / "tests").glob("*.cor")))


def test_the_extension_compiles(tmp_path: Path) -> None:
    tools = _tools()
    shutil.copytree(FOLDER / "src", tmp_path / "src")
    shutil.copy(FOLDER / "tsconfig.json", tmp_path)
    (tmp_path / "node_modules").symlink_to(tools.parent)
    run = subprocess.run(
        [tools / "tsc", "-p", ".", "--noEmit"], cwd=tmp_path, capture_output=True, text=True
    )

    assert run.returncode == 0, run.stdout + run.stderr


def test_the_extension_reads_the_settings_that_it_declares() -> None:
    declared = _json("package.json")["contributes"]["configuration"]["properties"]
    text = (FOLDER / "src" / "extension.ts").read_text("utf-8")
    read = set(re.findall(r'settings\.get<[^(]*>\("(\w+)"\)', text))

    # The client's library reads what is traced.
    assert {f"ensue.{each}" for each in read} == declared.keys() - {"ensue.trace.server"}
    assert 'commands.registerCommand("ensue.restart"' in text
