"""What is placed where, and why."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import pytest

import ensue
from ensue.errors import UsageError
from ensue.federation.placement import PlacedRule, Sites, place
from ensue.federation.placement.planning.known import KNOWN
from ensue.lang import syntax
from ensue.lang.printer import print_ecl, print_filter
from ensue.lang.syntax import (
    Both,
    Case,
    Clauses,
    FilterCorrelation,
    LabelTrue,
    LibraryTree,
    PortRef,
    PushNew,
)

TYPES = """
eventtype A { attribute long v; attribute string host; };
eventtype B { attribute long v; attribute string host; };
eventtype C { attribute long v; attribute string host; };
eventtype D { attribute long v; attribute string host; };
eventtype Out { attribute long v; };
"""
SITES = {
    "site": [
        {"name": "plant", "types": ["A", "B"]},
        {"name": "office", "types": ["C"]},
        {"name": "yard", "types": ["D"]},
    ]
}
PORTS = "A a, B b, C c, D d"


def placed(rule: str, tables: Any = None) -> dict[str, PlacedRule]:
    library = ensue.parse(TYPES + rule).checked
    return dict(place(library, Sites.of(tables or SITES, library)).rules)


def one(body: str, ports: str = "A a, B b, C c", case: str = "push new Out { v = c.v };") -> Any:
    return placed(f"Out correlation R ({ports}) {body} {{ case true: {case} }}")["R"]


def needed(rule: PlacedRule) -> dict[str, str]:
    return {
        site: print_filter(part.needed)
        for site, part in rule.parts.items()
        if part.needed is not None
    }


def test_a_rule_whose_events_all_arise_at_one_site_runs_there() -> None:
    rule = one("a ; b", "A a, B b", "push new Out { v = b.v };")

    assert rule.home == "plant"
    assert rule.is_whole


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("(a ; b) + c", {"plant": "a ; b"}),
        ("(a ; b) ; c", {"plant": "a ; b"}),
        ("c ; (a + b)", {"plant": "a + b"}),
        ("a ; c ; b", {"plant": "a ; b"}),
        ("a{3} + c", {"plant": "a{3}"}),
        ("(a | b) ; c", {}),
        ("(a ; b) | c", {}),
        ("(a ; b) + c || c", {}),
        ("(a ; b ; c) | (a{2} + c)", {"plant": "a ; b | a{2}"}),
    ],
)
def test_what_no_match_does_without_is_needed(body: str, expected: dict[str, str]) -> None:
    ports = "A a, B b, C c" if "b" in body else "A a, C c"

    assert needed(one(f"{body} within 1 h", ports)) == expected


def test_a_part_that_may_be_aborted_is_needed_by_nothing() -> None:
    rule = placed(
        "Out correlation R (A a, B b, C c) l:(a ; b) + m:c"
        " { case m: push new Out { v = c.v }; abort(l); case l: push new Out { v = c.v }; }"
    )["R"]

    assert needed(rule) == {}


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("Out correlation R (A a, C c, every 1 s t) (a ; t) + c", "its timers count"),
        ("Out correlation R (A a, B b, C c) (a ; b ; timeout(1 s)) + c by host", "timeouts of"),
        ("Out correlation R (A a, B b, C c) (a ; b) | c", "it can trigger without"),
        ("Out correlation R (A a, C c) a ; c", "counts by itself"),
    ],
)
def test_the_reason_why_a_rule_stays_whole_is_said(rule: str, reason: str) -> None:
    found = placed(rule + " { case true: push new Out { v = c.v }; }")["R"]

    assert any(reason in part.why for part in found.parts.values())


ECL_NEEDS = [
    ("notify { accumulate { sequential { a, b }, c } }", "a ; b"),
    ("notify { sequential { c, accumulate { a, b } } }", "a + b"),
    ("notify { select { sequential { a, b }, sequential { b, b, c } } }", "a ; b | b ; b"),
    ("sequential { a, notify { c }, notify { sequential { b, c } } }", "a | a ; b"),
    ("notify { accumulate { persist { sequential { a, b } }, c } }", "a ; b"),
    ("notify { accumulate { do { sequential { a, b } } unless { c }, c } }", "a ; b"),
    ("notify { sequential { fail { do { c } unless { sequential { a, b } } }, c } }", "a ; b"),
    ("notify { accumulate { sequential { a, b }, repeat(3) { c }, < v > 1 > } }", "a ; b"),
    ("notify { accumulate { sequential { a, timeout(1 s), b }, c } }", "a ; b"),
]
ECL_NEEDS_NOTHING = [
    ("notify { select { sequential { a, b }, c } }", "can put out without anything from"),
    (
        "notify { accumulate { repeat(2) { do { sequential { a, b } } unless { c } }, c } }",
        "without",
    ),
    ("notify { accumulate { select* { a, b }, c } }", "counts by itself"),
    ("notify { accumulate { do { timeout(1 s) } unless { a }, b, c } }", "from its first event"),
    ("modes { in (c) do { notify { accumulate { a, b } } } in (a) do { notify { c } } }", "mode"),
]


def ecl(body: str, ports: str = "A a, B b, C c") -> PlacedRule:
    tables = {**SITES, "place": [{"rule": "R", "at": "yard"}]}
    text = f"eventtype Done {{ }};\nDone ecl R ({ports}) {{ repeat {{ {body} }} }}"
    return placed(text, tables)["R"]


@pytest.mark.parametrize(("body", "expected"), ECL_NEEDS)
def test_what_no_output_of_an_ecl_does_without_is_needed(body: str, expected: str) -> None:
    assert needed(ecl(body))["plant"] == expected


@pytest.mark.parametrize(("body", "reason"), ECL_NEEDS_NOTHING)
def test_the_reason_why_nothing_of_an_ecl_is_needed_is_said(body: str, reason: str) -> None:
    part = ecl(body).parts["plant"]

    assert part.needed is None
    assert reason in part.why


def test_the_part_of_an_ecl_that_begins_with_its_round_runs_at_its_site() -> None:
    def running(body: str) -> str | None:
        part = ecl(body).parts["plant"].running
        return None if part is None else print_ecl(part.body)

    assert running("notify { accumulate { sequential { a, b }, c } }") == (
        "parallel { notify { sequential { a, b } } }"
    )
    assert running("notify { accumulate { a, sequential { b, b }, c } }") == (
        "parallel { notify { a }, notify { sequential { b, b } } }"
    )
    # It begins when `c` comes, when another part fails, or waits for an event of any site.
    assert running("notify { sequential { c, accumulate { a, b } } }") is None
    assert running("notify { do { accumulate { sequential { a, b }, c } } unless { c } }") is None
    assert running("notify { accumulate { sequential { a, b }, < v > 1 >, c } }") is None


def test_only_fields_that_are_read_at_the_home_travel() -> None:
    rule = one("(a where v > 3 ; b) + c".replace(" where v > 3", ""), "A a where v > 3, B b, C c")
    keyed = one("(a ; b) + c by host", case="push new Out { v = a.v + c.v };")
    whole = placed("A correlation R (A a, B b, C c) (a ; b) + c { case true: push a; }")["R"]

    assert rule.fields == {"a": frozenset(), "b": frozenset(), "c": frozenset({"v"})}
    assert keyed.fields["a"] == {"host", "v"}
    assert keyed.fields["b"] == {"host"}
    assert whole.fields["a"] is None


def test_of_events_that_wait_only_witnesses_are_kept_where_that_is_enough() -> None:
    def keeps(body: str) -> bool:
        part = one(body).parts["plant"]
        assert part.needed is not None
        return bool(part.keeps_witnesses)

    assert keeps("(a ; b) + c")
    assert keeps("(a ; b) + c bind latest keep all")
    assert not keeps("(a ; b) + c bind first")
    assert not keeps("(a ; b ; a) ; c ; a")
    assert not keeps("a ; c ; b")
    assert not keeps("(a ; b) + c having count(a) > 2")


def test_what_may_be_aborted_waits_whole() -> None:
    rule = placed(
        "Out correlation R (A a, B b, C c) (l:a ; b) ; c"
        " { case l: push new Out { v = c.v }; toggle(l); }"
    )["R"]

    assert needed(rule) == {"plant": "b"}
    assert not rule.parts["plant"].keeps_witnesses


@dataclass(frozen=True)
class LaterClauses(Clauses):
    """Clauses with one that planning has never heard of."""

    causes: str | None = None


@dataclass(frozen=True)
class LaterPush(PushNew):
    priority: int = 0


@dataclass(frozen=True)
class LaterFilter:
    """`x` in any way that planning has never heard of."""

    body: PortRef


SPLIT = (
    "Out correlation R (A a, B b, C c) (a ; b) + c || c { case true: push new Out { v = a.v }; }"
)


def unknown(rule: FilterCorrelation) -> list[FilterCorrelation]:
    """A rule with something in it that planning does not know, at any depth."""
    clauses: Any = LaterClauses(causes="all")
    push = rule.cases[0].statements[0]
    assert isinstance(push, PushNew)
    later = LaterPush(push.type, push.assignments, priority=3)
    node: Any = LaterFilter(PortRef("a"))
    word: Any = "each"
    return [
        replace(rule, clauses=clauses),
        replace(rule, clauses=replace(rule.clauses, bind=word)),
        replace(rule, cases=(Case(LabelTrue(), (later,)),)),
        replace(rule, branches=(Both((node, PortRef("c"))),)),
    ]


@pytest.mark.parametrize("which", range(4))
def test_a_rule_with_anything_that_planning_does_not_know_is_placed_whole(which: int) -> None:
    library = ensue.parse(TYPES + SPLIT).checked
    sites = Sites.of(SITES, library)
    rule = library.correlations[0]
    assert isinstance(rule, FilterCorrelation)
    changed = unknown(rule)[which]
    definitions = tuple(changed if each is rule else each for each in library.tree.definitions)
    later = replace(library, tree=LibraryTree(definitions))
    known, (whole,) = place(library, sites).rules, place(later, sites).rules.values()

    assert list(known) == ["R"]
    assert known["R"].fields["c"] == frozenset()
    assert whole.name == "R"
    assert set(whole.fields.values()) == {None}
    assert not whole.split_sites
    assert not whole.sleeps
    assert all("a placement does not know" in part.why for part in whole.parts.values())


def test_every_node_and_field_of_the_language_is_known_to_planning_or_never_in_a_rule() -> None:
    """A field that is added to the language is added here too, or its rules are placed whole."""
    outside = {"AttributeDeclaration", "EventTypeDeclaration", "Import", "Parameter", "Use"}
    outside |= {"PortWiring", "ParameterSetting", "LibraryTree"}
    nodes = {
        each
        for each in vars(syntax).values()
        if isinstance(each, type) and is_dataclass(each) and each.__module__ == syntax.__name__
    }

    assert {each.__name__ for each in nodes - KNOWN.keys()} == outside
    for node, known in KNOWN.items():
        assert {each.name for each in fields(node) if each.compare} == known.keys(), node


def test_a_rule_over_rules_is_fed_from_the_homes_of_those() -> None:
    rules = placed(
        "eventtype Hot { attribute long v; };\n"
        "Hot correlation First (A a, B b) a ; b { case true: push new Hot { v = b.v }; }\n"
        "Out correlation Second (Hot h from First, C c) h{2} + c"
        " { case true: push new Out { v = c.v }; }"
    )

    assert rules["First"].home == "plant"
    assert rules["Second"].home == "office"
    assert needed(rules["Second"]) == {"plant": "h{2}"}


def test_a_port_whose_predicate_no_event_of_a_site_fulfils_has_no_events_there() -> None:
    tables = {
        "site": [
            {"name": "north", "where": "region = 'north'"},
            {"name": "south", "where": "region = 'south'"},
        ]
    }
    rule = placed(
        "eventtype R { attribute string region; };\n"
        "Out correlation Both (R a where region = 'north', R b where region = 'north', R c where"
        " region = 'south') (a ; b) + c { case true: push new Out { v = 1 }; }",
        tables,
    )["Both"]

    assert rule.ports_at == {"north": ("a", "b"), "south": ("c",)}


def test_a_site_can_be_chosen() -> None:
    tables = {**SITES, "place": [{"rule": "R", "at": "yard"}]}
    rule = placed(
        "Out correlation R (A a, B b) a ; b { case true: push new Out { v = b.v }; }", tables
    )["R"]

    assert rule.home == "yard"
    assert needed(rule) == {"plant": "a ; b"}


def test_rates_tell_where_the_fewest_events_travel_to() -> None:
    # Of two ports at the plant and one at the office, the one has far more events.
    rates = {
        "site": [
            {"name": "plant", "types": ["A", "B"], "rates": {"A": 1, "B": 2.5}},
            {"name": "office", "types": ["C"], "rates": {"C": 100}},
            {"name": "yard", "types": ["D"]},
        ]
    }
    rule = "Out correlation R (A a, B b, C c) a | b | c { case true: push new Out {}; }"

    assert placed(rule)["R"].home == "plant"
    assert placed(rule, rates)["R"].home == "office"
    assert "by the rates of the sites" in placed(rule, rates)["R"].why
    assert "ports" in placed(rule)["R"].why


def test_mistakes_in_rates_are_told() -> None:
    tables = {"site": [{"name": "plant", "types": ["A"], "rates": {"A": -1, "E": 3}}]}

    with pytest.raises(UsageError) as told:
        placed("", tables)

    assert "`plant`) rates.A: events a second are needed" in str(told.value)
    assert "no event type `E`" in str(told.value)


def test_every_mistake_in_the_tables_is_told_at_once() -> None:
    tables = {
        "sites": [],
        "site": [
            {"name": "plant", "types": ["Aa"], "wher": "v > 1"},
            {"name": "plant", "where": "v >"},
            {"types": ["A"]},
        ],
        "place": [{"rule": "Rr", "at": "plnt"}],
    }

    with pytest.raises(UsageError) as caught:
        placed("Out correlation R (A a) a { case true: push new Out { v = a.v }; }", tables)

    said = str(caught.value)
    for each in ("[sites]", "`Aa`", "`wher`", "is taken", "is no filter", "a name is needed"):
        assert each in said
    assert "`Rr`" in said
    assert "did you mean `plant`" in said


def test_rules_that_ask_a_history_are_refused() -> None:
    with pytest.raises(UsageError, match="ask one cannot be placed: `R`"):
        placed(
            "Out correlation R (A a where start AFTER(10 s) (v > 3)) a"
            " { case true: push new Out { v = a.v }; }"
        )


BRANCHES = "Out correlation R (A a, B b, C c, D d)"
CASE = " { case true: push new Out { v = a.v }; }"


def test_branches_that_share_no_event_are_each_placed_for_themselves() -> None:
    found = placed(f"{BRANCHES} a ; b || c ; d || (a + b) ; c{CASE}")
    apart = placed(f"{BRANCHES} a ; b || c || d{CASE}")

    assert {name: rule.home for name, rule in found.items()} == {"R": "plant"}
    assert {name: (rule.home, rule.is_whole) for name, rule in apart.items()} == {
        "R || 1": ("plant", True),
        "R || 2": ("office", True),
        "R || 3": ("yard", True),
    }


def test_a_branch_that_needs_something_of_a_site_waits_for_that_alone() -> None:
    """The other branch needs nothing of the plant, and would have every event of it travel."""
    found = placed(f"{BRANCHES} (a ; b) + c || d within 1 h{CASE}")

    assert needed(found["R || 1"]) == {"plant": "a ; b"}
    assert found["R || 2"].home == "yard"
    assert found["R || 2"].is_whole


@pytest.mark.parametrize(
    "rule",
    [
        "Out correlation R (A a, B b, C c) l:a || m:c"
        " { case l: push new Out { v = 1 }; abort(m); case m: push new Out { v = 2 }; }",
        "Out correlation R (A a, C c) l:a || m:c { abort(l); case true: push new Out { v = 1 }; }",
        f"Out correlation R (A a, C c, every 1 s t) a ; t || c{CASE}",
        f"Out correlation R (A a, C c) a ; timeout(1 s) || c{CASE}",
        f"Out correlation R (A a, C c) a || c{{2}} unless a{CASE}",
        f"Out correlation R (A a where v > 1, A b where v > 2, C c) a || b + c{CASE}",
    ],
)
def test_branches_that_are_tied_together_stay_at_one_home(rule: str) -> None:
    assert list(placed(rule)) == ["R"]


def test_branches_over_events_that_predicates_tell_apart_are_placed_apart() -> None:
    found = placed(f"Out correlation R (A a where v > 5, A b where v < 2, C c) a || b + c{CASE}")

    assert [rule.home for rule in found.values()] == ["plant", "plant"]


def test_a_rule_that_reads_a_rule_placed_by_branches_reads_all_of_them() -> None:
    library = ensue.parse(
        TYPES
        + f"eventtype Last {{ }};\nOut correlation R (A a, C c) a || c{CASE}\n"
        + "Last correlation S (Out o from R, D d) o ; d { case true: push new Last { }; }"
    ).checked
    placement = place(library, Sites.of(SITES, library))

    assert placement.feeds == {"R || 1": ("S",), "R || 2": ("S",), "S": ()}
    assert set(placement.rules["S"].ports_at) == {"plant", "office", "yard"}
