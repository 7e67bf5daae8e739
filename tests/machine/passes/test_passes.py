"""What each pass leaves of a machine."""

from __future__ import annotations

from ensue.machine.building.from_filter import machine_of_filter
from ensue.machine.model import Emit, Fire, Machine
from ensue.machine.passes import (
    drop_unreachable,
    drop_useless,
    inline_derived,
    merge_handovers,
    optimise,
    renumber,
)
from ensue.machine.plan import plan
from tests.machine.runs import (
    ecl_of,
    filter_of,
    golden_correlations,
    log,
    moments,
    random_correlations,
)


def built(correlation: object) -> Machine:
    machine = plan(correlation).built  # type: ignore[arg-type]
    assert machine is not None
    return machine


def test_failure_of_what_cannot_fail_is_dropped() -> None:
    """Ports never fail, so nothing above them has a failure transition left."""
    machine = drop_unreachable(built(ecl_of("repeat { notify { accumulate { a, b } } }")))

    looked_at = set().union(*(s for t in machine.transitions for s in t.enabling))
    assert not [machine.names[state] for state in looked_at if machine.names[state].endswith("✗")]
    assert len(machine.transitions) == 5


def test_failure_that_can_happen_stays() -> None:
    machine = drop_unreachable(built(ecl_of("notify { fail { fail { a } } }")))

    assert [t.effect for t in machine.transitions if t.effect] == [Emit(None)]


def test_an_expression_that_waits_for_nothing_more_has_no_state_left() -> None:
    """The success of the top expression is looked at by nobody."""
    machine = optimise(built(ecl_of("notify { a }")))

    assert machine.names == ("wait a",)
    (only,) = machine.transitions
    assert only.effect == Emit(None)
    assert not only.target


def test_what_cannot_put_anything_out_disappears() -> None:
    machine = drop_useless(built(ecl_of("parallel { notify { a }, accumulate { b, c } }")))

    read = {machine.atoms[t.input] for t in machine.transitions if isinstance(t.input, int)}
    assert [str(atom) for atom in read] == ["PortAtom(name='a')"]


def test_a_round_is_one_transition_for_each_of_its_events() -> None:
    """All that success hands over on its way out is merged into what completes."""
    machine = optimise(built(ecl_of("repeat { notify { accumulate { a, b } } }")))

    assert len(machine.transitions) == 3
    internal = [t for t in machine.transitions if t.input is None]
    assert [t.effect for t in internal] == [Emit(None)]
    assert internal[0].target == machine.initial


def test_sequences_lead_from_event_to_event() -> None:
    machine = optimise(built(ecl_of("repeat { notify { sequential { a, b, c } } }")))

    assert len(machine.names) == 3
    assert all(t.input is not None for t in machine.transitions)


def test_handing_over_is_merged_only_where_nothing_stands_in_between() -> None:
    """`a` both completes the first part and is waited for by the second output."""
    machine = built(ecl_of("repeat { select { notify { a }, notify { a } } }"))

    merged = merge_handovers(machine)

    assert len(merged.transitions) < len(machine.transitions)
    assert len([t for t in merged.transitions if t.effect]) == 2


def test_a_choice_at_the_top_fires_by_itself() -> None:
    """No state says that one of them is complete: the branch looks at both."""
    machine = optimise(built(filter_of("a | b")))

    (fire,) = [t for t in machine.transitions if isinstance(t.effect, Fire)]
    assert [len(states) for states in fire.enabling] == [2]
    assert len([t for t in machine.transitions if t.input is None]) == 1


def test_a_conjunction_at_the_top_needs_each_of_its_parts() -> None:
    machine = inline_derived(built(filter_of("a + b + c")))

    (fire,) = [t for t in machine.transitions if isinstance(t.effect, Fire)]
    assert [len(states) for states in fire.enabling] == [1, 1, 1]


def test_what_a_label_says_is_not_inlined() -> None:
    machine = inline_derived(built(filter_of("l1:(a + b) | l2:c")))

    assert len([t for t in machine.transitions if t.input is None]) == 2


def test_equal_subexpressions_are_one() -> None:
    """`a + b` is built once, and both chains begin with it."""
    shared = built(filter_of("((a + b) ; c) | ((a + b) ; a)"))
    alone = built(filter_of("(a + b) ; c"))

    assert sum(t.input is not None for t in shared.transitions) == 4
    assert sum(t.input is not None for t in alone.transitions) == 3


def test_a_place_that_another_covers_is_none() -> None:
    """Whatever a later `a` could be bound to, the first one is bound to as well."""
    machine = built(filter_of("a ; b ; a ; b"))

    assert [port for _, port, _ in machine.branches[0].places] == ["a", "b"]


def test_numbers_have_no_gaps_and_start_with_the_initial_states() -> None:
    machine = renumber(drop_useless(built(ecl_of("sequential { notify { a }, b }"))))

    assert machine.initial == {0}
    used = set().union(*(s for t in machine.transitions for s in (*t.enabling, t.target)))
    assert used == set(range(len(machine.names)))
    assert len(machine.atoms) == 1


def test_a_long_chain_has_few_active_states() -> None:
    machine = machine_of_filter(filter_of(" ; ".join(["a", "b"] * 20)))  # type: ignore[arg-type]
    optimised = optimise(machine)

    assert len(optimised.transitions) < 45
    assert len(optimised.branches[0].places) == 2


def test_most_random_machines_that_are_compared_do_something() -> None:
    """Passes that are compared on silent machines would agree whatever they did."""
    drawn = [(seed, plan(each).built) for seed, each in random_correlations(range(100))]
    drawn += [(seed, plan(each).built) for seed, each in enumerate(golden_correlations())]
    logs = [log(machine, moments(machine, seed)) for seed, machine in drawn if machine is not None]

    assert sum(map(bool, logs)) > 0.8 * len(logs)
