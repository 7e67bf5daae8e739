"""Links of the pages outside the site lead somewhere; those inside it are checked by mkdocs."""

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
