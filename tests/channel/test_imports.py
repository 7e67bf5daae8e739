"""The channel's modules import each other in one direction, also where only types are imported."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

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
    "realtime | callbacks",
)
"""Folders and modules of the room: each imports only from lines below its own."""


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("ensue", exclude_type_checking_imports=False, cache_dir=None)


def test_no_modules_import_each_other_in_a_circle(graph: grimp.ImportGraph) -> None:
    modules = {each for each in graph.modules if each.startswith(f"{ROOM}.")}
    imports = {
        each: graph.find_modules_directly_imported_by(each) & modules for each in sorted(modules)
    }
    try:
        order = list(TopologicalSorter(imports).static_order())
    except CycleError as error:
        pytest.fail(f"modules import each other in a circle: {' <- '.join(error.args[1])}")

    assert len(order) == len(modules)


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
