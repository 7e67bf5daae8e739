"""What people write who come from another language is answered with the line to write here."""

from __future__ import annotations

import re

import pytest

import ensue
from ensue.errors import LibraryError
from ensue.lang.diagnostics import Diagnostic

TYPES = """
eventtype A { attribute string user; attribute double price; attribute long n;
              attribute string ip; }
eventtype B : A {}
eventtype C : A {}
eventtype Out { attribute string user; }
"""


def rule(head: str, ports: str = "A a, B b, C c", statement: str = "case true: push a;") -> str:
    return f"{TYPES}A correlation R ({ports})\n    {head}\n{{ {statement} }}\n"


def findings(text: str) -> tuple[Diagnostic, ...]:
    try:
        return ensue.parse(text).warnings
    except LibraryError as error:
        return tuple(error.diagnostics)


def hints(text: str) -> list[str]:
    return [each.hint or "" for each in findings(text)]


# What is written after the ports `A a, B b, C c`, and the line that the hint offers.
HEADS = [
    ("a ; !b", "a ; timeout(30 s) unless b"),
    ("a ; !b ; c", "a ; c unless b"),
    ("a ; not b", "a ; timeout(30 s) unless b"),
    ("a ; NOT b ; c", "a ; c unless b"),
    ("a ; no b within 5 min", "a ; timeout(5 min) unless b"),
    ("a and not b", "a ; timeout(30 s) unless b"),
    ("a -> b", "a ; b"),
    ("a => b", "a ; b"),
    ("a -> b -> c within 5m", "a ; b ; c within 5 min"),
    ("a followed by b", "a ; b"),
    ("a FOLLOWED BY b", "a ; b"),
    ("a followedBy b", "a ; b"),
    ("a then b", "a ; b"),
    ("a b", "a ; b"),
    ("a b+ c", "a ; b ; c"),
    ("a b* c", "a ; c"),
    ("a b? c", "a ; c"),
    ("a\n    b", "a ; b"),
    ("every a -> b", "a ; b"),
    ("every (a ; b)", "(a ; b)"),
    ("a and b", "a + b"),
    ("a AND b", "a + b"),
    ("a && b", "a + b"),
    ("a & b", "a + b"),
    ("a or b", "a | b"),
    ("a, b", "a ; b"),
    ("a times 5", "a{5}"),
    ("a[5]", "a{5}"),
    ("5 a", "a{5}"),
    ("[5] a", "a{5}"),
    ("5 times a", "a{5}"),
    ("COUNT(a) > 5", "a having count(a) > 5"),
    ("a count(a) >= 5 within 1 min", "a within 1 min having count(a) >= 5"),
    ("a ; b within 5m", "a ; b within 5 min"),
    ("a ; b within 5 minutes", "a ; b within 5 min"),
    ("a ; b within INTERVAL '5' MINUTE", "a ; b within 5 min"),
    ("a ; b within (5 min)", "a ; b within 5 min"),
    ('a ; b within "90 seconds"', "a ; b within 90 s"),
    ("within 5 min a ; b", "a ; b within 5 min"),
    ("a ; b with maxspan=5m", "a ; b within 5 min"),
    ("a ; b maxspan=1h", "a ; b within 1 h"),
    ("a ; b timeframe: 5m", "a ; b within 5 min"),
    ("a ; b group by user", "a ; b by user"),
    ("a ; b GROUP BY user", "a ; b by user"),
    ("a ; b partition by user", "a ; b by user"),
    ("a ; b on user", "a ; b by user"),
    ("a ; b by (user)", "a ; b by user"),
    ("a ; b order by time", "a ; b"),
    ("a ; b until c", "a ; b unless c"),
    ("a ; b without c", "a ; b unless c"),
    ("a ; b unless !c", "a ; b unless c"),
    ("a ; b where a.user = b.user", "a ; b having a.user = b.user"),
    ("a ; b where b.price < a.price * 0.95", "a ; b having b.price < a.price * 0.95"),
    ("a ; b having a.price == b.price", "a ; b having a.price = b.price"),
    ("a ; b having a.n > 3 && b.n > 2", "a ; b having a.n > 3 AND b.n > 2"),
    ("a ; b having a.n > 3 || b.n > 2", "a ; b having a.n > 3 OR b.n > 2"),
    ("a ; b having !(a.n > 3)", "a ; b having NOT (a.n > 3)"),
    ("a ; b having b.price < .95 * a.price", "a ; b having b.price < 0.95 * a.price"),
    ("a ; b having b.price < 95% * a.price", "a ; b having b.price < 0.95 * a.price"),
    ("a within 1 h having count(DISTINCT a.ip) > 5", "a within 1 h having distinct(a.ip) > 5"),
    ("a ; b having b.time - a.time < 5 min", "a ; b having b.time - a.time < 300"),
    ("a ; timeout(5m)", "a ; timeout(5 min)"),
    ("a + timeout(5 min)", "a ; timeout(5 min)"),
    ("a ; after 5 min", "a ; timeout(5 min)"),
    ("a ; wait 5 min", "a ; timeout(5 min)"),
]


@pytest.mark.parametrize(("written", "line"), HEADS)
def test_a_filter_of_another_language_is_answered_with_ours(written: str, line: str) -> None:
    (hint,) = {each.hint for each in findings(rule(written)) if each.code == "syntax"}

    assert (hint or "").startswith(f"write `{line}`")
    assert [each for each in findings(rule(line)) if each.severity == "error"] == []


PORTS = [
    ("A a where price == 3", "A a where price = 3"),
    ("A a where price ~= 3", "A a where price != 3"),
    ("A a where price > 3 && n > 2", "A a where price > 3 AND n > 2"),
    ("A a where !(price = 3)", "A a where NOT (price = 3)"),
    ("A a where user =~ 'ann.*'", "A a where user MATCHES 'ann.*'"),
    ("A a where user contains '5%'", r"A a where user LIKE '%5\%%'"),
    ("A a where user startswith 'a'", "A a where user LIKE 'a%'"),
    ("A a where user in ['x', 'y']", "A a where user IN ('x', 'y')"),
    ("A a where user == null", "A a where user IS NULL"),
    ("A a where user == 'a == b'", "A a where user = 'a == b'"),
    ("A a if user = 'x'", "A a where user = 'x'"),
    ("A a [user = 'x']", "A a where user = 'x'"),
    ("a: A", "A a"),
    ("A as a", "A a"),
]


@pytest.mark.parametrize(("written", "line"), PORTS)
def test_a_port_of_another_language_is_answered_with_ours(written: str, line: str) -> None:
    assert hints(rule("a", written))[0].startswith(f"write `{line}`")
    assert hints(rule("a", line)) == []


ATTRIBUTES = [
    ("attribute int n;", "attribute long n;"),
    ("attribute bigint n;", "attribute long long n;"),
    ("attribute varchar n;", "attribute string n;"),
    ("attribute number n;", "attribute double n;"),
    ("attribute string[] n;", "attribute sequence<string> n;"),
    ("attribute list<string> n;", "attribute sequence<string> n;"),
    ("n: string;", "attribute string n;"),
    ("string n;", "attribute string n;"),
    ("attribute string n", "attribute string n;"),
    ("n int;", "attribute long n;"),
]


@pytest.mark.parametrize(("written", "line"), ATTRIBUTES)
def test_an_attribute_of_another_language_is_answered_with_ours(written: str, line: str) -> None:
    assert hints(f"eventtype X {{ {written} }}")[0].startswith(f"write `{line}`")
    assert hints(f"eventtype X {{ {line} }}") == []


STATEMENTS = [
    ("case true: emit new A { user = a.user };", "push new A { user = a.user };"),
    ("case true: push A { user = a.user };", "push new A { user = a.user };"),
    ("case true: new A { user = a.user };", "push new A { user = a.user };"),
    ("case true: push new A { user: a.user };", "push new A { user = a.user };"),
    ("case true: push new A { user = a.user; };", "push new A { user = a.user };"),
    ("case true push a;", "case true: push a;"),
    ("case true: return a;", "push a;"),
]


@pytest.mark.parametrize(("written", "line"), STATEMENTS)
def test_a_statement_of_another_language_is_answered_with_ours(written: str, line: str) -> None:
    assert hints(rule("a", "A a", written))[0].startswith(f"write `{line}`")


OTHERS = [
    (rule("f{2,5}", "A f"), "write `f{2}` and the clause `having count(f) <= 5`"),
    (rule("f{,5}", "A f"), "write `f having count(f) <= 5`"),
    (rule("f{5+}", "A f"), "write `f{5}`"),
    (rule("f having COUNT(*) > 5", "A f"), "name the port whose events are counted"),
    (rule("f within 1 h having average(f.n) > 5", "A f"), "write `avg(a.Name)`"),
    (rule("a having a.n > prev(a.n)", "A a"), "`a ; b keep last bind latest`"),
    (rule("a", "A a where time > now()"), "a rule does not ask the clock"),
    (rule("a", "A a where user = NULL"), "write `IS NULL`"),
    (rule("a", "A a where user = ann"), "a text stands in quotes: `'ann'`"),
    (rule("a", "A a where count(a) > 5"), "`having count(a) > ...`"),
    (rule("a ; b", "A a, B b where price < a.price"), "`having b.price < a.price`"),
    (rule("a ; b", "A a, B b where b.n < a.n"), "`having b.n < a.n`"),
    (rule("a ; b", "A a, B b where a.user = b.user"), "or `by user`"),
    (rule("a ; b unless c.n = 3"), "`unless` names a port"),
    (rule("a ; b bind all"), "aggregates such as `count(a)`"),
    (rule("a ; b keep first"), "`keep last` or `keep all`"),
    (rule("timeout(5 min) ; b"), "write `a ; timeout(30 s)`"),
    (rule("a ; b WITHIN 5 min"), "did you mean `within`?"),
    (rule("!b"), "`a ; timeout(30 s) unless b`"),
    ("eventtype com.github.push {}", '`eventtype Push = "com.github.push" {}`'),
    ('eventtype "com.github.push" {}', '`eventtype Push = "com.github.push" {}`'),
    ("eventtype my-type {}", '`eventtype Type = "my-type" {}`'),
    ("# a comment\neventtype X {}", "a comment begins with `//`"),
    ("-- a comment\neventtype X {}", "a comment begins with `//`"),
    ('import "x.cor";', "several files are read as one library"),
    (f"{TYPES}rule R (A a) a {{}}", "`Type correlation R (...)`"),
    (f"{TYPES}correlation R (A a) a {{}}", "`Type correlation R (...)`"),
]


@pytest.mark.parametrize(("text", "advice"), OTHERS)
def test_what_cannot_be_rewritten_is_answered_with_advice(text: str, advice: str) -> None:
    assert advice in " ".join(hints(text))


GOOD = [
    rule("a{51,}", "A a"),
    rule("a within 1 h having COUNT(a) > 5", "A a"),
    rule("a", 'A a where user = "ann"'),
    rule("a", "A a where n <> 3 AND price != 2.0"),
]


@pytest.mark.parametrize("text", GOOD)
def test_what_ours_has_too_is_good(text: str) -> None:
    assert findings(text) == ()


def test_a_line_is_offered_only_if_its_names_are_ports() -> None:
    for written in ("a wihin 5 s", "a x b", "a -> nothing", "hello world"):
        assert not any(each.startswith("write `") for each in hints(rule(written))), written


def test_all_mistakes_of_a_rule_are_found_at_once() -> None:
    text = rule("a -> b group by user within 5m", "A a where n == 3, b: B", "emit a;")

    assert [each.line for each in findings(text)] == [7, 7, 8, 8, 9]
    assert all(re.match("write `", each) for each in hints(text))
    assert "`a ; b by user within 5 min`" in hints(text)[2]
