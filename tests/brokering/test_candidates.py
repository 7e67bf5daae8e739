"""Which filters are compared: few of many, and all that might cover or be covered."""

from __future__ import annotations

from random import Random

import pytest

from ensue.brokers.candidates import Candidates
from ensue.brokers.covering import Covering
from ensue.brokers.forwarding import Forwarding
from ensue.subscriptions import Filter, covers
from tests.brokering.trees import random_filter


@pytest.mark.parametrize("seed", range(3))
def test_no_filter_that_covers_or_is_covered_is_left_out(seed: int) -> None:
    random = Random(seed)
    texts = {random_filter(random) for _ in range(40)}
    texts |= {"x = 1", "x = '1'", "x = 1.0", "x = TRUE", "x IN (1, 'a')", "x > 5 AND x < 3", "TRUE"}
    filters = [Filter.parse(each) for each in sorted(texts)]
    candidates = Candidates(Covering(None))
    for each in filters[::2]:
        candidates.add(each)
    for each in filters[::4]:
        candidates.remove(each)
    kept = filters[2::4]

    for wanted in filters:
        may_cover = set(candidates.that_may_cover(wanted))
        may_be_covered = set(candidates.that_may_be_covered_by(wanted))
        for each in kept:
            assert each in may_cover or not covers(each, wanted), f"{each} covers {wanted}"
            assert each in may_be_covered or not covers(wanted, each), f"{wanted} covers {each}"
        assert may_cover | may_be_covered <= set(kept)


@pytest.mark.parametrize(
    "text",
    [
        "symbol = 's{n}' AND price > {n}",
        "price > {n} AND size < {n}",
        "account = {n}",
        "s LIKE '{n}-%'",
    ],
)
def test_few_of_many_filters_are_compared(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0

    def count(covering: Covering, general: Filter, special: Filter) -> bool:
        nonlocal asked
        asked += 1
        return covers(general, special, ontology=covering.ontology) is True

    monkeypatch.setattr(Covering, "surely_covers", count)
    forwarding = Forwarding(Covering(None))
    for number in range(100):
        forwarding.want(Filter.parse(text.format(n=number)))

    assert len(forwarding.said) == 100
    assert asked < 20
