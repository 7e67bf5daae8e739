"""Links of the pages outside the site lead somewhere, and every page inside it can be found.

Links inside the site, and entries of its navigation that lead nowhere, are checked by mkdocs.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .pages import ROOT

PAGES = sorted(ROOT.glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_every_link_leads_to_a_file_of_the_repository(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text("utf-8"))

    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_every_page_of_the_site_is_in_its_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8").split("\nnav:\n", 1)[1]
    folder = ROOT / "docs"
    pages = [path.relative_to(folder).as_posix() for path in folder.rglob("*.md")]

    assert [
        page for page in pages if not re.search(rf"[ :]{re.escape(page)}$", navigation, re.M)
    ] == []
