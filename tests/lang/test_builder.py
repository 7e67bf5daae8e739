"""The builder says everything that text can say, and its values print as that text."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings

from ensue.errors import UsageError
from ensue.lang import builder as b
from ensue.lang import expressions, syntax
from ensue.lang.diagnostics import Diagnostics
from ensue.lang.expressions.tree import BoundTerm
from ensue.lang.parsing.parser import parse_tree
from ensue.lang.source import Source, Span
from tests.lang import rebuilding
from tests.lang.strategies import trees

login = b.eventtype("Login", user=b.string, ok=b.boolean)
bad = b.port(login, "bad", where=b.attr("ok") == False)  # noqa: E712
good = b.port(login, "good", source="portal", where="ok = TRUE")
tick = b.every("1 min", "tick")


def read(text: str) -> syntax.LibraryTree:
    diagnostics = Diagnostics(Source.of(text))
    tree = parse_tree(diagnostics.source, diagnostics)
    assert not diagnostics.found, f"{text}\n{diagnostics.found[0]}"
    return tree


def everything() -> b.Library:
    """A library in which every operator of the language has a place."""
    alarm = b.eventtype("Alarm", {"class": b.sequence(b.long)}, extends=login, at=b.timestamp)
    user = b.attr("user")
    guarded = b.port(
        login,
        "p",
        where=(user.like("a%") & ~user.is_in("x", "y") | user.exists())
        ^ (b.call("LENGTH", user) + 1 - 2 > -b.attr("data.n") * 3 / 2 % 5),
    )
    error = b.attr("level") == "error"
    asking = b.port(
        login,
        "asking",
        where=b.start.after("10 s", error & b.start.before(None, True, times=2), times=3)
        & b.end.during("x = 1", times=2)
        & b.start.related("meets", error)
        & b.related("overlaps", error)
        & b.compared("user", ">=", error, limit=5)
        & b.is_a("user", "w:Red")
        & b.subsumes("user", "Red", "http://x/#White", quantifier="all")
        & b.same_as("user", "Red")
        & b.ontology_property("w:causes", "user", "=", "Red")
        & b.property_value("http://x/#size", "user", "<", -1.5)
        & b.has("user", "only", "a", -3, True),
    )
    limit, pause = b.parameter("limit", 3, b.long), b.parameter("pause", timedelta(seconds=5))
    rule = b.correlation(
        alarm,
        "Rule",
        ports=[bad, good, guarded, asking, tick, b.deadline(timedelta(hours=1), "late")],
        when=[((bad * 5) >> good).label("l1") | b.both(bad, good).label("l2"), guarded + tick],
        initially=[b.abort("l1")],
        cases=[
            b.case(True, b.push_new(alarm, user=good["user"], at=datetime(2026, 1, 1, tzinfo=UTC))),
            b.case((b.label("l1") | b.label("l2")) & ~b.label("l1"), b.push(good), b.toggle("l1")),
            b.case("l1", b.push(good).with_(priority=9, expirytime=good["time"])),
            b.case("l2", b.revive("l1", "l2")),
        ],
        within="10 min",
        by=["user", b.key(bad["user"], good["login"])],
        bind="first",
    )
    watch = b.ecl(
        "Alarm",
        "Watch",
        ports=[bad, good],
        body=b.modes(
            (bad, b.repeat(b.notify(b.accumulate(bad, good)), rounds=3)),
            (good, b.persist(b.push("Alarm", b.select(bad, b.select_strict(good, True))))),
            (b.holds("x > 1"), b.loop(b.fail(b.sequential(bad, b.parallel(good, False))))),
            (bad, b.unless(b.timeout("5 s"), b.attr("x") > 1)),
        ),
        by="user",
    )
    wired = b.port(alarm, "wired", source=[rule, b.rule("Watch"), "portal", b.outside])
    after = b.correlation(alarm, "After", ports=[wired], when=wired, role="internal")
    many = b.correlation(
        alarm,
        "Many",
        ports=[guarded, b.every(pause, "t")],
        when=(guarded * limit) >> b.timeout(pause),
        within=pause,
        role="template",
    )
    rounds = b.ecl(alarm, "Rounds", ports=[guarded], body=b.repeat(guarded, limit))
    use = b.use(
        many,
        "Use",
        sources={"p": [rule, "portal"]},
        values={"limit": -4, "pause": timedelta(seconds=6)},
        role="internal",
    )
    return b.library(
        b.import_("types.cor"), limit, pause, login, alarm, rule, watch, after, many, rounds, use
    )


def test_a_library_of_everything_is_read_back_from_its_text() -> None:
    library = everything()

    assert read(str(library)) == library.tree


def test_every_class_of_the_tree_is_within_reach() -> None:
    found: set[type] = set()
    waiting: list[Any] = [everything().tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, tuple):
            waiting.extend(node)
        elif is_dataclass(node):
            found.add(type(node))
            waiting.extend(getattr(node, each.name) for each in fields(node) if each.compare)
    declared = {
        each
        for module in (syntax, expressions)
        for each in vars(module).values()
        if isinstance(each, type) and is_dataclass(each) and each is not Span
    }

    assert declared - found == set()
    # Terms are bound to an ontology by the checker.
    assert set(get_args(expressions.Expression)) - {BoundTerm} <= found


@settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))
@given(trees())
def test_any_tree_can_be_built(tree: syntax.LibraryTree) -> None:
    assert rebuilding.library(tree).tree == tree


def test_values_print_as_their_text() -> None:
    assert (
        str(login) == "eventtype Login {\n    attribute string user;\n    attribute boolean ok;\n};"
    )
    assert str(good) == "Login good from 'portal' where ok = TRUE"
    assert str((bad * 5) >> good | bad + good) == "bad{5} ; good | bad + good"
    assert str(b.label("a") & ~(b.label("b") | b.label("c"))) == "a & !(b | c)"
    assert str(b.push_new("Alarm", user=good["user"])) == "push new Alarm { user = good.user }"
    assert str(b.repeat(b.notify(bad), rounds=2)) == "repeat(2) { notify { bad } }"
    assert str(b.key(bad["x"], good["y"])) == "bad.x = good.y"


def test_a_chain_of_one_operator_is_flat_and_a_group_stays_one() -> None:
    assert str(bad >> good >> bad) == "bad ; good ; bad"
    assert str(b.then(bad, good) >> bad) == "(bad ; good) ; bad"
    assert str(bad >> (good >> bad)) == "bad ; (good ; bad)"
    assert str(b.attr("x") + 1 + 2 - (b.attr("y") - 3)) == "x + 1 + 2 - (y - 3)"
    assert str(b.attr("x") & b.attr("y") | b.attr("z")) == "(x AND y) OR z"


def test_numbers_below_zero_and_texts_with_quotes_are_written_as_text_can() -> None:
    assert str(b.literal(-1.5)) == "-1.5"
    assert str(b.literal("it's")) == r"'it\'s'"


@pytest.mark.parametrize(
    "mistake",
    [
        lambda: b.eventtype("2nd"),
        lambda: b.eventtype("a b"),
        lambda: b.eventtype("A", {"long": b.long}),
        lambda: b.eventtype("A", x="long"),  # type: ignore[arg-type]
        lambda: b.port("every", "a"),
        lambda: b.port("A", "a", source="two\nlines"),
        lambda: b.port("A", "a", source=[b.port("A", "b")]),  # type: ignore[list-item]
        lambda: b.port("A", "where"),
        lambda: b.rule("outside"),
        lambda: b.correlation("A", "X", ports=[bad], when=bad, role="secret"),  # type: ignore[arg-type]
        lambda: b.every("-1 s", "t"),
        lambda: b.every("0 s", "t"),
        lambda: b.every(timedelta(seconds=-1), "t"),
        lambda: b.every("10", "t"),
        lambda: bad * 0,
        lambda: bad * 100_001,
        lambda: bad + "good",  # type: ignore[operator]
        lambda: b.label("true"),
        lambda: b.push("new"),
        lambda: b.abort(),
        lambda: b.literal("two\nlines"),
        lambda: b.literal(2**64),
        lambda: b.literal(float("nan")),
        lambda: b.literal(datetime(2026, 1, 1)),
        lambda: b.literal(None),  # type: ignore[arg-type]
        lambda: b.attr("not"),
        lambda: b.attr("a..b"),
        lambda: b.call("EXISTS"),
        lambda: b.attr("x").is_in(),
        lambda: bool(b.attr("x") == 1),
        lambda: bool(b.label("l")),
        lambda: b.accumulate(),
        lambda: b.modes(),
        lambda: b.fail(b.port("A", "push")),
        lambda: b.repeat(bad, rounds=0),
        lambda: b.key(b.attr("x")),
        lambda: b.correlation("A", "X", ports=[], when=bad),
        lambda: b.correlation("A", "X", ports=[bad], when=[]),
        lambda: b.correlation("A", "X", ports=[bad], when=bad, bind="middle"),  # type: ignore[arg-type]
        lambda: b.correlation("eventtype", "X", ports=[bad], when=bad),
        lambda: b.library("eventtype A {}"),  # type: ignore[arg-type]
    ],
)
def test_what_python_can_see_to_be_wrong_is_refused_at_once(mistake: Any) -> None:
    with pytest.raises(UsageError) as refused:
        mistake()

    assert str(refused.value)[0].islower() or str(refused.value)[0] in "`0123456789-"


def test_a_tree_deeper_than_any_text_is_refused_and_does_not_overflow() -> None:
    deep: b.Ecl | b.Port = bad
    for _ in range(5_000):
        deep = b.fail(deep)

    with pytest.raises(UsageError, match="levels"):
        str(deep)
    with pytest.raises(UsageError, match="levels"):
        b.ecl("A", "X", ports=[bad], body=deep)
