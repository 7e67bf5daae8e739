"""Outputs of one statement are made at once, whichever ports are bound."""

from __future__ import annotations

import ensue
from ensue.engine.batch import BatchEngine
from ensue.engine.batch.output.remembered import bundles_of
from ensue.engine.core.effects import Action, PushedOutput, Sent, TriggerShape
from tests.engine.random_rules import TYPES, reading


def sent(labels: str = "", **places: tuple[int, ...]) -> PushedOutput:
    return PushedOutput(TriggerShape(labels, tuple(places.items())), Sent("a"))


def test_actions_that_bind_different_ports_at_the_same_places_are_one_bundle() -> None:
    table: list[Action] = [(), (sent(a=(0,)),), (sent(a=(0,), b=(1,)),), (sent(a=(0,), c=(2,)),)]
    (bundle,) = bundles_of(table, [1, 2, 3])

    assert bundle.slots == {"a": (0,), "b": (1,), "c": (2,)}
    assert bundle.without("a") is None
    lacks = [bundle.without(port) for port in "bc"]
    assert [each.tolist()[1:] for each in lacks if each is not None] == [
        [True, False, True],
        [True, True, False],
    ]


def test_what_differs_in_labels_places_or_turn_is_made_apart() -> None:
    table: list[Action] = [
        (),
        (sent(a=(0,)), sent(a=(0,))),
        (sent("l", a=(0,)),),
        (sent(a=(0, 1)),),
    ]
    bundles = bundles_of(table, [1, 2, 3])

    assert [(b.labels, b.offset, b.slots["a"]) for b in bundles] == [
        ("", 0, (0,)),
        ("", 0, (0, 1)),
        ("", 1, (0,)),
        ("l", 0, (0,)),
    ]


def test_an_action_without_a_bound_event_is_made_apart() -> None:
    table: list[Action] = [(), (sent(),), (sent(a=(0,)),), (sent(), sent("l"))]

    assert [list(bundle.bound_in) for bundle in bundles_of(table, [1, 2, 3])] == [[1, 3], [2], [3]]


def test_a_port_that_is_not_bound_is_null_and_no_cause() -> None:
    library = ensue.parse(
        TYPES + "Found correlation R (U a, V b, T c where n = 9) (a | b) ; c"
        " { case true: push new Found { first = a.n, last = b.n }; }"
    )
    steps = [("U", 1), ("T", 9), ("V", 2), ("T", 9), ("U", 3), ("V", 4), ("T", 9)]
    given = [reading(f"e{i}", kind, i, "x", n) for i, (kind, n) in enumerate(steps)]
    made = BatchEngine(library.checked).read_all(given)

    assert [(each.data, each.extensions["causes"]) for each in made] == [
        ({"first": 1, "last": None}, "e0,e1"),
        ({"first": None, "last": 2}, "e2,e3"),
        ({"first": 3, "last": 4}, "e4,e5,e6"),
    ]
