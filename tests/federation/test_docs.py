"""The pages on federation are true to the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from ensue.federation.adapters import KINDS, adapter_class, capabilities
from ensue.federation.configuration import (
    GATEWAY_KEYS,
    MAP_KEYS,
    SERVICE_KEYS,
    SITE_KEYS,
    SUBSCRIBE_KEYS,
)
from ensue.federation.messages.attributes import KNOWN
from ensue.federation.placement import sites

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "federation.md").read_text("utf-8")


def test_the_table_of_kinds_is_that_of_the_code() -> None:
    assert capabilities.table() in PAGE


@pytest.mark.parametrize("key", [*GATEWAY_KEYS, *SERVICE_KEYS, *SUBSCRIBE_KEYS, *MAP_KEYS])
def test_every_key_is_on_the_page(key: str) -> None:
    assert f"`{key}`" in PAGE


@pytest.mark.parametrize("key", [*SITE_KEYS, *sites.SITE_KEYS, *sites.PLACE_KEYS])
def test_every_key_of_sites_is_on_their_page(key: str) -> None:
    assert f"`{key}`" in (DOCS / "placement.md").read_text("utf-8")


@pytest.mark.parametrize("attribute", KNOWN)
def test_every_attribute_is_on_the_page(attribute: str) -> None:
    assert f"`{attribute}`" in PAGE


@pytest.mark.parametrize("kind", [each for each in KINDS if each != "memory"])
def test_every_kind_has_a_page_with_all_its_keys(kind: str) -> None:
    page = (DOCS / "adapters" / f"{KINDS[kind][0]}.md").read_text("utf-8")
    keys = adapter_class(kind).options_type.__struct_fields__

    assert [each for each in keys if f"`{each}`" not in page] == []
    assert f'"{kind}"' in page
