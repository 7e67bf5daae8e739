"""Who reads whose outputs, and which circles are refused."""

from __future__ import annotations

import time

import pytest

from ensue.lang.checked import CheckedLibrary
from ensue.lang.checker import check
from ensue.lang.diagnostics import Diagnostics
from ensue.lang.parsing.parser import parse_tree
from ensue.lang.source import Source
from ensue.lang.syntax import (
    EclCorrelation,
    EventPort,
    EventTypeDeclaration,
    LibraryTree,
    PortRef,
    Push,
)

TYPES = """
    eventtype Top {};
    eventtype Middle : Top {};
    eventtype Bottom : Middle {};
    eventtype Other {};
"""


def judged(rules: str) -> tuple[CheckedLibrary | None, list[str]]:
    """The library, and the circles that were refused."""
    diagnostics = Diagnostics(Source.of(TYPES + rules))
    library = check(parse_tree(diagnostics.source, diagnostics), diagnostics)
    refused = [each.message for each in diagnostics.found if each.code == "circular-feeding"]
    return library, [each.split(": ")[1] for each in refused]


def feeds(rules: str) -> dict[str, tuple[str, ...]]:
    library, refused = judged(rules)
    assert library is not None, refused
    return dict(library.feeds)


def ecl(name: str, reads: str, puts_out: str, source: str = "") -> str:
    return f"{puts_out} ecl {name} ({reads} x {source}) {{ repeat {{ notify {{ x }} }} }}\n"


def sends_on(name: str, reads: str, source: str = "") -> str:
    return f"{reads} correlation {name} ({reads} x {source}) x {{ case true: push x; }}\n"


def test_a_correlation_feeds_those_who_read_its_type_or_one_above() -> None:
    rules = ecl("Maker", "Other", "Middle") + "".join(
        f"Other ecl Reads{each} ({each} x, Other o) {{ sequential {{ x, o }} }}\n"
        for each in ("Top", "Middle", "Bottom")
    )

    assert feeds(rules)["Maker"] == ("ReadsTop", "ReadsMiddle")


def test_the_declared_output_type_feeds_nobody_if_only_a_subtype_is_pushed() -> None:
    maker = "Top ecl Maker (Other o) { push(Bottom) { o } }\n"
    other = ecl("Reads", "Bottom", "Other", 'from "elsewhere"')

    assert feeds(maker + other) == {"Maker": (), "Reads": ("Maker",)}


def test_readers_come_in_the_order_of_the_library() -> None:
    rules = "".join(f"Other ecl R{i} (Top x) {{ x }}\n" for i in (3, 1, 2))

    assert feeds(rules + ecl("Maker", "Other", "Top"))["Maker"] == ("R3", "R1", "R2")


def test_a_correlation_does_not_feed_itself() -> None:
    assert feeds(ecl("Again", "Top", "Top")) == {"Again": ()}


def test_from_another_source_rules_a_new_event_out() -> None:
    rules = ecl("Maker", "Other", "Top") + 'Other ecl Reads (Top x from "gps") { x }'

    assert feeds(rules)["Maker"] == ()


def test_from_the_source_of_a_correlation_lets_its_events_in() -> None:
    rules = ecl("Maker", "Other", "Top") + 'Other ecl Reads (Top x from "ensue/Maker") { x }'

    assert feeds(rules)["Maker"] == ("Reads",)


@pytest.mark.parametrize("reads", ["Top", "Middle", "Bottom"])
def test_an_event_that_is_sent_on_may_be_of_any_type_below_its_port(reads: str) -> None:
    rules = sends_on("Pass", "Middle") + f'Other ecl Reads ({reads} x from "gps") {{ x }}'

    assert feeds(rules)["Pass"] == ("Reads",)


def test_an_event_that_is_sent_on_keeps_the_source_of_its_port() -> None:
    rules = (
        sends_on("Pass", "Middle", 'from "gps"')
        + 'Other ecl Same (Middle x from "gps") { x }\n'
        + 'Other ecl Else (Middle x from "ins") { x }\n'
    )

    assert feeds(rules)["Pass"] == ("Same",)


def test_a_circle_is_told_from_its_first_correlation() -> None:
    rules = ecl("C", "Bottom", "Other") + ecl("A", "Other", "Top") + ecl("B", "Top", "Bottom")

    assert judged(rules) == (None, ["C -> A -> B -> C"])


def test_every_correlation_on_a_circle_is_in_one_that_is_told() -> None:
    rules = ecl("Hub", "Top", "Other") + ecl("A", "Other", "Top") + ecl("B", "Other", "Bottom")

    assert judged(rules) == (None, ["Hub -> A -> Hub", "Hub -> B -> Hub"])


def test_correlations_between_two_circles_are_on_none() -> None:
    text = "".join(f"eventtype T{i} {{}};" for i in range(4))
    rules = (
        ecl("A", "T0", "T1")
        + ecl("B", "T1", "T0")
        + ecl("Between", "T1", "T2")
        + ecl("C", "T2", "T3")
        + ecl("E", "T3", "T2")
    )

    assert judged(text + rules) == (None, ["A -> B -> A", "C -> E -> C"])


def test_sources_can_keep_correlations_out_of_a_circle() -> None:
    rules = sends_on("A", "Top", 'from "a"') + sends_on("B", "Top", 'from "b"')

    assert judged(rules)[1] == []


def chained(count: int, last: str) -> LibraryTree:
    """Rules that each read what the one before puts out."""
    names = [f"T{i}" for i in range(count)] + [last]
    types = [EventTypeDeclaration(name) for name in dict.fromkeys(names)]
    rules = [
        EclCorrelation(names[i + 1], f"C{i}", (EventPort(names[i], "x"),), Push(None, PortRef("x")))
        for i in range(count)
    ]
    return LibraryTree((*types, *rules))


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
    [(chained(5_000, "End"), True), (chained(5_000, "T0"), False), (star(5_000), False)],
    ids=["a line", "one circle", "a knot"],
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
            f"EventTypNumber{i}", f"C{i}", (EventPort(f"EventTyp{i}", "x"),), PortRef("x")
        )
        for i in range(5_000)
    ]
    diagnostics = Diagnostics(Source.of(""))
    began = time.process_time()

    check(LibraryTree((*types, *rules)), diagnostics)

    assert sum(each.code == "unknown-type" for each in diagnostics.found) == 10_000
    assert time.process_time() - began < 5


NEVER_PUSHED = [
    "Other correlation X (Top t) l:t { case l & !l: push new Other {}; }",
    "Other correlation X (Top t) l:t || k:t { case l & k: push new Other {}; }",
    "Other ecl X (Top t) { parallel { t, push(Other) { false } } }",
]


@pytest.mark.parametrize("rule", NEVER_PUSHED)
def test_a_push_that_never_happens_closes_no_circle(rule: str) -> None:
    _, refused = judged(f"{rule} Top ecl Y (Other o) {{ repeat {{ notify {{ o }} }} }}")

    assert refused == []


def test_a_port_that_has_no_place_is_never_sent_on() -> None:
    rule = "Top correlation X (Other o, Middle m) o { case true: push m; push new Bottom {}; }"

    assert feeds(f"{rule} Top ecl Y (Middle m) {{ notify {{ m }} }}")["X"] == ("Y",)
    only_sent = rule.replace(" push new Bottom {};", "")
    assert feeds(f"{only_sent} Top ecl Y (Middle m) {{ notify {{ m }} }}")["X"] == ()


def test_a_label_that_may_be_aborted_is_left_out_and_lets_its_case_run() -> None:
    rule = "Other correlation X (Top t) l:t || k:t { case l & k: push new Other {}; abort(k); }"
    _, refused = judged(f"{rule} Top ecl Y (Other o) {{ repeat {{ notify {{ o }} }} }}")

    assert refused == ["X -> Y -> X"]
