"""The pictures of the documentation are what the machines look like now."""

from __future__ import annotations

import runpy

from tests.machine.runs import ROOT

FOLDER = ROOT / "docs" / "pictures"


def test_the_committed_pictures_are_up_to_date() -> None:
    """If this fails: python docs/pictures/draw.py, and look at what has changed."""
    drawn = runpy.run_path(str(FOLDER / "draw.py"))["pictures"]()

    for name, text in drawn.items():
        assert (FOLDER / name).read_text(encoding="utf-8") == text, name
    assert {file.name for file in FOLDER.glob("*.svg")} == set(drawn)
