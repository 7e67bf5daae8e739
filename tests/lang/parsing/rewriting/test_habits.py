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
    ("a >> b", "a ; b"),
    ("a*5 within 1 h", "a{5} within 1 h"),
    ("(a ; b) * 2", "(a ; b){2}"),
    ("a ; b unless (c)", "a ; b unless c"),
    ("a ; b unless c | a", "a ; b unless c, a"),
    ("a ; b unless (c or a) by user", "a ; b unless c, a by user"),
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
    # Flink CEP
    ('begin("a").next("b")', "a ; b"),
    ('begin("a").followedBy("b").within(Time.minutes(5))', "a ; b within 5 min"),
    ("a.followedBy(b).within(Duration.ofHours(2))", "a ; b within 2 h"),
    ("a.times(3)", "a{3}"),
    ("a.timesOrMore(3)", "a{3}"),
    ("a.oneOrMore()", "a"),
    ("a.notFollowedBy(b).within(5 min)", "a ; timeout(5 min) unless b"),
    ("a notFollowedBy b", "a ; timeout(30 s) unless b"),
    # Esper
    ("pattern [every a -> b]", "a ; b"),
    ("every a=A -> b=B", "a ; b"),
    ("a -> timer:interval(5 min)", "a ; timeout(5 min)"),
    ("a -> (timer:interval(5 min) and not b)", "a ; timeout(5 min) unless b"),
    ("a -> b where timer:within(5 min)", "a ; b within 5 min"),
    ("a#time(10 min)", "a within 10 min"),
    ("a.win:time(10 min) having count(a) > 5", "a within 10 min having count(a) > 5"),
    # EQL, Sigma and SQL
    ("a with runs=5", "a{5}"),
    ("sample a b", "a + b"),
    ("a near b", "a + b"),
    ("a union b", "a | b"),
    # plain words
    ("a before b", "a ; b"),
    ("b after a", "a ; b"),
    ("b within 5 min of a", "a ; b within 5 min"),
    ("a ; b after 5 min", "a ; timeout(5 min) ; b"),
    ("no a for 5 min", "a ; timeout(5 min) unless a"),
    ("a and no b for 5 min", "a ; timeout(5 min) unless b"),
    ("at least 3 a", "a{3}"),
    ("a session 30 min", "a ; timeout(30 min) unless a"),
    ("a within sliding 5 min", "a within 5 min"),
    ("a \u2192 b", "a ; b"),
    # durations
    ("a ; b within 1 h 30 min", "a ; b within 90 min"),
    ("a ; b within 1h30m", "a ; b within 90 min"),
    ("a ; b within 1,5 h", "a ; b within 1.5 h"),
    ("a ; b within 2 weeks", "a ; b within 14 d"),
    ("a ; b within 1 month", "a ; b within 30 d"),
    ("a ; b within 5 us", "a ; b within 0.005 ms"),
    ("a ; b within 00:05:00", "a ; b within 5 min"),
    ("a ; b within PT5M", "a ; b within 5 min"),
    ("a ; timeout 30 min unless b", "a ; timeout(30 min) unless b"),
    # signs
    ("a ;; b", "a ; b"),
    ("a ; b by user and n", "a ; b by user, n"),
    ("a ; b having b.price < a.price - 5%", "a ; b having b.price < 0.95 * a.price"),
    ("a ; b having b.price > a.price + 3%", "a ; b having b.price > 1.03 * a.price"),
    ("a ; b having b.price \u2265 a.price", "a ; b having b.price >= a.price"),
]


@pytest.mark.parametrize(("written", "line"), HEADS)
def test_a_filter_of_another_language_is_answered_with_ours(written: str, line: str) -> None:
    given = [each.hint or "" for each in findings(rule(written)) if each.code == "syntax"]

    # What stands behind a mistake in brackets may be reported besides, and tells the same.
    assert given[0].startswith(f"write `{line}`")
    assert all(each.startswith("write `") for each in given)
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
    ("a = A", "A a"),
    ("A(price > 3) a", "A a where price > 3"),
    ("A a where user ILIKE 'Ann%'", "A a where LOWER(user) LIKE 'ann%'"),
    ("A a where user : 'ann*'", "A a where user LIKE 'ann%'"),
    ("A a where user : 'ann'", "A a where user = 'ann'"),
    ("A a where user : ('x', 'y')", "A a where user IN ('x', 'y')"),
    ("A a where user|contains 'x'", "A a where user LIKE '%x%'"),
    ("A a where user =~ /x.*/", "A a where user MATCHES 'x.*'"),
    ("A a where EXTRACT(HOUR FROM time) = 5", "A a where HOUR(time) = 5"),
    ("A a where time > DATE '2024-01-01'", "A a where time > 2024-01-01T00:00:00Z"),
    ("A a where CAST(user AS int) = 5", "A a where INT(user) = 5"),
    ("A a where user::int = 5", "A a where INT(user) = 5"),
    ("A a where user = 'it''s'", r"A a where user = 'it\'s'"),
    ("A a where user = \u201cann\u201d", 'A a where user = "ann"'),
    ("A a where n > 1_000", "A a where n > 1000"),
    ("A a where `user` = 'x'", "A a where user = 'x'"),
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
    ("attr string n;", "attribute string n;"),
    ("field int n;", "attribute long n;"),
    ("attribute string? n;", "attribute string n;"),
    ("attribute string n = 'x';", "attribute string n;"),
    ("attribute string n not null;", "attribute string n;"),
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
    ("case true: push new A { user := a.user };", "push new A { user = a.user };"),
    ("case true: abort l;", "abort(l);"),
    ("case true: revive l, m;", "revive(l, m);"),
    ("case true: return a;", "push a;"),
    ("case true: emit Out", "push new Out {};"),
    ("case true: push new A { a.user as user };", "push new A { user = a.user };"),
    ("case true: push new A { n = CAST(a.price AS int) };", "push new A { n = INT(a.price) };"),
    (
        "case true: push new A { user = a.user || 'x' };",
        "push new A { user = CONCAT(a.user, 'x') };",
    ),
    ("default: push a;", "case true:"),
]


@pytest.mark.parametrize(("written", "line"), STATEMENTS)
def test_a_statement_of_another_language_is_answered_with_ours(written: str, line: str) -> None:
    assert hints(rule("a", "A a", written))[0].startswith(f"write `{line}`")


OTHERS = [
    (rule("f{2,5}", "A f"), "write `f{2}` and the clause `having count(f) <= 5`"),
    (rule("f{,5}", "A f"), "write `f having count(f) <= 5`"),
    (rule("f{5+}", "A f"), "write `f{5}`"),
    (rule("f{5", "A f"), "close the brackets: `f{5}`"),
    (rule("f{5 ; f", "A f"), "close the brackets: `f{5}`"),
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
    ("include x.cor;", "several files are read as one library"),
    (f"{TYPES}rule R (A a) a {{}}", "`Type correlation R (...)`"),
    (f"{TYPES}correlation R (A a) a {{}}", "`Type correlation R (...)`"),
    # definitions
    ("rules.cor", '`ensue.load("rules.cor")` reads it'),
    ("SELECT * FROM A", "a rule is written as `Out correlation Name (Type a)"),
    ("sequence by user [a where b == 1]", "a rule is written as"),
    ("CREATE TABLE A (user string);", "an event type is declared by `eventtype Name {"),
    ("class A { String user; }", "an event type is declared by"),
    ("title: x\ndetection: y\n", "a library is no YAML"),
    ('{"type": "record"}', "a library is no JSON"),
    ("const LIMIT = 5;", "a library has no constants"),
    ("eventtype B extends A {}", "write `eventtype B : A {`"),
    ("eventtype A (user string)", "attributes stand in braces"),
    ("eventtype A { attribute struct host; }", "`attribute string host.name;`"),
    ("eventtype A { attribute map<string, string> tags; }", "data that no type declares"),
    ("eventtype A { attribute enum kind; }", "write `attribute string name;`"),
    ("eventtype A { attribute string x attribute long y; }", "an attribute ends with `;`"),
    (f"{TYPES}A correlation R a {{ case true: push a; }}", "stand in brackets behind its name"),
    (f"{TYPES}A correlation R () a {{ case true: push a; }}", "a rule reads events by its ports"),
    (f"{TYPES}A correlation R (A a) {{ case true: push a; }}", "a filter stands before the body"),
    (f"{TYPES}A correlation R (A a) within 5 min {{}}", "`a within 5 min`"),
    (f"{TYPES}A correlation R (A a) a", "a rule ends with its body"),
    (f"{TYPES}A correlation R (A a) a push a;", "what is put out stands in braces"),
    # filters and clauses
    (rule("a # first", "A a"), "a comment begins with `//`"),
    (rule("a -- first", "A a"), "a comment begins with `//`"),
    (rule("a[n > 3] ; b"), "`A a where n > 3`"),
    (rule("a where n > 3 ; b"), "`A a where n > 3`"),
    (rule("a(n > 3) ; b"), "`A a where n > 3`"),
    (rule("a ; b unless c where n > 3"), "`C c where n > 3`"),
    (rule("a.user ; b"), "a filter names ports, not their attributes"),
    (rule("1 of them"), "`a | b` asks for one of them"),
    (rule("a xor b"), "`a | b` asks for one of them"),
    (rule("a tumbling 5 min", "A a"), "`every 5 min tick`"),
    (rule("a#length(5)", "A a"), "a window is a time"),
    (rule("a ; timout(5 min) unless b"), "did you mean `timeout`?"),
    (rule("a ; b bind lates"), "did you mean `latest`?"),
    (rule("a ; b within 0"), "a duration is longer than zero"),
    (rule("a ; b within -5 s"), "a duration is a number and a unit"),
    (rule("a ; b within 5"), "give the duration a unit, ms, s, min, h or d: `5 s`"),
    (rule("a limit 10", "A a"), "clauses follow: `within`, `by`"),
    (rule("a within 1 h limit 10", "A a"), "the clauses are `within`"),
    (rule("a join b on a.n = b.n", "A a, B b"), "write `a + b by a.n = b.n`"),
    (rule("a ; b by a.n == b.n", "A a, B b"), "write `a ; b by a.n = b.n`"),
    (rule("a by LOWER(user)", "A a"), "a key is an attribute and is not computed"),
    (rule("a by", "A a"), "a key is named behind `by`"),
    (rule("a ; b by a.user = b.user and a.n = 1"), "values are compared in `having`"),
    (rule("a ; b by user = ip", "A a, B b"), "`by a.user = b.ip`"),
    (rule("a ; b within 5 s within 6 s"), "leave one of them out"),
    (rule("a ; b by user within 5 min;"), "write `a ; b by user within 5 min`"),
    (rule("a ; b; within 5 min; by user"), "write `a ; b within 5 min by user`"),
    (rule("a ; timeout(5 min) ; !b"), "write `a ; timeout(5 min) unless b`"),
    (rule("a ; b)"), "there is no `(` that it closes"),
    (rule("a{3..5}", "A a"), "write `a{3}` and the clause `having count(a) <= 5`"),
    (rule("a{>=3}", "A a"), "write `a{3}`"),
    (rule("a ; b", "A a; B b"), "ports are parted by commas"),
    (rule("a ; b", "A a B b"), "ports are parted by commas"),
    (rule("a ; b", "a, b"), "a port has a type and a name: `Type a`"),
    (rule("a ; b", "A, B"), "a port has a type and a name: `A a`"),
    (rule("a", "A a where n > 3, user = 'x'"), "conditions at a port are joined by `AND`"),
    (rule("a", "A a, every 5 min"), "a timer has a name"),
    (rule("a ; t", "A a, every '0 6 * * *' t"), "let a scheduler send an event"),
    (rule("a ; b by a", "A a, B b"), "`a` is a port: name an attribute"),
    (f"{TYPES}A correlation R (A a) a {{ case true: push a; }} within 5 min", "stands before the"),
    ("eventtype A;", "write `eventtype A {}`"),
    ("eventtype A { attribute string user-name; }", "`--columns user_name=user-name`"),
    ("eventtype A { attribute string @timestamp; }", "a name has letters"),
    # expressions of an `ecl`
    (f"{TYPES}Out ecl R (A a, B b) {{ a ; b }}", "`sequential { a, b }`"),
    (f"{TYPES}Out ecl R (A a, B b) {{ notify {{ a unless b }} }}", "`do { a } unless { ... }`"),
    (f"{TYPES}Out ecl R (A a) {{ case true: push a; }}", "an `ecl` holds one expression"),
    (
        f"{TYPES}Out correlation R (A a, B b) sequential {{ a, b }} {{}}",
        "an expression of an `ecl`",
    ),
    # conditions and values
    (rule("a", "A a where n > 3 and"), "a value or a condition is missing"),
    (rule("a", "A a where n is not 3"), "`IS` asks for `NULL` only"),
    (rule("a", "A a where user in 'x'"), "`IN ('x')`"),
    (rule("a", "A a where user = 'x' or 'y'"), "compare it too: `name = 'y'`"),
    (rule("a", "A a where 3 < n < 5"), "write `3 < n AND n < 5`"),
    (rule("a ; b having b.time - a.time < '5 min'"), "write `300`"),
    (rule("a ; b having b.time < a.time + 300"), "`b.time - a.time` is a number of seconds"),
    (rule("a within 1 h having distinct(a.user, a.ip) > 3", "A a"), "write `distinct(a.user)`"),
    (rule("a within 1 h having count(distinct ip) > 5", "A a"), "write `distinct(a.ip)`"),
    (rule("a within 1 h having count(a where n > 3) > 5", "A a"), "`A a2 where ...`"),
    (rule("a within 1 h having sum(a.n * a.price) > 5", "A a"), "what is computed must be"),
    (rule("a within 1 h having cont(a) > 5", "A a"), "did you mean `count`?"),
    (rule("a within 1 h having median(a.n) > 5", "A a"), "the aggregates are `count`"),
    (rule("a within 1 h having count(a) > $limit", "A a"), "a rule has no parameters"),
    (rule("a{3} having a[0].n > 3", "A a"), "`first(a.name)`"),
    (rule("a", "A a where n BETWEEN 3, 5"), "write `BETWEEN 3 AND 5`"),
    (rule("a", "A a where n > 1,000"), "`1000`"),
    (rule("a", "A a where n ** 2 > 4"), "write `x * x`"),
    (rule("a", "A a where n > 3 adn n < 5"), "did you mean `AND`?"),
    (rule("a", "A a where user in (select user from B)"), "a predicate asks one event"),
    (rule("a", "A a where user LIKE 'x*'"), "write `LIKE 'x%'`"),
    (rule("a", "A a where user > 3"), "write `INT(user) > 3`"),
    (rule("a", "A a where user = 3"), "write `user = '3'`"),
    (rule("a", "A a where time > '2024-01-01'"), "write `2024-01-01T00:00:00Z`"),
    (rule("a", "A a where \"user\" = 'x'"), "an attribute stands without quotes: `user`"),
    # bodies
    (rule("a", "A a", "push new A { n = a.n };"), "put `case true:` before it"),
    (rule("a", "A a", "case else: push a;"), "`case true:`"),
    (rule("a", "A a", "case a: push a;"), "`a` is a port; put a label before its place"),
    (rule("x:a", "A a", "case not x: push a;"), "`case !x:`"),
    (rule("a", "A a", "case true; push a;"), "the labels of a case end with `:`"),
    (rule("a", "A a", "case true: push new A { user = a.user n = 1 };"), "parted by commas"),
    (rule("a", "A a", "case a.n > 3: push a;"), "a case asks for labels"),
    (rule("a", "A a", "if (a.n > 3) push a;"), "a condition stands before the body"),
    (rule("a", "A a", "within 5 min; case true: push a;"), "stands before the `{`"),
    (rule("a", "A a", "case true: push new { n = 1 };"), "`push new A {`"),
    (rule("a", "A a", "case true: push new A { n, user };"), "`n = a.n`"),
    (rule("a", "A a", "case true: push new A { * };"), "`push a` sends the whole event on"),
    (rule("a", "A a", "case true: push Out;"), "`push new Out { ... }`"),
    (rule("a", "A a", "case true: print(a)"), "an event is put out by `push new A"),
    (rule("a", "A a", "case true: push new A { n = IF(a.n > 3, 1, 2) };"), "no branches"),
    (rule("a", "A a", "case true: push new A { n = a.n > 3 ? 1 : 2 };"), "no branches"),
    (rule("a", "A a", "case true: push new A { user = a.user + '!' };"), "`CONCAT(a.user, '!')`"),
    (rule("a", "A a", "case true: push new A { user = f'{a.user}' };"), "joined by `CONCAT"),
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
