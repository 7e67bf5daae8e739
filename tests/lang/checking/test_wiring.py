"""Who reads whose outputs, by name: circles, unknown names, chains that are not written."""

from __future__ import annotations

import time

import pytest

from ensue.lang.checked import CheckedLibrary
from ensue.lang.checker import check
from ensue.lang.diagnostics import Diagnostic, Diagnostics
from ensue.lang.parsing.parser import parse_tree
from ensue.lang.source import Source
from ensue.lang.syntax import (
    EclCorrelation,
    EventPort,
    EventTypeDeclaration,
    LibraryTree,
    PortRef,
    Push,
    RuleSource,
)

TYPES = """
    eventtype Top {};
    eventtype Middle : Top {};
    eventtype Bottom : Middle {};
    eventtype Other {};
"""


def judged(rules: str) -> tuple[CheckedLibrary | None, tuple[Diagnostic, ...]]:
    """The library, and what is found in it."""
    diagnostics = Diagnostics(Source.of(TYPES + rules))
    library = check(parse_tree(diagnostics.source, diagnostics), diagnostics)
    return library, diagnostics.in_order()


def circles(rules: str) -> list[str]:
    """The circles that are refused."""
    refused = [each for each in judged(rules)[1] if each.code == "circular-feeding"]
    return [each.message.split(": ")[1] for each in refused]


def feeds(rules: str) -> dict[str, tuple[str, ...]]:
    library, found = judged(rules)
    assert library is not None, found
    return dict(library.feeds)


def hints(rules: str, code: str) -> list[str | None]:
    return [each.hint for each in judged(rules)[1] if each.code == code]


def ecl(name: str, reads: str, puts_out: str, source: str = "") -> str:
    return f"{puts_out} ecl {name} ({reads} x {source}) {{ repeat {{ notify {{ x }} }} }}\n"


def sends_on(name: str, reads: str, source: str = "") -> str:
    return f"{reads} correlation {name} ({reads} x {source}) x {{ case true: push x; }}\n"


# --- names --------------------------------------------------------------------------------------


def test_a_correlation_feeds_those_that_name_it() -> None:
    rules = ecl("Maker", "Other", "Middle") + "".join(
        f"Other ecl Reads{each} ({each} x {source}) {{ x }}\n"
        for each, source in (("Top", "from Maker"), ("Middle", ""), ("Bottom", "from outside"))
    )

    assert feeds(rules)["Maker"] == ("ReadsTop",)


def test_readers_come_in_the_order_of_the_library() -> None:
    rules = "".join(f"Other ecl R{i} (Top x from Maker) {{ x }}\n" for i in (3, 1, 2))

    assert feeds(rules + ecl("Maker", "Other", "Top"))["Maker"] == ("R3", "R1", "R2")


def test_a_list_names_several_and_each_once() -> None:
    rules = (
        ecl("A", "Other", "Top")
        + ecl("B", "Other", "Top")
        + 'Other ecl Reads (Top x from B, "gps", A, B, outside) { x }\n'
    )

    assert feeds(rules) == {"A": ("Reads",), "B": ("Reads",), "Reads": ()}


def test_a_text_is_no_name() -> None:
    rules = ecl("Maker", "Other", "Top") + 'Other ecl Reads (Top x from "ensue/Maker") { x }'

    assert feeds(rules)["Maker"] == ()


def test_a_text_that_once_meant_a_rule_draws_a_warning() -> None:
    maker = ecl("Maker", "Other", "Top")
    line = "to read that write `from Maker`, else `from outside where source = 'ensue/Maker'`"

    reads = maker + 'Other ecl Reads (Top x from "gps", "ensue/Maker") { x }'
    assert hints(reads, "not-wired") == [line]
    for silent in (
        'Other ecl Reads (Top x from "ensue/Makers", "Maker", "ensue/") { x }',
        'Other ecl Reads (Other x from "ensue/Maker") { x }',
        'Other ecl Reads (Top x from "ensue/Maker", Maker) { x }',
        "Other ecl Reads (Top x from outside where source = 'ensue/Maker') { x }",
    ):
        assert hints(maker + silent, "not-wired") == []


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("Makr", "did you mean `Maker`?"),
        ("outsid", "did you mean `outside`?"),
        ("gps", "a `source` of events from outside stands in quotes: `from 'gps'`"),
    ],
)
def test_an_unknown_name_is_refused_with_what_was_probably_meant(name: str, hint: str) -> None:
    rules = ecl("Maker", "Other", "Top") + f"Other ecl Reads (Top x from {name}) {{ x }}"

    assert judged(rules)[0] is None
    assert hints(rules, "unknown-source") == [hint]


def test_no_rule_is_called_outside() -> None:
    _, found = judged(ecl("outside", "Top", "Other"))

    assert [each.code for each in found] == ["reserved-name"]


def test_a_name_that_never_puts_out_the_type_is_warned_of() -> None:
    rules = ecl("Maker", "Top", "Other") + "Other ecl Reads (Middle x from Maker) { x }"

    assert hints(rules, "never-fed") == ["it puts out `Other`"]


def test_a_source_that_another_includes_is_warned_of() -> None:
    _, found = judged('Other ecl Reads (Top x from "gps", "gps", "ins") { x }')
    assert [each.code for each in found if each.code == "redundant-source"] == ["redundant-source"]

    _, found = judged('Other ecl Reads (Top x from "gps", outside, "ins") { x }')
    assert [each.column for each in found if each.code == "redundant-source"] == [29, 45]


# --- circles ------------------------------------------------------------------------------------


def test_rules_of_one_type_in_and_out_stand_side_by_side() -> None:
    library, _ = judged(sends_on("A", "Top") + sends_on("B", "Top"))

    assert library is not None


def test_a_circle_is_told_from_its_first_correlation() -> None:
    rules = (
        ecl("C", "Bottom", "Other", "from B")
        + ecl("A", "Other", "Top", "from C")
        + ecl("B", "Top", "Bottom", "from A")
    )

    assert circles(rules) == ["C -> A -> B -> C"]


def test_a_correlation_that_names_itself_is_a_circle() -> None:
    assert circles(sends_on("Again", "Top", "from outside, Again")) == ["Again -> Again"]


def test_every_correlation_on_a_circle_is_in_one_that_is_told() -> None:
    rules = (
        "Other ecl Hub (Top x from A, B) { x }\n"
        + ecl("A", "Other", "Top", "from Hub")
        + ecl("B", "Other", "Bottom", "from Hub")
    )

    assert circles(rules) == ["Hub -> A -> Hub", "Hub -> B -> Hub"]


def test_correlations_between_two_circles_are_on_none() -> None:
    rules = (
        ecl("A", "Top", "Top", "from B")
        + ecl("B", "Top", "Top", "from A")
        + ecl("Between", "Top", "Top", "from B")
        + "Top ecl C (Top x from Between, E) { x }\n"
        + ecl("E", "Top", "Top", "from C")
    )

    assert circles(rules) == ["A -> B -> A", "C -> E -> C"]


def test_a_circle_of_names_is_one_whatever_the_types() -> None:
    rules = ecl("A", "Top", "Other", "from B") + ecl("B", "Top", "Other", "from A")

    assert circles(rules) == ["A -> B -> A"]


# --- chains that are not written ------------------------------------------------------------------


def test_a_port_whose_type_a_rule_puts_out_is_warned_of_with_the_lines_to_write() -> None:
    rules = ecl("Three", "Other", "Middle") + "Other ecl Reads (Top x) { x }\n"

    assert hints(rules, "not-wired") == [
        "to read that write `Top x from Three`, else `Top x from outside`"
    ]


@pytest.mark.parametrize("source", ["from Three", "from outside", 'from "gps"'])
def test_a_port_that_says_what_it_reads_is_not(source: str) -> None:
    rules = ecl("Three", "Other", "Middle") + f"Other ecl Reads (Top x {source}) {{ x }}\n"

    assert hints(rules, "not-wired") == []


def test_a_port_of_a_type_that_nobody_puts_out_is_not() -> None:
    rules = ecl("Three", "Other", "Middle") + "Other ecl Reads (Bottom x) { x }\n"

    assert hints(rules, "not-wired") == []


def test_a_rule_never_read_its_own_outputs_and_is_not_warned_of_them() -> None:
    assert hints(sends_on("Again", "Top"), "not-wired") == []


@pytest.mark.parametrize("reads", ["Top", "Middle", "Bottom"])
def test_an_event_that_is_sent_on_may_be_of_any_type_below_its_port(reads: str) -> None:
    rules = sends_on("Pass", "Middle", "from outside") + f"Other ecl Reads ({reads} x) {{ x }}"

    assert len(hints(rules, "not-wired")) == 1


def test_of_many_rules_some_are_named() -> None:
    rules = "".join(ecl(f"R{i}", "Other", "Top") for i in range(5))
    rules += "Other ecl Reads (Top x) { x }"
    (found,) = [each for each in judged(rules)[1] if each.code == "not-wired"]

    assert "`R0` and `R1` and `R2` and 2 more put out `Top` too" in found.message
    assert found.hint == "to read that write `Top x from R0`, else `Top x from outside`"


NEVER_PUSHED = [
    "Other correlation X (Top t) l:t { case l & !l: push new Other {}; }",
    "Other correlation X (Top t) l:t || k:t { case l & k: push new Other {}; }",
    "Other ecl X (Top t) { parallel { t, push(Other) { false } } }",
    "Other correlation X (Top t, Other o from outside) t { case true: push o; }",
]


@pytest.mark.parametrize("rule", NEVER_PUSHED)
def test_a_push_that_never_happens_puts_nothing_out(rule: str) -> None:
    assert hints(f"{rule} Top ecl Y (Other o) {{ o }}", "not-wired") == []


def test_a_label_that_may_be_aborted_is_left_out_and_lets_its_case_run() -> None:
    rule = "Other correlation X (Top t) l:t || k:t { case l & k: push new Other {}; abort(k); }"

    assert len(hints(f"{rule} Top ecl Y (Other o) {{ o }}", "not-wired")) == 1


# --- internal -------------------------------------------------------------------------------------


def test_an_internal_rule_that_nobody_reads_is_warned_of() -> None:
    rules = f"internal {ecl('Maker', 'Other', 'Top')}"

    assert hints(rules, "internal-unread") == ["read it by `from Maker`, or leave out `internal`"]
    assert hints(f"{rules} Other ecl R (Top x from Maker) {{ x }}", "internal-unread") == []


# --- size -----------------------------------------------------------------------------------------


def chained(count: int, closed: bool) -> LibraryTree:
    """Rules that each read the one before; the first reads the last one if it is closed."""
    rules = []
    for i in range(count):
        before = (RuleSource(f"C{(i - 1) % count}"),) if i or closed else ()
        ports = (EventPort("T", "x", before),)
        rules.append(EclCorrelation("T", f"C{i}", ports, Push(None, PortRef("x"))))
    return LibraryTree((EventTypeDeclaration("T"), *rules))


def star(count: int) -> LibraryTree:
    """Rules that all read the root of a family and each put out a type of their own in it."""
    types = [EventTypeDeclaration("Root")] + [
        EventTypeDeclaration(f"T{i}", "Root") for i in range(count)
    ]
    ports = (EventPort("Root", "x"),)
    rules = [
        EclCorrelation(f"T{i}", f"C{i}", ports, Push(None, PortRef("x"))) for i in range(count)
    ]
    return LibraryTree((*types, *rules))


@pytest.mark.parametrize(
    ("tree", "is_fine"),
    [(chained(5_000, False), True), (chained(5_000, True), False), (star(5_000), True)],
    ids=["a line", "one circle", "a knot of types"],
)
def test_thousands_of_correlations_are_checked_in_seconds(tree: LibraryTree, is_fine: bool) -> None:
    diagnostics = Diagnostics(Source.of(""))
    began = time.process_time()

    library = check(tree, diagnostics)

    assert (library is not None) is is_fine
    assert time.process_time() - began < 5


def test_thousands_of_unknown_names_are_reported_in_seconds() -> None:
    types = [EventTypeDeclaration(f"EventTypeNumber{i}") for i in range(5_000)]
    rules = [
        EclCorrelation(
            f"EventTypNumber{i}",
            f"C{i}",
            (EventPort(f"EventTyp{i}", "x", (RuleSource(f"D{i}"),)),),
            PortRef("x"),
        )
        for i in range(5_000)
    ]
    diagnostics = Diagnostics(Source.of(""))
    began = time.process_time()

    check(LibraryTree((*types, *rules)), diagnostics)

    assert sum(each.code == "unknown-type" for each in diagnostics.found) == 10_000
    assert sum(each.code == "unknown-source" for each in diagnostics.found) == 5_000
    assert time.process_time() - began < 5
