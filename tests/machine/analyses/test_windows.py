"""What a window leaves no time for, held against the reference engine."""

from __future__ import annotations

from random import Random

import pytest

import ensue
from ensue.engine.run import run_bounded
from ensue.explaining.findings import with_analyses
from ensue.lang.source import Source
from ensue.machine.analyses.comparison import compare
from ensue.machine.analyses.spans import never_met

from . import rules

SECOND = 1_000_000
TYPES = "eventtype Out {}; eventtype A { attribute long n; }; eventtype B { attribute long n; };\n"


def rule(text: str) -> ensue.Library:
    return ensue.parse(f"{TYPES}Out correlation X {text} {{ case true: push new Out {{}}; }}")


def codes(library: ensue.Library) -> list[str]:
    return [each.code for each in with_analyses(library, Source.of(str(library)), 30.0)]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("(A a) a ; timeout(30 min) within 10 min", 1),
        ("(A a) a ; timeout(10 min) within 10 min", 0),
        ("(A a, B b) a ; timeout(6 min) ; b ; timeout(5 min) within 10 min", 1),
        ("(A a, B b) a ; timeout(6 min) ; b ; timeout(4 min) within 10 min", 0),
        ("(A a, B b) (a ; timeout(30 min)) | b within 10 min", 1),
        ("(A a, B b) (a ; timeout(6 min)) + (b ; timeout(7 min)) within 10 min", 0),
        ("(A a) (a ; timeout(3 min)){4} within 10 min", 1),
        ("(A a, every 1 min t) a ; t{12} within 10 min", 1),
        ("(A a, every 1 min t) a ; t{11} within 10 min", 0),
        ("(A a, every 1 min t) t ; timeout(10 min) ; t within 10 min", 0),
        ("(A a, every 6 min t) a ; t ; a ; t ; a ; t within 10 min", 1),
        ("(A a, every 6 min t, every 7 min u) a ; t ; u within 10 min", 0),
        ("(A a) a ; timeout(30 min)", 0),
    ],
)
def test_what_the_window_leaves_no_time_for_is_named(text: str, told: int) -> None:
    """A match lasts at least as long as its timeouts, and as its timers are apart."""
    assert codes(rule(text)).count("never-within") == told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("(A a, B b) a ; b within 10 min having b.time - a.time > 600", True),
        ("(A a, B b) a ; b within 10 min having b.time - a.time >= 600", False),
        ("(A a) a{2} within 10 min having max(a.time) - min(a.time) > 600", True),
        ("(A a) a{2} within 10 min having last(a.time) - first(a.time) >= 600", False),
        ("(A a, every 1 min t) a + t within 10 min having count(t) > 11", True),
        ("(A a, every 1 min t) a + t within 10 min having count(t) >= 11", False),
        ("(A a) a{3} within 10 min having count(a) < 3", True),
        ("(A a, B b) a ; b unless a having count(a) > 2", True),
    ],
)
def test_a_having_that_asks_for_more_than_the_window_has_is_named(text: str, told: bool) -> None:
    assert ("condition-never-holds" in codes(rule(text))) is told


def drawn_filter(random: Random, depth: int) -> str:
    if depth == 0 or random.random() < 0.25:
        return random.choice(["a", "b", "t", "a{2}", "t{3}"])
    parts = [drawn_filter(random, depth - 1) for _ in range(2)]
    match random.randrange(4):
        case 0:
            return f"({parts[0]} + {parts[1]})"
        case 1:
            return f"({parts[0]} | {parts[1]})"
        case _:
            waits = f"timeout({random.choice([1, 2, 3, 5])} s)"
            return f"({' ; '.join([parts[0], *random.choice([[], [waits]]), parts[1]])})"


def fires(library: ensue.Library, seeds: range) -> bool:
    """Whether the reference engine puts something out over some dense random stream."""
    for seed in seeds:
        random = Random(seed)
        times = sorted(random.choice([0, 0.5, 1]) * random.randrange(25) for _ in range(60))
        events = [
            ensue.Event(str(n), "s", random.choice("AB"), int(at * SECOND), {"n": 0})
            for n, at in enumerate(times)
        ]
        run = library.start(engine="reference")
        if any(True for _ in run_bounded(run, events, sort=True, until=40 * SECOND)):
            return True
    return False


@pytest.mark.parametrize("seed", range(120))
def test_a_branch_without_time_never_fires_and_most_others_do(seed: int) -> None:
    """A filter in which everything has to last longer than the window puts nothing out."""
    random = Random(seed)
    text, window = drawn_filter(random, 3), random.choice([1, 2, 4, 6])
    keep = random.choice(["", " keep last", " keep all"])
    library = rule(f"(A a, B b, every 2 s t) {text} ; timeout(1 s) within {window} s{keep}")
    (correlation,) = library.correlations
    (branch,) = correlation.branches  # type: ignore[union-attr]
    named = {id(each.part) for each in never_met(correlation)}

    if id(branch.parts[-1]) in named:  # type: ignore[union-attr]
        assert not fires(library, range(6))


def test_an_exact_bound_is_reached() -> None:
    """With just as much time as it lasts, each of these fires."""
    for text in (
        "(A a) a ; timeout(4 s) within 4 s",
        "(A a, every 2 s t) t{3} within 4 s",
        "(A a, B b) a ; timeout(2 s) ; b ; timeout(2 s) within 4 s",
        "(A a, B b) (a ; timeout(4 s)) + b within 4 s",
    ):
        assert fires(rule(text), range(40)), text


@pytest.mark.parametrize(
    ("first", "second", "relation"),
    [
        ("f{5}", "f having count(f) >= 5", "equivalent"),
        ("f{5} within 1 min", "f within 1 min having 4 < count(f)", "equivalent"),
        ("f{5} by n", "f by n having count(f) >= 5", "equivalent"),
        ("f{5} keep last", "f keep last having count(f) >= 5", "equivalent"),
        ("f{5} keep all within 1 min", "f keep all within 1 min having count(f) > 4", "equivalent"),
        ("f{5} unless u", "f unless u having count(f) >= 5", "equivalent"),
        ("f{5}", "f{2} having count(f) >= 5", "equivalent"),
        ("f{5} having f.n > 3", "f having count(f) >= 5 AND f.n > 3", "equivalent"),
        ("f{5}", "f having count(f) >= 6", "different"),
        ("f{4}", "f having count(f) >= 2", "contained"),
        ("f ; f ; f", "f having count(f) >= 3", "equivalent"),
        ("f{5}", "f having count(f) = 5", "undecided"),
        ("f{5}", "f keep all within 1 min having count(f) >= 5", "undecided"),
        ("f{2}", "f ; u having count(f) >= 2", "undecided"),
    ],
)
def test_a_count_from_below_is_a_repetition(first: str, second: str, relation: str) -> None:
    text = "".join(
        f"Out correlation {name} (A f, B u) {filter_} {{ case true: push new Out {{}}; }}\n"
        for name, filter_ in (("One", first), ("Two", second))
    )
    library = ensue.parse(TYPES + text)
    one, two = library.correlations
    found = compare(one, two, library.checked.types)

    assert found.relation == relation
    rules.verify(library, found)


@pytest.mark.parametrize("seed", range(80))
def test_a_count_and_its_repetition_put_out_together(seed: int) -> None:
    """In the reference engine, with every `keep`, `bind`, `unless` and window, the same events."""
    random = Random(seed)
    count = random.choice([1, 2, 3, 5])
    clauses = " ".join(
        random.choice(each)
        for each in (
            ["", "within 3 s", "within 6 s"],
            ["", "by n"],
            ["", "keep last", "keep all"],
            ["", "bind first", "bind latest"],
            ["", "unless u"],
        )
    )
    body = "{ case true: push f; push new Out {}; }"
    counted = f"f {clauses} having count(f) >= {count}"
    repeated = f"f{{{count}}} {clauses}"
    types = "eventtype Out {}; eventtype A : Out { attribute long n; }; eventtype B : A {};\n"
    outputs = []
    for text in (counted, repeated):
        given = ensue.parse(f"{types}Out correlation X (A f where n < 2, B u) {text} {body}")
        drawn = Random(seed)
        events = [
            {
                "id": str(n),
                "source": "s",
                "type": drawn.choice(["A", "A", "A", "B"]),
                "time": 1_000_000_000_000_000 + int(drawn.random() * 40) * SECOND // 2,
                "data": {"n": drawn.randrange(2)},
            }
            for n in range(60)
        ]
        read = [ensue.Event(time=each.pop("time"), **each) for each in events]  # type: ignore[arg-type]
        made = given.run(read, engine="reference")
        outputs.append([(each.id, each.data, dict(each.extensions)) for each in made])

    assert outputs[0] == outputs[1]
