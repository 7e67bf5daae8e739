"""What the text says, the tree holds: shapes, places, values and refusals."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from ensue.lang import expressions as x
from ensue.lang import syntax as s
from ensue.lang.diagnostics import Diagnostics
from ensue.lang.parsing.parser import parse_tree
from ensue.lang.source import Source, Span


def read(text: str) -> tuple[s.LibraryTree, list[str]]:
    diagnostics = Diagnostics(Source.of(text))
    tree = parse_tree(diagnostics.source, diagnostics)
    return tree, [each.code for each in diagnostics.in_order()]


def branch(text: str) -> s.Filter:
    tree, codes = read(f"A correlation X (A a, A b, A c) {text} {{}}")
    assert codes == []
    (definition,) = tree.definitions
    assert isinstance(definition, s.FilterCorrelation)
    return definition.branches[0]


a, b, c = s.PortRef("a"), s.PortRef("b"), s.PortRef("c")


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a ; b ; c", s.Then((a, b, c))),
        ("(a ; b) ; c", s.Then((s.Then((a, b)), c))),
        ("a + b ; c", s.Then((s.Both((a, b)), c))),
        ("a | b ; c", s.Either((a, s.Then((b, c))))),
        ("l:a + b", s.Both((s.Labelled("l", a), b))),
        ("l:m:(a + b)", s.Labelled("l", s.Labelled("m", s.Both((a, b))))),
        ("l:a{3}", s.Labelled("l", s.Times(a, 3))),
        ("(a ; b){2}{3}", s.Times(s.Times(s.Then((a, b)), 2), 3)),
        ("((a))", a),
    ],
)
def test_filters_bind_label_then_plus_then_semicolon_then_bar(text: str, tree: s.Filter) -> None:
    assert branch(text) == tree


def test_both_kinds_of_comments_and_line_ends_are_skipped() -> None:
    tree, codes = read("// one\r\neventtype /* two */ A {\r\n  // 'three\r\n};\r\n/**/")

    assert codes == []
    assert [each.name for each in tree.definitions] == ["A"]


def test_brackets_and_definitions_inside_texts_and_comments_do_not_count() -> None:
    text = "A correlation X (A a where s = '} eventtype B {') a { /* } eventtype C {} */ }"
    tree, codes = read(text)

    assert codes == []
    assert len(tree.definitions) == 1


def test_words_of_the_language_are_names_where_they_can_be() -> None:
    text = (
        "eventtype correlation { attribute long first, timestamp; };"
        "case correlation ecl (correlation eventtype where correlation in ('x') and first > 1,"
        " correlation within) eventtype + within by first { case true: push eventtype }"
    )
    tree, codes = read(text)

    assert codes == []
    assert [each.name for each in tree.definitions] == ["correlation", "ecl"]


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [("0.001 ms", 1), ("1.5s", 1_500_000), ("2 min", 120_000_000), ("1 d", 86_400_000_000)],
)
def test_durations_are_whole_microseconds(text: str, microseconds: int) -> None:
    tree, codes = read(f"A correlation X (A a) a within {text} {{}}")

    assert codes == []
    assert tree.correlations[0].clauses.within == s.Duration(microseconds)


@pytest.mark.parametrize("text", ["0 s", "0.0001 ms", "9999999 d", "9" * 5_000 + " s"])
def test_durations_without_a_value_are_refused(text: str) -> None:
    assert read(f"A correlation X (A a) a within {text} {{}}")[1] == ["bad-duration"]


@pytest.mark.parametrize("clause", ["within 1 s", "by k", "bind first"])
def test_a_clause_is_given_at_most_once(clause: str) -> None:
    assert read(f"A correlation X (A a) a {clause} {clause} {{}}")[1] == ["duplicate-clause"]


def test_clauses_stand_in_any_order() -> None:
    tree, codes = read("A correlation X (A a) a bind first by k, a.x = b.y within 1 s {}")
    keys = (s.CommonKey("k"), s.PortKeys((("a", "x"), ("b", "y"))))

    assert codes == []
    assert tree.correlations[0].clauses == s.Clauses(s.Duration(1_000_000), keys, "first")


def test_semicolons_after_blocks_and_statements_may_be_left_out_or_doubled() -> None:
    with_them = "A correlation X (A a) a { abort(l);; case l: push a; push a; };"
    without = "A correlation X (A a) a { abort(l) case l: push a push a }"
    in_ecl = "A ecl X (A a) { sequential { repeat { a; };, a; }; };"

    assert read(with_them)[0] == read(without)[0]
    assert read(in_ecl)[0] == read("A ecl X (A a) { sequential { repeat { a }, a } }")[0]


def test_a_predicate_between_angles_may_hold_angles() -> None:
    tree, codes = read("A ecl X (A a) { select { < x > 3 >, < y < 2 > /* end */ } }")
    (correlation,) = tree.correlations

    assert codes == []
    assert isinstance(correlation, s.EclCorrelation)
    assert correlation.body == s.Group(
        "select",
        (
            s.Holds(x.Comparison(x.Name(("x",)), ((">", x.Literal(3)),))),
            s.Holds(x.Comparison(x.Name(("y",)), (("<", x.Literal(2)),))),
        ),
    )


def test_names_are_placed_where_they_stand() -> None:
    text = (
        "eventtype B : A { attribute long x; };\n"
        "B correlation X (A a) l:a { case l: push new B {} }"
    )
    tree, _ = read(text)
    declared, rule = tree.definitions
    assert isinstance(declared, s.EventTypeDeclaration)
    assert isinstance(rule, s.FilterCorrelation)
    pushed = rule.cases[0].statements[0]
    assert isinstance(pushed, s.PushNew)

    def at(span: Span) -> str:
        return text[span.start : span.end]

    assert [at(each) for each in (declared.span, declared.parent_span)] == ["B", "A"]
    assert at(declared.attributes[0].span) == "x"
    assert [at(rule.span), at(rule.output_span), at(rule.ports[0].name_span)] == ["X", "B", "a"]
    assert at(rule.ports[0].span) == "A a"
    assert at(rule.branches[0].span) == "l"
    assert [at(pushed.span), at(pushed.type_span)] == ["push new B {}", "B"]


def test_every_node_of_a_later_definition_has_a_place_in_the_whole_text() -> None:
    head = "eventtype A {}\n" * 10
    body = "A correlation X (A a where x > 1) l:(a ; a){2} { case l & !l: push new A { x = a.x } }"
    tree, codes = read(head + body)
    assert codes == []
    waiting: list[Any] = [tree.definitions[-1]]
    while waiting:
        node = waiting.pop()
        if isinstance(node, tuple):
            waiting.extend(node)
        elif is_dataclass(node) and not isinstance(node, Span):
            if hasattr(node, "span"):
                assert node.span.start >= len(head), node
            waiting.extend(getattr(node, each.name) for each in fields(node) if each.compare)


def test_places_count_through_all_files() -> None:
    source = Source((("one.cor", "eventtype A {}"), ("two.cor", "\n  eventtype ;")))
    diagnostics = Diagnostics(source)
    parse_tree(source, diagnostics)
    (found,) = diagnostics.found

    assert (found.file, found.line, found.column) == ("two.cor", 2, 13)
