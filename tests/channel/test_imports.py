"""The folders of the channel import each other in one direction, also where only types are."""

from __future__ import annotations

import grimp
import pytest

ROOM = "ensue.channel"
LAYERS = (
    "builder",
    "channel",
    "parts | toml_config | asyncio_api | closing | suppliers",
    "links | dispatch | consumers",
    "delivery",
    "lookup | figures",
    "policies",
    "timing",
    "realtime | callbacks | scheduling",
)
"""Folders and modules of the room: each imports only from lines below its own."""


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("ensue", exclude_type_checking_imports=False, cache_dir=None)


def test_folders_import_only_from_those_below(graph: grimp.ImportGraph) -> None:
    layers = [
        grimp.Layer(*(f"{ROOM}.{each}" for each in line.split(" | ")), independent=False)
        for line in LAYERS
    ]
    found = graph.find_illegal_dependencies_for_layers(layers=layers)

    assert not found, sorted((each.importer, each.imported) for each in found)


def test_every_folder_and_module_has_its_layer(graph: grimp.ImportGraph) -> None:
    named = {each for line in LAYERS for each in line.split(" | ")}

    assert {each.removeprefix(f"{ROOM}.") for each in graph.find_children(ROOM)} == named
