"""Two claims of the paper on two-phase correlation, held by comparison.

Its section 5.4 writes modes with labels, abort and revive; its section 4.4.2 writes do-unless with
two labels. Both can be had, and these tests say with what care.
"""

from __future__ import annotations

import pytest

from . import rules

PORTS = "A a, B b, C g1, D g2"
BODIES = (
    "in (g1) do { repeat { notify { sequential { a, b } } } }"
    " in (g2) do { repeat { notify { sequential { b, a } } } }"
)
MODES = f"ecl modes {{ {BODIES} }}"
IDLE_MODES = f"ecl modes {{ in (false) do {{ false }} {BODIES} }}"


def simulation(
    first: str, *, fresh: bool, guards_first: bool = False, guards: str = "l1:g1 | l2:g2"
) -> str:
    """The paper's filter. `fresh` is its own way: entering a mode aborts that mode as well."""
    enter = (
        "case l1: abort(m1, m2); revive(m1); case l2: abort(m1, m2); revive(m2);"
        if fresh
        else "case l1: abort(m2); revive(m1); case l2: abort(m1); revive(m2);"
    )
    branches = ["m1:(a ; b) | m2:(b ; a)", guards]
    filter_ = " || ".join(reversed(branches) if guards_first else branches)
    return f"{filter_} => {{ abort({first}); {enter} case m1 | m2: push new Out {{}}; }}"


def relation(first: str, second: str, ports: str = PORTS) -> str:
    library = rules.library(first, second, ports)
    found = rules.compare_in(library)
    rules.verify(library, found)
    return found.relation


def test_the_simulation_as_printed_has_no_first_mode() -> None:
    assert relation(MODES, simulation("m1, m2", fresh=True)) == "contains"


def test_with_a_first_mode_it_still_forgets_when_the_mode_is_entered_again() -> None:
    assert relation(MODES, simulation("m2", fresh=True)) == "contains"


def test_entering_a_mode_that_is_entered_must_change_nothing() -> None:
    assert relation(MODES, simulation("m2", fresh=False)) == "equivalent"


def test_without_a_first_mode_it_simulates_modes_whose_first_one_is_idle() -> None:
    assert relation(IDLE_MODES, simulation("m1, m2", fresh=True)) == "contains"
    assert relation(IDLE_MODES, simulation("m1, m2", fresh=False)) == "equivalent"


def test_bodies_of_one_event_cannot_be_forgotten_half_way() -> None:
    modes = "ecl modes { in (g1) do { repeat { notify { a } } }" + (
        " in (g2) do { repeat { notify { b } } } }"
    )
    simulated = simulation("m2", fresh=True).replace("(a ; b)", "a").replace("(b ; a)", "b")

    assert relation(modes, simulated) == "equivalent"


def test_a_guard_that_completes_the_body_is_seen_by_both_unless_guards_stand_first() -> None:
    overlapping = "A a, B b, C g1, B g2 where V > 5"

    assert relation(MODES, simulation("m2", fresh=False), overlapping) == "contained"
    assert (
        relation(MODES, simulation("m2", fresh=False, guards_first=True), overlapping)
        == "equivalent"
    )


def test_longer_guards_need_the_guard_of_the_current_mode_aborted() -> None:
    modes = (
        "ecl modes { in (sequential { g1, g1 }) do { repeat { notify { a } } }"
        " in (sequential { g2, g2 }) do { repeat { notify { b } } } }"
    )
    guards = "m1:a | m2:b || l1:(g1 ; g1) | l2:(g2 ; g2)"
    push = "case m1 | m2: push new Out {};"
    always = (
        f"{guards} => {{ abort(m2); case l1: abort(m2); revive(m1);"
        f" case l2: abort(m1); revive(m2); {push} }}"
    )
    others = (
        f"{guards} => {{ abort(m2, l1); case l1: abort(m2, l1); revive(m1, l2);"
        f" case l2: abort(m1, l2); revive(m2, l1); {push} }}"
    )

    assert relation(modes, always) == "different"
    assert relation(modes, others) == "equivalent"


@pytest.mark.parametrize(
    ("body", "as_ecl"),
    [("a", "a"), ("a ; b", "sequential { a, b }"), ("a + b", "accumulate { a, b }")],
)
@pytest.mark.parametrize(
    ("stop", "stop_as_ecl"),
    [("c", "c"), ("c ; d", "sequential { c, d }"), ("c + a", "accumulate { c, a }")],
)
def test_do_unless_is_two_labels_of_which_one_is_ignored(
    body: str, as_ecl: str, stop: str, stop_as_ecl: str
) -> None:
    labels = f"l1:({body}) | l2:({stop}) => {{ case l1: push new Out {{}}; }}"
    do_unless = f"ecl repeat {{ notify {{ do {{ {as_ecl} }} unless {{ {stop_as_ecl} }} }} }}"

    assert relation(labels, do_unless, rules.PORTS) == "equivalent"


def test_when_one_event_completes_both_the_label_alone_is_do_unless() -> None:
    overlapping = "A a, Base b, Base c where V > 5, D d"
    do_unless = "ecl repeat { notify { do { sequential { a, b } } unless { c } } }"

    alone = "l1:(a ; b) | l2:c => { case l1: push new Out {}; }"
    stricter = "l1:(a ; b) | l2:c => { case l1 & !l2: push new Out {}; }"

    assert relation(alone, do_unless, overlapping) == "equivalent"
    assert relation(stricter, do_unless, overlapping) == "contained"


def test_do_unless_that_is_not_repeated_is_over_once_it_was_interrupted() -> None:
    once = "ecl notify { do { sequential { a, b } } unless { c } }"
    labels = "l1:(a ; b) | l2:c => { case l1: push new Out {}; }"
    over = "l1:(a ; b) | l2:c => { case l1: push new Out {}; case true: abort(l1, l2); }"

    assert relation(labels, once, rules.PORTS) == "contains"
    assert relation(over, once, rules.PORTS) == "equivalent"
