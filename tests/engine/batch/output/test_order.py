"""The order in which correlations read each other, and how deep they feed."""

from __future__ import annotations

import ensue
from ensue import Event
from ensue.engine.batch.output.order import depth_of, reading_order
from ensue.engine.sizes import small_sizes

LONG = 5_000
CHAIN = {f"r{number}": (f"r{number + 1}",) for number in range(LONG - 1)}


def test_a_chain_of_thousands_of_rules_is_put_in_order() -> None:
    names = [f"r{number}" for number in range(LONG)]

    assert depth_of(CHAIN) == LONG
    assert reading_order(names[::-1], CHAIN) == names


def test_rules_of_one_depth_keep_the_order_of_the_library() -> None:
    feeds = {"a": ("d", "c"), "b": ("c",), "c": ("d",)}

    assert reading_order(["d", "c", "b", "a"], feeds) == ["b", "a", "c", "d"]
    assert depth_of(feeds) == 3
    assert depth_of({}) == 1


def test_rules_that_feed_each_other_put_out_the_same_a_few_rows_at_a_time() -> None:
    library = ensue.parse(
        "eventtype A { attribute long n; }; eventtype B { attribute long n; }; eventtype C {};\n"
        "B correlation Second (A a, A b) a ; b within 3 s { case true: push new B { n = b.n }; }\n"
        "C correlation Third (B b from Second, every 2 s t) b | t { case true: push new C {}; }\n"
        "C correlation Fourth (C c from Third, A a) c + a keep all { case true: push new C {}; }\n"
    )
    events = [Event.of("A", time=n // 3 * 1_000_000, id=str(n), data={"n": n}) for n in range(60)]
    expected = list(library.run(events, engine="step"))
    with small_sizes():
        found = list(library.run(events, engine="batch"))

    assert found == expected
    assert len(expected) > 60
