"""Draws the pictures of docs/machine.md from the rules beside it: python docs/pictures/draw.py"""

from __future__ import annotations

from pathlib import Path

import ensue
from ensue.machine.drawing import to_svg
from ensue.machine.plan import plan

FOLDER = Path(__file__).parent


def pictures() -> dict[str, str]:
    """The name of each file, and its text."""
    library = ensue.load(FOLDER / "rules.cor")
    display = plan(library.correlations["NavigationDisplay"])
    match = plan(library.correlations["DoubleMatch"])
    assert display.built is not None
    assert display.machine is not None
    assert match.machine is not None
    return {
        "navigation-display-built.svg": to_svg(display.built, "NavigationDisplay, as built"),
        "navigation-display.svg": to_svg(display.machine, "NavigationDisplay, optimised"),
        "double-match.svg": to_svg(match.machine, "DoubleMatch, optimised"),
    }


if __name__ == "__main__":
    for name, text in pictures().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
