"""The pages that an assistant reads: the language's reference and the cookbook.

They come with the package; in a checkout they are the pages of the documentation themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

PAGES: Mapping[str, tuple[str, str]] = {
    "language": ("The language", "Reference of the library language, with worked cases."),
    "cookbook": ("Cookbook", "Rules to copy, each with events and what comes of them."),
    "coming-from": (
        "Coming from other systems",
        "How rules of Flink CEP, SQL, Esper, EQL and Sigma are written here.",
    ),
}


def page(name: str) -> str:
    """The Markdown of a page."""
    packaged = files("ensue.assistants").joinpath("pages", f"{name}.md")
    if packaged.is_file():
        return packaged.read_text("utf-8")
    return (Path(__file__).parents[3] / "docs" / f"{name}.md").read_text("utf-8")
