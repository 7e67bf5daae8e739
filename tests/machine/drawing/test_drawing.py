"""Drawings show every state and transition of a machine, and are well formed."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from ensue.errors import LimitError
from ensue.machine.drawing import to_dot, to_json, to_mermaid, to_svg
from ensue.machine.drawing.graph import graph_of
from ensue.machine.model import Machine
from ensue.machine.plan import plan
from tests.machine.runs import ecl_of, filter_of, golden_correlations

SVG = "{http://www.w3.org/2000/svg}"


def machine_of(correlation: object) -> Machine:
    machine = plan(correlation).machine  # type: ignore[arg-type]
    assert machine is not None
    return machine


PAIR = machine_of(filter_of("l1:(a + b) | l2:c"))


def test_a_box_that_needs_several_states_is_shaded_and_one_that_needs_any_is_not() -> None:
    boxes = graph_of(PAIR).boxes

    assert [(box.lines, box.is_shaded) for box in boxes] == [
        (("a", "bind a"), False),
        (("b", "bind b"), False),
        ((), True),
        (("c", "bind c"), False),
        (("fire",), False),
    ]


def test_circles_say_which_label_is_active_and_which_port_is_bound() -> None:
    notes = {circle.text: circle.notes for circle in graph_of(PAIR).circles}

    assert notes["a + b"] == ("label l1",)
    assert notes["c"] == ("label l2", "c is bound")


def test_what_follows_stands_in_a_later_column() -> None:
    graph = graph_of(machine_of(ecl_of("repeat { notify { sequential { a, b } } }")))

    assert graph.steps == {"s0": 0, "t0": 1, "s1": 2, "t1": 3}


def test_json_holds_every_set() -> None:
    drawn = json.loads(to_json(PAIR, correlation="C"))

    assert drawn["correlation"] == "C"
    assert [each["name"] for each in drawn["states"]] == list(PAIR.names)
    fire = drawn["transitions"][-1]
    assert fire["kind"] == "internal"
    assert fire["output"] == "fire"
    assert set(fire["clear"]) == set(range(1, len(PAIR.names)))


def test_mermaid_draws_arrows_and_escapes_signs() -> None:
    drawn = to_mermaid(machine_of(ecl_of("notify { < v > 3 AND v < 5 > }")))

    assert drawn.startswith("flowchart LR\n")
    assert "#lt; v #gt; 3 AND v #lt; 5 #gt;" in drawn
    assert "s0 --> t0" in drawn


def test_dot_escapes_quotes() -> None:
    drawn = to_dot(machine_of(ecl_of('notify { < source = "x" > }')), 'a "name"')

    assert drawn.startswith('digraph "a \\"name\\"" {')
    assert drawn.count("{") == drawn.count("}")


def test_every_golden_machine_is_drawn_as_well_formed_svg() -> None:
    """Each state is a circle (two where it is active at the start), each transition a box."""
    for correlation in golden_correlations():
        machine = plan(correlation).machine
        if machine is None:
            continue
        root = ElementTree.fromstring(to_svg(machine, correlation.name))
        graph = graph_of(machine)

        circles = len(graph.circles) + sum(circle.is_initial for circle in graph.circles)
        assert len(root.findall(f".//{SVG}circle")) == circles
        assert len(root.findall(f".//{SVG}g/{SVG}g/{SVG}rect")) == len(machine.transitions)


def test_no_two_nodes_of_a_column_overlap() -> None:
    root = ElementTree.fromstring(to_svg(machine_of(filter_of("a + b + c"))))
    boxes = [
        (float(each.attrib["x"]), float(each.attrib["y"]), float(each.attrib["height"]))
        for each in root.findall(f".//{SVG}g/{SVG}g/{SVG}rect")
    ]

    for x, y, height in boxes:
        for other_x, other_y, _ in boxes:
            assert (x, y) == (other_x, other_y) or x != other_x or abs(y - other_y) >= height


def test_states_that_stand_for_equal_parts_are_told_apart_by_their_names() -> None:
    machine = plan(ecl_of("notify { sequential { a, a, b } }")).needed_machine

    assert machine.names.count("wait a") == 2
    assert {"wait a", "wait a (2)", "wait b"} <= {*machine.distinct_names}
    assert len({*machine.distinct_names}) == len(machine.names)


def test_a_notebook_shows_a_plan_as_its_machine_if_it_has_one() -> None:
    drawn = plan(filter_of("l1:(a + b) | l2:c"))
    from_memory = plan(filter_of("a ; b having count(a) > 1"))

    assert drawn._repr_svg_() == to_svg(drawn.needed_machine, drawn.correlation.name)
    assert from_memory._repr_svg_() is None


def test_a_machine_that_is_too_large_for_a_picture_is_refused_with_what_to_ask_for() -> None:
    found = plan(filter_of("a{20000}", clauses="within 5 s"))

    with pytest.raises(LimitError, match=r"`drawn_states`: there are 20,.*write it as `json`"):
        to_svg(found.needed_machine)
    assert found._repr_svg_() is None
