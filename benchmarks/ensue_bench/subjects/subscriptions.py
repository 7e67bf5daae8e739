"""The index of subscriptions: events a second against many filters, beside asking every filter.

Filters have three constraints each, over orders on a market: equality of a symbol or an account
with bounds on price and volume, a narrow band of prices without some exchange, a prefix with two
bounds. An event matches about one in ten thousand. The plain loop asks the same filters of a few of
the same events, in the same rounds. Growth, inserts and memory are taken over indexes of their own.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator, Sequence
from functools import partial
from random import Random

import pyarrow as pa

from ensue.events.event import Event
from ensue.lang.expressions import Comparison, Expression, Like, Literal, Logic, Name
from ensue.lang.expressions.evaluation import holds
from ensue.subscriptions import Filter, Index
from ensue_bench.effort import Effort
from ensue_bench.report import Curve, Figure, Finding, cost, rate
from ensue_bench.timing import Work, rates, ratios, seconds, side_by_side

FILTERS = 100_000
ONE_BY_ONE = 20_000
IN_COLUMNS = 100_000
TIMES_A_LOOP = 100
MEBIBYTE = 1024 * 1024

SYMBOLS, ACCOUNTS, EXCHANGES = 10_000, 50_000, "ABCDE"


def measure(effort: Effort) -> Iterator[Finding]:
    yield from _matching(effort)
    yield from _coming_and_going(effort)
    yield from _growth(effort)


class Market:
    """Filters and events from one seed."""

    def __init__(self, seed: int = 1) -> None:
        self._random = Random(seed)

    def filters(self, count: int) -> list[Filter]:
        return [Filter(self._predicate()) for _ in range(count)]

    def _predicate(self) -> Expression:
        random = self._random
        price = random.uniform(0, 1000)
        over = _compared("price", ">", price)
        match random.randrange(10):
            case 0 | 1:
                band = _compared("price", "<", price + random.uniform(0.1, 1))
                return _all(over, band, _compared("exchange", "!=", random.choice(EXCHANGES)))
            case 2:
                begins = Like(Name(("symbol",)), f"{self._symbol()[:5]}%")
                low = _compared("price", "<", random.uniform(0, 100))
                return _all(begins, low, _compared("volume", ">", random.randrange(10_000)))
            case 3:
                account = _compared("account", "=", random.randrange(ACCOUNTS))
                return _all(account, over, _compared("volume", ">=", random.randrange(10_000)))
            case _:
                symbol = _compared("symbol", "=", self._symbol())
                return _all(symbol, over, _compared("volume", "<", random.randrange(10_000)))

    def _symbol(self) -> str:
        return f"S{self._random.randrange(SYMBOLS):05d}"

    def table(self, count: int) -> pa.Table:
        random = self._random
        rows = range(count)
        return pa.table(
            {
                "id": [str(row) for row in rows],
                "source": ["market"] * count,
                "type": ["Order"] * count,
                "time": pa.array(rows, pa.timestamp("us", "UTC")),
                "symbol": [self._symbol() for _ in rows],
                "price": [random.uniform(0, 1000) for _ in rows],
                "volume": [random.randrange(10_000) for _ in rows],
                "exchange": [random.choice(EXCHANGES) for _ in rows],
                "account": [random.randrange(ACCOUNTS) for _ in rows],
            }
        )


def events_in(table: pa.Table) -> list[Event]:
    names = [each for each in table.column_names if each not in ("id", "source", "type", "time")]
    rows = zip(*(table.column(each).to_pylist() for each in names), strict=True)
    return [
        Event(str(at), "market", "Order", at, dict(zip(names, row, strict=True)))
        for at, row in enumerate(rows)
    ]


def index_of(filters: Sequence[Filter]) -> Index:
    index = Index()
    for number, each in enumerate(filters):
        index.add(number, each)
    return index


def _matching(effort: Effort) -> Iterator[Figure]:
    count = effort.size(FILTERS, 1_000)
    market = Market()
    filters = market.filters(count)
    index = index_of(filters)
    table = market.table(effort.size(200_000, 2_000))
    events = events_in(table.slice(0, effort.size(5_000, 200)))
    few = events[: effort.size(2, 5)]
    found = sum(len(index.match(event)) for event in events) / len(events)
    note = f"{count:,} filters of 3 constraints, {found:.3g} matches/event"
    taken = side_by_side(
        {
            "one by one": Work(partial(_one_by_one, index, events)),
            "in columns": Work(lambda _: index.match_columns(table)),
            "plain loop": Work(partial(_plain_loop, filters, few)),
        },
        effort.times(5),
    )
    yield rate("match", rates(len(events), taken["one by one"]), ONE_BY_ONE, note)
    yield rate("match_columns", rates(len(table), taken["in columns"]), IN_COLUMNS, note)
    yield rate("plain loop over the filters", rates(len(few), taken["plain loop"]), None, note)
    scaled = [each / len(few) * len(events) for each in taken["plain loop"]]
    times = ratios(scaled, taken["one by one"])
    yield Figure("match to the plain loop", "times", tuple(times), "higher", TIMES_A_LOOP, note)


def _one_by_one(index: Index, events: Sequence[Event], _: object) -> None:
    for event in events:
        index.match(event)


def _plain_loop(filters: Sequence[Filter], events: Sequence[Event], _: object) -> None:
    for event in events:
        for each in filters:
            holds(each.expression, event)


def _coming_and_going(effort: Effort) -> Iterator[Figure]:
    count = effort.size(20_000, 500)
    filters = Market(2).filters(count)
    inserting = seconds(Work(lambda _: index_of(filters)), effort.times(3))
    yield cost("add", "µs/filter", [each / count * 1e6 for each in inserting])

    def empty(index: Index) -> None:
        for number in range(count):
            index.remove(number)

    removing = seconds(Work(empty, lambda: index_of(filters)), effort.times(3))
    yield cost("remove", "µs/filter", [each / count * 1e6 for each in removing])
    texts = [str(each) for each in filters[: effort.size(500, 20)]]
    parsing = seconds(Work(lambda _: [Filter.parse(each) for each in texts]), effort.times(3))
    yield cost("Filter.parse", "µs/filter", [each / len(texts) * 1e6 for each in parsing])


def _growth(effort: Effort) -> Iterator[Finding]:
    sizes = (1_000, 10_000, 100_000, 1_000_000) if not effort.quick else (100, 1_000)
    market = Market(3)
    events = events_in(market.table(effort.size(2_000, 100)))
    index = Index()
    matching: list[tuple[float, tuple[float, ...]]] = []
    inserting: list[tuple[float, tuple[float, ...]]] = []
    for size in sizes:
        # Filters are made and thrown away in parts: the index keeps none of them.
        spent, begin = 0.0, len(index)
        while len(index) < size:
            some = market.filters(min(10_000, size - len(index)))
            first = len(index)

            def insert(_: object, some: Sequence[Filter] = some, first: int = first) -> None:
                for number, each in enumerate(some, first):
                    index.add(number, each)

            spent += seconds(Work(insert), 1, warm=False)[0]
        taken = seconds(Work(partial(_one_by_one, index, events)), effort.times(3))
        matching.append((size, tuple(each / len(events) * 1e6 for each in taken)))
        inserting.append((size, (spent / (size - begin) * 1e6,)))
    yield Curve("subscriptions-index", "one event", "filters", "µs/event", tuple(matching))
    yield Curve("subscriptions-inserts", "one insert", "filters", "µs/filter", tuple(inserting))
    yield from _memory(Market(4), sizes)


def _memory(market: Market, sizes: Sequence[int]) -> Iterator[Finding]:
    """What an index holds, by Python's account; arrays are counted in it."""
    index = Index()
    holding: list[tuple[float, tuple[float, ...]]] = []
    tracemalloc.start()
    for size in sizes:
        while len(index) < size:
            for each in market.filters(min(10_000, size - len(index))):
                index.add(len(index), each)
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
        holding.append((size, (held / MEBIBYTE,)))
    tracemalloc.stop()
    yield Curve("subscriptions-memory", "an index", "filters", "MiB", tuple(holding))
    each_holds = holding[-1][1][0] * MEBIBYTE / sizes[-1]
    yield cost("memory of an index", "bytes/filter", [each_holds], note="names included")


def _compared(name: str, sign: str, constant: str | int | float) -> Expression:
    return Comparison(Name((name,)), ((sign, Literal(constant)),))


def _all(*parts: Expression) -> Expression:
    return Logic(parts, ("AND",) * (len(parts) - 1))
