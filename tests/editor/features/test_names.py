"""Names over the files of a library: completion, renaming, quick fixes, hovers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ensue.editor.checking import check_file
from ensue.editor.features.completion import complete
from ensue.editor.features.fixes import apply, fixes_for, keep_wire_name
from ensue.editor.features.hovering import hover
from ensue.editor.features.renaming import rename
from ensue.editor.project import Project
from ensue.errors import UsageError

CURSOR = "¦"
FILE = Path("/nowhere/rules.cor")
TYPES = """eventtype Base { attribute string user; };
eventtype Login : Base { attribute string host.name; attribute long tries; };
eventtype Logout { attribute string user; };
"""
HEAD = "Login correlation X (Login a, Logout b) "


def opened(text: str) -> tuple[Project, int]:
    project = Project()
    offset = text.find(CURSOR)
    project.open(FILE, text.replace(CURSOR, ""))
    return project, offset


def labels(text: str) -> set[str]:
    project, offset = opened(TYPES + text)
    return {each.label for each in complete(project, FILE, offset)}


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("¦", {"Base", "Login", "Logout", "eventtype"}),
        ("Login ¦", {"correlation", "ecl"}),
        ("Login correlation X (¦", {"Base", "Login", "Logout", "every", "deadline"}),
        ("Login correlation X (Login a ¦", {"from", "where"}),
        ("eventtype X { attribute sequence<¦", {"long", "string", "timestamp"}),
        ("eventtype X : Login { attribute string y = ¦", {"user", "tries", "EXTRACT", "time"}),
        (HEAD + "¦", {"a", "b"}),
        (HEAD + "a ; ¦ { }", {"a", "b", "timeout"}),
        (HEAD + "a ¦", {"within", "by", "bind", "keep", "unless", "having"}),
        (HEAD + "a bind ¦", {"first", "last", "latest"}),
        (HEAD + "a keep ¦", {"none", "last", "all"}),
        (HEAD + "a unless ¦", {"a", "b"}),
        (HEAD + "a by ¦", {"user", "tries", "host.name", "a", "b"}),
        (HEAD + "a within 10 ¦", {"ms", "s", "min", "h", "d"}),
        (HEAD + "a having ¦", {"a", "b", "count", "sum", "LENGTH"}),
        (HEAD + "a having a.¦", {"user", "tries", "host.name", "time"}),
        (HEAD + "a having sum(b.¦", {"user", "time"}),
        (HEAD + "l:a { ¦", {"case", "push", "abort", "revive", "toggle"}),
        (HEAD + "l:a { case ¦", {"l", "true"}),
        (HEAD + "l:a { abort(¦", {"l"}),
        (HEAD + "l:a { case l: push ¦", {"a", "b", "new"}),
        (HEAD + "l:a { case l: push new ¦", {"Base", "Login", "Logout"}),
        (HEAD + "l:a { case l: push new Login { ¦", {"user", "tries", "host.name"}),
        (HEAD + "l:a { case l: push a ¦", {"with", "push", "case"}),
        (HEAD + "l:a { case l: push a with { ¦", {"priority", "expirytime", "subject"}),
        (HEAD + "l:a { case l: push new Login {} with { priority = ¦", {"a", "b", "count"}),
        (HEAD + "l:a { case l: push a with { subject = a.¦", {"user", "tries", "host.name"}),
        ("Login ecl X (Login a) { repeat { ¦ } }", {"a", "notify", "select*", "timeout"}),
        ("Login ecl X (Login a) { push(¦", {"Base", "Login", "Logout"}),
        ("Login correlation X (Login a where ¦", {"user", "tries", "source", "LOWER", "EXISTS"}),
        ("Login correlation X (Login a where host.¦", {"name"}),
        ("Login correlation X (Login a where tries ¦", {"BETWEEN", "IS", "IN", "AND"}),
    ],
)
def test_what_can_stand_at_a_place_is_offered(text: str, offered: set[str]) -> None:
    assert offered <= labels(text)


def test_only_what_can_stand_there_is_offered() -> None:
    assert labels(HEAD + "a ¦").isdisjoint({"a", "case", "eventtype", "AND"})
    assert labels(HEAD + "l:a { case l: push new Logout { ¦") == {"user"}
    assert labels(HEAD + "l:a { case ¦") == {"l", "true"}


@pytest.mark.parametrize("text", ["// Log¦", "/* a ¦", 'Login correlation X (Login a from "¦'])
def test_nothing_is_offered_in_comments_and_texts(text: str) -> None:
    assert labels(text) == set()


def renamed(text: str, name: str) -> str:
    project, offset = opened(text)
    document = project.document(FILE)
    assert document is not None
    edits = rename(project, FILE, offset, name)
    return apply(document.text, edits.get(FILE, ()))


RULE = HEAD + "l:(a ; b) within 1 min by user having a.tries > 1 "
BODY = "{ case l: push new Login { user = a.user, tries = a.tries }; }\n"


@pytest.mark.parametrize(
    ("mark", "name", "expected"),
    [
        ("Login a,", "first", "Login correlation X (Login first, Logout b) l:(first ; b)"),
        ("l:(a", "both", "both:(a ; b)"),
        ("X (Login", "Seen", "Login correlation Seen (Login a"),
        ("Login a", "SignIn", "SignIn correlation X (SignIn a"),
        ("a.tries >", "attempts", "having a.attempts > 1"),
    ],
)
def test_a_name_changes_wherever_it_stands(mark: str, name: str, expected: str) -> None:
    old = {
        "Login a,": "a,",
        "l:(a": "l:",
        "X (Login": "X",
        "Login a": "Login",
        "a.tries >": "tries",
    }
    at = mark.index(old[mark])
    text = TYPES + (RULE + BODY).replace(mark, mark[:at] + CURSOR + mark[at:], 1)
    result = renamed(text, name)
    project = Project()
    project.open(FILE, result)

    assert expected in result
    assert check_file(project, FILE).all.library is not None


def test_an_attribute_is_renamed_in_all_types_that_a_key_joins() -> None:
    result = renamed(TYPES + (RULE + BODY).replace("by user", "by us¦er"), "account")

    assert "user" not in result
    assert result.count("attribute string account;") == 2


@pytest.mark.parametrize(
    ("mark", "name", "reason"),
    [
        ("(Login ¦a,", "b", "there is a port `b`"),
        ("eventtype ¦Logout", "Login", "there is an event type `Login`"),
        ("¦tries;", "user", "already"),
        ("¦tries;", "2x", "cannot be a name"),
        ("¦tries;", "time", "`time`"),
        ("eventtype ¦Logout", "a.b", "cannot be a name"),
    ],
)
def test_a_name_that_would_clash_is_refused(mark: str, name: str, reason: str) -> None:
    text = (TYPES + RULE + BODY).replace(mark.replace(CURSOR, ""), mark, 1)

    with pytest.raises(UsageError, match=reason):
        renamed(text, name)


@pytest.mark.parametrize("mark", ["¦within 1", "having ¦sum(a.tries) > 1 AND a", "¦// x"])
def test_what_a_library_does_not_declare_cannot_be_renamed(mark: str) -> None:
    text = TYPES + "// x\n" + RULE.replace("having a", "having sum(a.tries) > 1 AND a") + BODY

    with pytest.raises(UsageError):
        renamed(text.replace(mark.replace(CURSOR, ""), mark, 1), "other")


def test_a_port_is_not_given_a_name_that_catches_an_attribute() -> None:
    # `host.name` would be the attribute `name` of a port `host`.
    text = (
        "eventtype A { attribute string host.name; };\n"
        "A correlation R (A ¦a where host.name = 'x') a by host.name { case true: push a; }\n"
    )

    with pytest.raises(UsageError):
        renamed(text, "host")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Login correlation X (Login a) a -> a within 5m { push a }", "a ; a within 5 min"),
        ("Login correlation X (Logn a) a { case true: push a; }", "(Login a)"),
        ("Login correlation X (Login a where usr = 'x') a { case true: push a; }", "user = 'x'"),
        ("Login correlation X (Login a) a wihin 5 s { case true: push a; }", "a within 5 s"),
        ("Login correlation X (Login a where a.tries > 1) a { case true: push a; }", "where tries"),
        (
            "Login correlation X (Login a) a{2,5} { case true: push a; }",
            "a{2} having count(a) <= 5",
        ),
    ],
)
def test_a_hint_becomes_an_edit_that_mends_the_mistake(text: str, line: str) -> None:
    project, _ = opened(TYPES + text)
    document = project.document(FILE)
    assert document is not None
    findings = check_file(project, FILE).diagnostics
    fixes = [fix for each in findings for fix in fixes_for(project, FILE, each)]
    mended = apply(document.text, fixes[0].edits)
    after = Project()
    after.open(FILE, mended)

    assert " ".join(line.split()) in " ".join(mended.split())
    assert len(check_file(after, FILE).diagnostics) < len(findings)


def test_a_missing_type_is_declared_before_the_rule() -> None:
    project, _ = opened("// About A.\nA correlation R (A a) a { case true: push a; }\n")
    document = project.document(FILE)
    assert document is not None
    (fix,) = fixes_for(project, FILE, check_file(project, FILE).diagnostics[0])

    assert apply(document.text, fix.edits).startswith("// About A.\neventtype A {};\nA correlation")


def test_a_type_can_keep_its_name_on_the_wire() -> None:
    project, offset = opened(TYPES.replace("eventtype Login", "eventtype ¦Login"))
    document = project.document(FILE)
    assert document is not None
    fix = keep_wire_name(document, offset)

    assert fix is not None
    assert 'eventtype Login = "Login" : Base' in apply(document.text, fix.edits)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (RULE.replace("Login a,", "Log¦in a,"), "attribute string user;  // of Base"),
        (RULE.replace("a.tries >", "a.tr¦ies >"), "attribute long tries;  // of Login"),
        (RULE.replace("(a ; b)", "(a¦ ; b)"), "Port of `X`: Login events"),
        (RULE.replace("l:(a", "l¦:(a"), "active if `a`, then `b` was met"),
        (RULE.replace("X (", "X¦ ("), "`a`, then `b`"),
        (RULE.replace("within", "with¦in"), "Events older than this"),
        (RULE.replace("a.tries", "co¦unt(a)"), "How many events match the port"),
        (HEAD + "a { case true: push a with { prio¦rity = 9 }; }", "events of a larger one come"),
        (HEAD + "a { case true: push a with { subject = a.us¦er }; }", "attribute string user;"),
    ],
)
def test_a_hover_tells_what_a_name_stands_for(text: str, shown: str) -> None:
    project, offset = opened(TYPES + text + BODY)
    found = hover(project, FILE, offset)

    assert found is not None
    assert shown in found.text


def test_a_hover_over_a_library_with_mistakes_shows_the_outline() -> None:
    project, offset = opened(TYPES + RULE.replace("X (", "X¦ (").replace("a.tries", "a.nothing"))
    found = hover(project, FILE, offset)

    assert found is not None
    assert "Login correlation X (Login a, Logout b)" in found.text


def test_a_pipe_in_a_folder_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "pipe.cor"
    os.mkfifo(path)

    assert Project().document(path) is None


DERIVED = """eventtype Log {
    attribute string text;
    attribute string user = EXTRACT(text, 'user=(\\w+)');
    attribute string who = UPPER(user);
};
Log correlation X (Log a where user = 'root') a { case true: push new Log { text = a.user }; }
"""


def test_a_derived_attribute_is_renamed_where_others_need_it() -> None:
    """The declaration, the value that needs it, the predicate and the value of an output."""
    result = renamed(DERIVED.replace("string user", "string us¦er"), "login")

    assert "attribute string login = EXTRACT(text" in result
    assert "UPPER(login)" in result
    assert "where login = 'root'" in result
    assert "text = a.login" in result


def test_what_a_derived_attribute_needs_is_renamed_in_its_value() -> None:
    result = renamed(DERIVED.replace("string text", "string te¦xt"), "line")

    assert "EXTRACT(line, 'user=" in result
    assert "push new Log { line = a.user }" in result


def test_a_hover_shows_how_an_attribute_is_worked_out() -> None:
    project, offset = opened(DERIVED.replace("where user", "where us¦er"))
    found = hover(project, FILE, offset)

    assert found is not None
    assert "attribute string user = EXTRACT(text, 'user=(\\w+)');  // of Log" in found.text


def test_what_is_worked_out_is_not_offered_where_values_are_set() -> None:
    offered = labels(DERIVED + "Log correlation Y (Log a) a { case true: push new Log { ¦")

    assert offered == {"text"}


PATTERNS = """parameter string begins = 'a%';
parameter duration pause = 5 s;
eventtype A { attribute string s; };
A correlation X (A a where s LIKE begins AND s MATCHES begins AND start AFTER(pause) (s = 'x')) a
{ case true: push a; }
"""


def test_a_parameter_is_renamed_where_it_is_a_pattern_or_a_window() -> None:
    for name in ("begins", "pause"):
        project, offset = opened(PATTERNS.replace(f" {name} =", f" {name}¦ =", 1))
        found = rename(project, FILE, offset, "other")[FILE]
        assert len(found) == PATTERNS.count(name)


def test_parameters_are_offered_as_patterns() -> None:
    assert "begins" in labels(PATTERNS.replace("LIKE begins", "LIKE ¦"))
