"""What the checker accepts and how it judges; what it says is in the gallery."""

from __future__ import annotations

import pytest

from ensue.events.types import Attribute, EventType, ValueType
from ensue.lang.checked import CheckedLibrary
from ensue.lang.checker import check
from ensue.lang.diagnostics import Diagnostics
from ensue.lang.parsing.parser import parse_tree
from ensue.lang.source import Source
from ensue.lang.syntax import (
    Case,
    EventPort,
    EventTypeDeclaration,
    FilterCorrelation,
    LabelTrue,
    LibraryTree,
    PortRef,
    PushPort,
    Times,
)


def judged(text: str) -> tuple[CheckedLibrary | None, list[str]]:
    """The library, and the codes of what was reported, in order of place."""
    diagnostics = Diagnostics(Source.of(text))
    library = check(parse_tree(diagnostics.source, diagnostics), diagnostics)
    return library, [each.code for each in diagnostics.in_order()]


def codes(text: str) -> list[str]:
    return judged(text)[1]


def filter_rule(ports: str, *, where: str = "a", clauses: str = "", body: str = "push a;") -> str:
    return f"{TYPES} Notify correlation Rule ({ports}) {where} {clauses} {{ case true: {body} }}"


TYPES = """
    eventtype Shown {};
    eventtype Notify { attribute short SourceID; };
    eventtype DataNotify : Notify { attribute float Value; };
    eventtype Depth : DataNotify { attribute float Metres; attribute string unit; };
    eventtype Height : DataNotify { attribute float Metres; attribute short unit; };
"""

EXAMPLE = """
eventtype Shown {}; eventtype Airframe {}; eventtype Tactical {}; eventtype Navigational {};
eventtype Pilot { attribute char mode; };
eventtype Notify { attribute short SourceID; };
eventtype DataNotify : Notify { attribute float Value; };
Notify correlation DoubleMatch (DataNotify a from "gps", DataNotify b where Value > 3.5, Notify c)
    l1:(a + b) | l2:(a + c)
    within 10 s
    by SourceID
{
    case l1:       push new Notify { SourceID = b.SourceID };
    case l2 & !l1: push c;
}
Shown ecl NavigationDisplay (Airframe af, Tactical tacst, Navigational navst,
                              Pilot tm where mode = 't', Pilot nm where mode = 'n')
{
    modes {
        in (tm) do { repeat { notify { accumulate { af, tacst } } } }
        in (nm) do { repeat { notify { accumulate { af, navst } } } }
    }
}
"""


def test_a_library_without_mistakes_draws_nothing() -> None:
    library, found = judged(EXAMPLE)

    assert found == []
    assert library is not None
    assert [each.name for each in library.correlations] == ["DoubleMatch", "NavigationDisplay"]


def test_the_checked_library_knows_its_types() -> None:
    library, _ = judged(TYPES)

    assert library is not None
    assert library.types.types["DataNotify"] == EventType(
        "DataNotify", "Notify", (Attribute("Value", ValueType("float")),)
    )


@pytest.mark.parametrize("text", ["", "// nothing", "eventtype Alarm {};"])
def test_a_library_without_correlations_is_fine(text: str) -> None:
    library, found = judged(text)

    assert library is not None
    assert found == []


def test_an_error_leaves_no_library() -> None:
    assert judged("eventtype A {}; eventtype A {};") == (None, ["duplicate-type"])


def test_a_syntax_error_leaves_no_library() -> None:
    library, _ = judged("eventtype A { attribute };")

    assert library is None


def test_warnings_come_with_the_library() -> None:
    library, _ = judged(filter_rule("Notify a, Notify b"))

    assert library is not None
    assert [each.code for each in library.warnings] == ["unused-port"]


def test_a_correlation_may_share_the_name_of_a_type() -> None:
    text = "eventtype A {}; eventtype B {}; A ecl A (B b) { notify { b } }"

    assert codes(text) == []


def test_a_type_may_stand_below_where_it_is_used() -> None:
    text = "A ecl Rule (B b) { notify { b } } eventtype A : B {}; eventtype B {};"

    assert codes(text) == []


# --- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "predicate",
    [
        "SourceID > 3",
        "Value > 3.5",
        "Metres > 3.5",
        "id = 'a' AND source = 'b' AND type = 'c' AND subject = 'd'",
        "time > 2024-01-01T00:00:00Z",
        "Subject = 'd'",
        "correlation = 'Rule' AND labels LIKE '%l1%' AND partitionkey = '3'",
        "EXISTS Metres",
    ],
)
def test_names_of_the_type_its_relatives_and_cloudevents_are_known(predicate: str) -> None:
    assert codes(filter_rule(f"DataNotify a where {predicate}")) == []


def test_a_name_on_which_subtypes_disagree_has_no_type() -> None:
    assert codes(filter_rule("DataNotify a where unit = 3 OR unit = 'm'")) == []


def test_the_name_of_another_branch_of_the_family_is_unknown() -> None:
    text = f"{TYPES} Shown ecl Rule (Height a where Depths = 3) {{ notify {{ a }} }}"

    assert codes(text) == ["unknown-attribute"]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("tenant", "undeclared-attribute"),
        ("tier", "undeclared-attribute"),
        ("Tenant", "unknown-attribute"),
        ("tenant_id", "unknown-attribute"),
        ("value", "unknown-attribute"),
        ("subjects", "unknown-attribute"),
        ("Nested.Part", "unknown-attribute"),
        ("nested.Part", "undeclared-attribute"),
    ],
)
def test_an_unknown_name_is_an_error_unless_it_may_be_an_extension(name: str, code: str) -> None:
    assert codes(filter_rule(f"DataNotify a where {name} = 'x'")) == [code]


def test_an_ecl_predicate_knows_the_names_of_every_port() -> None:
    text = f"""{TYPES} Shown ecl Rule (Depth a, Notify b) {{
        notify {{ accumulate {{ <Metres > 3>, <SourceID = 3>, <Meters > 3> }} }}
    }}"""

    assert codes(text) == ["unknown-attribute"]


def test_nothing_is_said_about_the_attributes_of_a_type_that_could_not_be_read() -> None:
    text = """
        eventtype A { attribute int x; };
        A correlation Rule (A a where x > 3) a by x { case true: push new A { x = a.x }; }
    """

    assert codes(text) == ["syntax"]


# --- ports and keys ------------------------------------------------------------------------------


def test_a_port_that_only_the_key_names_is_used() -> None:
    rule = filter_rule("Notify a, Notify b", clauses="by a.SourceID = b.SourceID")

    assert codes(rule) == []


@pytest.mark.parametrize("body", ["sequential { true, a }", "sequential { <SourceID = 3>, a }"])
def test_a_port_is_used_where_any_event_will_do(body: str) -> None:
    text = f"{TYPES} Shown ecl Rule (Notify a, Notify b) {{ notify {{ {body} }} }}"

    assert codes(text) == []


@pytest.mark.parametrize("key", ["subject", "SourceID, subject", "Value", "a.SourceID"])
def test_a_key_is_an_attribute_that_every_port_has(key: str) -> None:
    assert codes(filter_rule("DataNotify a", clauses=f"by {key}")) == []


def test_a_key_that_no_type_declares_may_be_an_extension() -> None:
    assert codes(filter_rule("Notify a", clauses="by tenant")) == ["undeclared-attribute"]


def test_a_key_that_one_port_declares_is_missing_on_another() -> None:
    text = """eventtype A { attribute string host; }; eventtype B {};
        A correlation Rule (A a, B b) a ; b by host { case true: push a; }"""

    assert codes(text) == ["unknown-attribute"]


def test_a_char_and_a_string_make_one_key() -> None:
    text = """eventtype A { attribute char k; }; eventtype B { attribute string k; };
        A correlation Rule (A a, B b) a ; b by k { case true: push a; }"""

    assert codes(text) == []


def test_timers_need_no_key() -> None:
    rule = filter_rule("Notify a, every 1 s t", where="a ; t", clauses="by SourceID")

    assert codes(rule) == []


# --- transformers --------------------------------------------------------------------------------


def test_an_event_of_a_subtype_may_be_pushed() -> None:
    assert codes(filter_rule("Depth a")) == []


def test_a_new_event_may_set_inherited_attributes() -> None:
    body = "push new DataNotify { SourceID = a.SourceID, Value = 3.5 };"

    assert codes(filter_rule("Notify a", body=body)) == []


def test_a_timer_offers_its_time() -> None:
    text = """eventtype Out { attribute timestamp at; }; eventtype A {};
        Out correlation Rule (A a, deadline 1 s t) a ; t {
            case true: push new Out { at = t.time };
        }"""

    assert codes(text) == []


def test_a_label_is_used_by_a_change_alone() -> None:
    text = """eventtype A {};
        A correlation Rule (A a, A b from "b") l:a + b { abort(l); case true: push b; }"""

    assert codes(text) == []


# --- trees that were built and not read ----------------------------------------------------------


def test_a_tree_without_places_is_checked_too() -> None:
    tree = LibraryTree(
        (
            EventTypeDeclaration("A"),
            FilterCorrelation(
                "A",
                "Rule",
                (EventPort("A", "a"),),
                (Times(PortRef("b"), 0),),
                cases=(Case(LabelTrue(), (PushPort("a"),)),),
            ),
        )
    )
    diagnostics = Diagnostics(Source.of(""))

    assert check(tree, diagnostics) is None
    assert {each.code for each in diagnostics.found} == {
        "bad-count",
        "never-bound",
        "unknown-port",
    }


def test_a_filter_of_any_depth_is_checked() -> None:
    deep: PortRef | Times = PortRef("a")
    for _ in range(50_000):
        deep = Times(deep, 1)
    ports = (EventPort("A", "a"),)
    cases = (Case(LabelTrue(), (PushPort("a"),)),)
    rule = FilterCorrelation("A", "Rule", ports, (deep,), cases=cases)
    diagnostics = Diagnostics(Source.of(""))

    assert check(LibraryTree((EventTypeDeclaration("A"), rule)), diagnostics) is not None
