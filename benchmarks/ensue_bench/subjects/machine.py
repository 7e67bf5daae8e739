"""Rules before and while they run: loading, the step engine, many rules, snapshots, first use."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from itertools import islice

import ensue
from ensue.engine.batch import BatchEngine
from ensue.lang.syntax import Correlation
from ensue.machine.plan import plan
from ensue_bench.effort import Effort
from ensue_bench.pushing import matches_of, table_of, through_batch, through_step
from ensue_bench.report import Figure, cost, rate
from ensue_bench.timing import Work, rates, ratios, seconds, side_by_side
from ensue_bench.workload import (
    LOGIN_RULES,
    MANY_RULES,
    accumulation,
    leak,
    logins,
    mid_match,
    parts_of,
    readings,
    repetition,
)

EVENTS_A_SECOND = 500_000
TIMES_THE_COST_OF_ONE = 20
BYTES_A_KEY = 64
FIRST_USE_SECONDS = 1


def measure(effort: Effort) -> Iterator[Figure]:
    yield from _loading(effort)
    yield from _stepping(effort)
    yield from _many_rules(effort)
    yield from _snapshot(effort)
    yield from _first_use(effort)


def _loading(effort: Effort) -> Iterator[Figure]:
    """What large rules cost before their first event: read and checked, then planned."""
    for name, text in (
        ("40-way accumulation", accumulation(40)),
        ("`a{5000}`", repetition(5000)),
    ):
        loading = seconds(Work(partial(_load, text)), effort.times())
        yield cost(f"{name}: load", "ms", [each * 1e3 for each in loading])
        correlation = ensue.parse(text).correlations[0]
        planning = seconds(Work(partial(_plan, correlation)), effort.times())
        yield cost(f"{name}: plan", "ms", [each * 1e3 for each in planning])
    count = effort.size(50_000, 1000)
    events = parts_of(count, 40)
    taken = seconds(through_step(accumulation(40), events), effort.times())
    yield rate("40-way accumulation: step", rates(count, taken))


def _load(text: str, _: None) -> None:
    ensue.parse(text)


def _plan(correlation: Correlation, _: None) -> None:
    plan(correlation)


def _stepping(effort: Effort) -> Iterator[Figure]:
    """One event at a time, through predicates, key and transformer."""
    many, few = effort.size(10_000, 100), effort.size(100, 10)
    events = logins(effort.size(200_000, 4000), many)
    half = len(events) // 2
    works = {name: through_step(text, events) for name, text in LOGIN_RULES.items()}
    works["by key, keys known"] = through_step(LOGIN_RULES["by key"], events[half:], events[:half])
    works[f"by key, {few} keys"] = through_step(LOGIN_RULES["by key"], logins(len(events), few))
    for name, taken in side_by_side(works, effort.times()).items():
        count = len(events) - half if name == "by key, keys known" else len(events)
        aim = EVENTS_A_SECOND if name.startswith("by key") and "within" not in name else None
        keys = few if name == f"by key, {few} keys" else 0 if name == "no key" else many
        yield rate(f"step: {name}", rates(count, taken), aim, f"{keys:,} keys")


def _many_rules(effort: Effort) -> Iterator[Figure]:
    """Ten, a hundred and a thousand rules that share fifty predicates, beside one of them."""
    count, fewer = effort.size(1000, 20), (effort.size(10, 2), effort.size(100, 5))
    for name, rules in islice(MANY_RULES.items(), effort.size(len(MANY_RULES), 3)):
        # Keys that are known already: making a thousand states for a new key is not what repeats.
        known, new = effort.size(1000, 100), effort.size(1000, 100)
        events = readings(known + new, devices=20)
        before, timed = events[:known], events[known:]
        # A batch pays once for each rule, whatever its size: it is measured on a large one.
        table = table_of(readings(effort.size(50_000, 100), 20), ("device", "kind", "level"))
        one, many = rules(1), rules(count)
        first = table.slice(0, known + new)
        note = f"{matches_of(many, first) / len(first):.3g} outputs/event"
        for engine, works in (
            ("step", [through_step(text, timed, before) for text in (one, many)]),
            ("batch", [through_batch(text, table) for text in (one, many)]),
        ):
            found = side_by_side(dict(zip(("one", "many"), works, strict=True)), effort.times(3))
            size = len(timed) if engine == "step" else len(table)
            yield cost(
                f"{engine}: {count:,} rules, {name}",
                "µs/event",
                [each / size * 1e6 for each in found["many"]],
                note=note,
            )
            yield cost(
                f"{engine}: {count:,} rules to one, {name}",
                "times",
                ratios(found["many"], found["one"]),
                TIMES_THE_COST_OF_ONE,
            )
        works = [through_batch(rules(each), table) for each in (1, *fewer)]
        found = side_by_side(
            dict(zip(("one", *map(str, fewer)), works, strict=True)), effort.times(3)
        )
        for some in fewer:
            yield cost(
                f"batch: {some:,} rules to one, {name}",
                "times",
                ratios(found[str(some)], found["one"]),
            )


def _snapshot(effort: Effort) -> Iterator[Figure]:
    """Every key in the middle of a match."""
    keys = effort.size(1_000_000, 2000)
    checked = ensue.parse(leak()).checked
    engine = BatchEngine(checked)
    engine.push_batch(mid_match(keys))
    saved = engine.snapshot()
    note = f"{keys:,} keys mid-match"
    yield cost("snapshot: size of a key", "bytes", [len(saved) / keys], BYTES_A_KEY, note)
    taking = seconds(Work(lambda _: engine.snapshot()), effort.times(3))
    yield cost("snapshot: taking it", "s", taking, note=note)
    restoring = Work(lambda other: other.restore(saved), lambda: BatchEngine(checked))
    yield cost("snapshot: restoring it", "s", seconds(restoring, effort.times(3)), note=note)


_FIRST_USE = """
import time
begin, wall = time.process_time(), time.perf_counter()
import ensue
from ensue_bench.workload import UserSteps, leak
from ensue.engine.batch import BatchEngine
engine = BatchEngine(ensue.parse(leak({within!r})).checked)
table = UserSteps(1000, 10).table()
ready, wall_ready = time.process_time(), time.perf_counter()
engine.push_batch(table)
print(time.process_time() - ready, time.perf_counter() - wall_ready, ready - begin)
"""


def _first_use(effort: Effort) -> Iterator[Figure]:
    """A new process each time; compiled code comes from disk, where the first one has put it."""
    note = "compiled code from disk"
    for name, within in (("table", ""), ("window", "within 1 s")):
        code = _FIRST_USE.format(within=within)
        _times_of_a_process(code)
        found = [_times_of_a_process(code) for _ in range(effort.times(5))]
        first, wall, importing = zip(*found, strict=True)
        yield cost(f"first batch, {name}", "s", first, FIRST_USE_SECONDS, note)
        yield cost(f"first batch, {name}: wall clock", "s", wall, None, note)
        yield cost(f"imports before it, {name}", "s", importing)


def _times_of_a_process(code: str) -> tuple[float, ...]:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return tuple(float(each) for each in done.stdout.split())
