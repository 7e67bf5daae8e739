"""The order in which correlations read each other, and how deep they feed."""

from __future__ import annotations

from ensue.engine.batch.output.order import depth_of, reading_order

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
