"""The extension for Visual Studio Code: what its files name is there, and fits the language."""

from __future__ import annotations

import json
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


def test_the_grammar_colours_as_its_cases_say() -> None:
    if shutil.which("node") is None or not (FOLDER / "node_modules").is_dir():
        pytest.skip("needs Node.js, and `npm ci` in editors/vscode")

    run = subprocess.run(["npm", "test"], cwd=FOLDER, capture_output=True, text=True, timeout=300)

    assert run.returncode == 0, run.stdout + run.stderr
