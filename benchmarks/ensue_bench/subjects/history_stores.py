"""The two tests of the paper on temporal knowledge-based networking, over one store after another.

In come names of stores (`memory`, `sqlite`, `parquet`; `postgresql` and `mysql`, whose servers are
started here) or addresses of histories; out go the curves of the paper's figures 2 and 3, a line
for each store. Costs are by the wall clock, since a server works in a process of its own. What is
asked, and of what, is that of `history`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Final

from ensue.errors import UsageError
from ensue.events.event import Event
from ensue.history import History
from ensue.subscriptions import Filter
from ensue_bench.databases import KINDS, database
from ensue_bench.effort import Effort
from ensue_bench.report import Curve
from ensue_bench.subjects.history import FILTERS, LIMITS, ORIGIN, RED, SECOND, SUBSCRIBERS, events
from ensue_bench.subjects.history import wine_ontology as ontology

LOCAL: Final = ("memory", "sqlite", "parquet")
STORES: Final = (*LOCAL, *KINDS)
STORED_SIZES: Final = (25, 50, 100, 150, 200, 250)
AT_A_SIZE: Final = 10
"""The last publications before each size, of which the median is shown."""


def measure(effort: Effort) -> Iterator[Curve]:
    for store in effort.stores:
        if store not in STORES and ":" not in store:
            known = ", ".join(f"`{each}`" for each in STORES)
            raise UsageError(
                f"there is no store `{store}`; give some of {known}, or the address of a history"
            )
    for store in effort.stores:
        with _address(store) as address:
            yield _first_test(effort, store, address)
        with _address(store) as address:
            yield _second_test(effort, store, address)


@contextmanager
def _address(store: str) -> Iterator[str]:
    """The address of an empty history."""
    if store in KINDS:
        with database(store) as address:
            yield address
        return
    with TemporaryDirectory(prefix="ensue-bench-") as folder:
        local = {
            "memory": "memory:",
            "sqlite": f"sqlite:{Path(folder) / 'bench.db'}",
            "parquet": f"parquet:{Path(folder) / 'bench'}",
        }
        yield local.get(store, store)


def _first_test(effort: Effort, store: str, address: str) -> Curve:
    """A publication for all subscribers, by how many are stored: the paper's figure 2."""
    random = Random(1)
    filters = [Filter.parse(FILTERS[random.choice(list(FILTERS))]) for _ in range(SUBSCRIBERS)]
    taken: list[float] = []
    with History.open(address, ontology=ontology()) as history:
        for event in events(random, 0, effort.size(STORED_SIZES[-1], 60)):
            taken.append(_milliseconds(history, filters, event))
            history.add(event)
    points = tuple(
        (float(size), tuple(taken[max(0, size - AT_A_SIZE) : size]))
        for size in STORED_SIZES
        if size <= len(taken)
    )
    return Curve(
        "history-stores-publication", store, "stored events", "ms", points,
        "A publication for 50 subscribers, by the store",
    )  # fmt: skip


def _second_test(effort: Effort, store: str, address: str) -> Curve:
    """FILTER over many stored events for all subscribers, by its limit: the paper's figure 3."""
    random = Random(2)
    stored, rounds = effort.size(50_000, 500), effort.size(12, 2)
    points = []
    with History.open(address, ontology=ontology()) as history:
        history.add_all(events(random, 0, stored))
        behind = ORIGIN + stored * (10 - 3) * SECOND
        coming = events(random, stored, 1_000_000, every=3, origin=behind)
        for limit in LIMITS:
            pair = [f"A FILTER(<, {limit}) ({RED})", f"A FILTER(<, {limit}) (C > 10)"]
            filters = [Filter.parse(random.choice(pair)) for _ in range(SUBSCRIBERS)]
            taken = []
            for _ in range(rounds):
                event = next(coming)
                taken.append(_milliseconds(history, filters, event))
                history.add(event)
            points.append((float(limit), tuple(taken)))
    return Curve(
        "history-stores-filter", store, "limit of FILTER", "ms", tuple(points),
        f"FILTER over {stored:,} stored events for 50 subscribers, by the store",
    )  # fmt: skip


def _milliseconds(history: History, filters: Sequence[Filter], event: Event) -> float:
    begin = time.perf_counter()
    for each in filters:
        history.matches(each, event)
    return (time.perf_counter() - begin) * 1_000
