"""Modules of a room do not import each other in circles, also where only types are imported."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

import grimp
import pytest

ROOMS = (
    "ensue.brokers",
    "ensue.channel",
    "ensue.cli",
    "ensue.engine",
    "ensue.events",
    "ensue.knowledge",
    "ensue.spark",
    "ensue.subscriptions",
)


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("ensue", exclude_type_checking_imports=False, cache_dir=None)


@pytest.mark.parametrize("room", ROOMS)
def test_no_modules_import_each_other_in_a_circle(room: str, graph: grimp.ImportGraph) -> None:
    modules = {each for each in graph.modules if each.startswith(f"{room}.")}
    imports = {
        each: graph.find_modules_directly_imported_by(each) & modules for each in sorted(modules)
    }
    try:
        order = list(TopologicalSorter(imports).static_order())
    except CycleError as error:
        pytest.fail(f"modules import each other in a circle: {' <- '.join(error.args[1])}")

    assert len(order) == len(modules)
