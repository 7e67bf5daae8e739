"""What one rule can do: by known rules, and by random ones that the reference engine runs."""

from __future__ import annotations

import msgspec
import pytest

import ensue
from ensue.library import Library
from ensue.machine.analyses.dependencies import dependencies, feeding_mermaid, feeding_text
from ensue.machine.analyses.properties import Properties, properties
from ensue.machine.analyses.witness import BEGINNING
from tests.oracle.generator import Drawing

from . import rules
from .test_random_relations import draw_pair, draw_stream, observe

RULES = 120
WORK = 300_000


def found(text: str, ports: str = rules.PORTS) -> Properties:
    library = rules.library(text, ports=ports)
    result = properties(library.correlations[0], library.checked.types)
    for answer in (result.can_put_out, result.always_puts_out, result.stuck):
        if answer.witness is not None:
            rules.confirm(library, [library.correlations[0]], answer.witness)
    return result


@pytest.mark.parametrize(
    ("text", "ports"),
    [
        ("ecl false", rules.PORTS),
        ("ecl repeat { fail { notify { false } } }", rules.PORTS),
        ("a ; b", "A a where V > 5 AND V < 3, B b"),
        ("a", "A a where S LIKE 'x%' AND S LIKE 'y%'"),
        ("a ; b => by K", "A a where K = 1, B b where K = 2"),
        ("a ; b => by source", 'A a from "x", B b from "y"'),
        ("l1:a + b => { case !l1: push new Out {}; }", rules.PORTS),
        ("l1:a => { abort(l1); case true: push new Out {}; }", rules.PORTS),
        ("ecl notify { do { timeout(5 s) } unless { t } }", "A a, every 3 s t"),
    ],
)
def test_a_rule_that_can_never_put_out_is_told(text: str, ports: str) -> None:
    assert found(text, ports).can_put_out.holds is False


@pytest.mark.parametrize(
    ("text", "length"), [("a", 1), ("a ; b ; c", 3), ("(a ; b) | c", 1), ("a{5}", 5)]
)
def test_the_shortest_way_to_an_output_is_given(text: str, length: int) -> None:
    witness = found(text).can_put_out.witness

    assert witness is not None
    assert len(witness) == length


def test_one_event_can_complete_a_sum_if_its_ports_overlap() -> None:
    witness = found("a + b", "Base a, Base b where V > 3").can_put_out.witness

    assert witness is not None
    assert [each.port_names for each in witness.moments] == [("a", "b")]


def test_an_absence_is_witnessed_by_the_clock() -> None:
    absence = "ecl sequential { a, notify { do { timeout(10 s) } unless { b } } }"
    witness = found(absence).can_put_out.witness

    assert witness is not None
    assert [(each.after, each.event is None) for each in witness.moments] == [
        (0, False),
        (10_000_000, True),
    ]


def test_a_rule_that_puts_out_at_everything_is_told_by_what_its_ports_imply() -> None:
    all_of_them = "Base a, Base b where NOT EXISTS V OR V > 3 OR V <= 3"

    assert found("a + b", all_of_them).always_puts_out.holds
    assert found("a | b").always_puts_out.holds is False


def test_a_rule_can_get_stuck_by_failing_or_by_aborting() -> None:
    failing = found("ecl loop { notify { do { a } unless { b } } }")
    aborting = found("l1:a || l2:b => { case l2: abort(l1); case l1: push new Out {}; }")

    assert (failing.stuck.holds, failing.keeps_on) == (True, True)
    assert (aborting.stuck.holds, aborting.keeps_on) == (True, True)


def test_a_rule_that_starts_again_cannot_get_stuck() -> None:
    assert found("a ; b").stuck.holds is False
    assert found("a ; b => within 10 s").stuck.holds is False
    assert (
        found("l1:a || l2:b => { case l2: toggle(l1); case l1: push new Out {}; }").stuck.holds
        is False
    )


def test_a_rule_that_ends_does_not_keep_on() -> None:
    assert found("ecl repeat(3) { notify { a } }").keeps_on is False
    assert found("a").keeps_on is True


def test_dead_parts_are_found_behind_types_and_aborts() -> None:
    result = found(
        "l1:(a + b) | l2:c || l3:d =>"
        " { abort(l3); case l1 & l2: push new Out {}; case l3: push new Out {};"
        " case l1 | l2: push new Out {}; }"
    )

    assert result.dead_labels is not None
    assert [each.label for each in result.dead_labels] == ["l3"]
    assert result.dead_cases == (0, 1)
    assert result.dead_branches == (1,)


def test_labels_that_one_event_cannot_complete_together_may_still_be_active_together() -> None:
    result = found("l1:(a ; b) | l2:(a ; b) => { case l1 & l2: push new Out {}; }")

    assert result.dead_cases == ()


def test_a_rule_whose_predicates_cannot_be_told_apart_is_unknown_where_it_must_be() -> None:
    unknown = found("a + b", "A a where V + 1 > 3, A b where V * V = 2")

    assert unknown.can_put_out.holds is None
    assert "names compared with constants" in (unknown.can_put_out.reason or "")


def test_ports_that_never_matter_are_told_from_those_that_do() -> None:
    library = rules.library("a | (a + b) => { case true: push a; }")
    told = {
        each.port: (each.decides_when, each.fills_in)
        for each in dependencies(library.correlations[0], library.checked.types)
    }

    assert told == {
        "a": (True, True),
        "b": (False, False),
        "c": (False, False),
        "d": (False, False),
    }


def test_any_port_matters_to_what_waits_for_any_event() -> None:
    library = rules.library("ecl repeat { notify { true } }")

    assert all(d.matters for d in dependencies(library.correlations[0], library.checked.types))


def test_who_feeds_whom_is_written_as_text_and_drawn() -> None:
    fed = rules.rule("Two", "a", "Out a from One")
    first = rules.rule("One", "a => { case true: push new Out {}; }")
    library = ensue.parse(f"{rules.TYPES}\n{first}\n{fed}").checked

    assert feeding_text(library).splitlines()[0] == "A, B, C, D -> One -> Two"
    assert "    One --> Two" in feeding_mermaid(library).splitlines()


@pytest.mark.parametrize("seed", range(RULES))
def test_random_rules_do_what_is_said_of_them(seed: int) -> None:
    drawing, library = draw_pair(seed)
    rule = library.correlations[0]
    result = properties(rule, library.checked.types, WORK)

    for answer in (result.can_put_out, result.always_puts_out, result.stuck):
        if answer.witness is not None:
            rules.confirm(library, [rule], answer.witness)
    for _ in range(4):
        stream = draw_stream(drawing, library)
        if result.can_put_out.holds is False:
            assert not observe(library, rule, stream)
        if result.dead_labels:
            run = rules.alone(library, rule)
            outputs = [output for event in stream for output in run.push(event)]
            seen = {label for each in outputs for label in each.extensions["labels"].split(",")}
            assert not seen & {each.label for each in result.dead_labels}
    if not rule.clauses.by:
        never_again(drawing, library, result)


def never_again(drawing: Drawing, library: Library, result: Properties) -> None:
    """After the way to a stuck situation nothing is put out, whatever comes."""
    if result.stuck.witness is None:
        return
    run = rules.alone(library, library.correlations[0])
    for moment in result.stuck.witness.moments:
        run.advance(BEGINNING + moment.after)
        if moment.event is not None:
            run.push(moment.event)
    until = result.stuck.witness.until
    for event in draw_stream(drawing, library):
        assert not run.push(msgspec.structs.replace(event, time=until + event.time))
