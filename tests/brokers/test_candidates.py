"""Which filters are compared: few of many, and all that might cover or be covered."""

from __future__ import annotations

from random import Random

import pytest

from ensue.brokers.candidates import CandidateFilters
from ensue.brokers.covering import Covering
from ensue.brokers.forwarding import Forwarding
from ensue.events.event import Event
from ensue.subscriptions import Filter, covers
from tests.brokers.trees import random_filter


@pytest.mark.parametrize("seed", range(3))
def test_no_filter_that_covers_or_is_covered_is_left_out(seed: int) -> None:
    random = Random(seed)
    texts = {random_filter(random) for _ in range(40)}
    texts |= {"x = 1", "x = '1'", "x = 1.0", "x = TRUE", "x IN (1, 'a')", "x > 5 AND x < 3", "TRUE"}
    filters = [Filter.parse(each) for each in sorted(texts)]
    candidates = CandidateFilters(Covering(None))
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


@pytest.mark.parametrize("seed", range(2))
def test_no_range_text_or_box_is_left_out(seed: int) -> None:
    random = Random(seed)
    filters = sorted({_ranges(random) for _ in range(32)}, key=str)
    candidates = CandidateFilters(Covering(None))
    for each in filters[:26]:
        candidates.add(each)
    for each in filters[:10]:
        candidates.remove(each)
    for each in filters[:5]:
        candidates.add(each)
    kept = {*filters[:5], *filters[10:26]}
    covering = Covering(None).surely_covers

    for _ in range(2):
        # Once by the index, and once, with as many that match a witness, by the boxes.
        for wanted in filters[22:]:
            may_cover = set(candidates.that_may_cover(wanted))
            may_be_covered = set(candidates.that_may_be_covered_by(wanted))
            assert may_cover | may_be_covered <= kept
            for each in kept:
                assert each in may_cover or not covering(each, wanted), f"{each} covers {wanted}"
                assert each in may_be_covered or not covering(wanted, each), f"{wanted} over {each}"
        candidates._many_match = True


def _ranges(random: Random) -> Filter:
    atoms = []
    for name in random.sample(["n", "m", "type", "s", "deep.n"], random.randint(1, 3)):
        low = random.choice([random.randrange(20), random.uniform(0, 20)])
        atoms += random.choice(
            [
                [f"{name} > {low}", f"{name} < {low + random.randrange(1, 9)}"],
                [f"{name} >= {low}"],
                [f"{low} > {name}"],
                [f"{name} = {low}"],
                [f"{low} = {name}"],
                [f"{name} LIKE '{random.choice(['a', 'ab', '1', '%b', '_b', 'a%c'])}%'"],
                [f"{name} = '{random.choice(['ab', 'b', '1', '5'])}'"],
                [f"{name} IN (1, 5, 'ab')"],
            ]
        )
    return Filter.parse(" AND ".join(atoms))


def test_wide_ranges_are_compared_with_few_others(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0

    def count(covering: Covering, filter_: Filter, event: Event) -> bool:
        nonlocal asked
        asked += 1
        return filter_.matches(event, ontology=covering.ontology)

    monkeypatch.setattr(Covering, "may_match", count)
    random = Random(1)
    forwarding = Forwarding(Covering(None))
    for number in range(400):
        low = random.uniform(0, 1000)
        high = low + 400 + number / 1000
        forwarding.want(Filter.parse(f"type = 'Order' AND price > {low} AND price < {high}"))

    assert len(forwarding.said) > 350
    assert asked < 4000, "80,000 if each were asked about each"


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
