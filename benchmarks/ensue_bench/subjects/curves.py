"""How the cost of an event grows: with the expression, the keys, the rules and the window.

Every point is the processor time of one event; the slope of a curve on logarithmic scales says how
it grows: 0 not at all, 1 with the size. Sizes of one curve take turns, like everything compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from ensue_bench.effort import Effort
from ensue_bench.pushing import table_of, through_batch, through_step
from ensue_bench.report import Curve
from ensue_bench.timing import Work, side_by_side
from ensue_bench.workload import (
    LEAK_TYPES,
    MANY_RULES,
    VOCABULARIES,
    UserSteps,
    combined,
    leak,
    parts_of,
    readings,
    window_of,
)

Sized = Callable[[int], tuple[Work, int]]
"""For a size, the work and how many events it reads."""


def measure(effort: Effort) -> Iterator[Curve]:
    pa.set_cpu_count(1)
    yield from _expressions(effort)
    yield from _keys(effort)
    yield from _rules(effort)
    yield from _windows(effort)


def curve(
    effort: Effort, plot: str, name: str, against: str, sizes: Sequence[int], sized: Sized
) -> Curve:
    works = {size: sized(size) for size in sizes}
    taken = side_by_side({str(size): work for size, (work, _) in works.items()}, effort.times(5))
    points = tuple(
        (float(size), tuple(each / count * 1e6 for each in taken[str(size)]))
        for size, (_, count) in works.items()
    )
    return Curve(plot, name, against, "µs/event", points)


def _expressions(effort: Effort) -> Iterator[Curve]:
    sizes = (2, 4) if effort.quick else (2, 4, 8, 16, 32, 64)
    step_count, batch_count = effort.size(10_000, 300), effort.size(100_000, 300)

    def of(operator: str, clauses: str, engine: str) -> Sized:
        def sized(parts: int) -> tuple[Work, int]:
            text = combined(operator, parts, clauses)
            if engine == "step":
                return through_step(text, parts_of(step_count, parts)), step_count
            return through_batch(text, table_of(parts_of(batch_count, parts), ())), batch_count

        return sized

    for engine in ("step", "batch"):
        for name, operator, clauses in (
            (";", ";", ""),
            ("+", "+", ""),
            ("; within", ";", "within 1 s"),
            ("+ within", "+", "within 1 s"),
        ):
            sized = of(operator, clauses, engine)
            yield curve(effort, f"expression-{engine}", name, "ports", sizes, sized)


def _keys(effort: Effort) -> Iterator[Curve]:
    sizes = (10, 100) if effort.quick else (10, 100, 1000, 10_000, 100_000, 1_000_000)
    # In Python a million keys are mostly a matter of memory.
    step_sizes = sizes if effort.quick else sizes[:-1]
    step_count, batch_count = effort.size(50_000, 300), effort.size(2_000_000, 300)

    def by_step(keys: int) -> tuple[Work, int]:
        return through_step(leak(), UserSteps(step_count, keys).events()), step_count

    def by_batch(within: bool) -> Sized:
        def sized(keys: int) -> tuple[Work, int]:
            text = leak(window_of(keys) if within else "")
            return through_batch(text, UserSteps(batch_count, keys).table()), batch_count

        return sized

    yield curve(effort, "keys-step", "a ; b ; c", "keys", step_sizes, by_step)
    yield curve(effort, "keys-batch", "a ; b ; c", "keys", sizes, by_batch(False))
    yield curve(effort, "keys-batch", "within", "keys", sizes, by_batch(True))


def _rules(effort: Effort) -> Iterator[Curve]:
    sizes = (1, 5) if effort.quick else (1, 3, 10, 30, 100, 300, 1000)
    known, new = effort.size(1000, 50), effort.size(1000, 50)
    events = readings(known + new, devices=20)
    # A batch pays once for each rule, whatever its size: it is measured on a large one.
    table = table_of(readings(effort.size(20_000, 50), 20), ("device", "kind", "level"))
    plotted = {name: ("rules", name) for name in VOCABULARIES}
    plotted |= {f"kinds, {kind}": ("windowed-rules", kind) for kind in ("in windows", "mixed")}
    for rules_of, (plot, name) in plotted.items():
        text = MANY_RULES[rules_of]

        def by_step(rules: int, of: Callable[[int], str] = text) -> tuple[Work, int]:
            return through_step(of(rules), events[known:], events[:known]), new

        def by_batch(rules: int, of: Callable[[int], str] = text) -> tuple[Work, int]:
            return through_batch(of(rules), table), len(table)

        yield curve(effort, f"{plot}-step", name, "rules", sizes, by_step)
        yield curve(effort, f"{plot}-batch", name, "rules", sizes, by_batch)


def _windows(effort: Effort) -> Iterator[Curve]:
    sizes = (1, 10) if effort.quick else (1, 10, 100, 1000, 10_000)
    keys = effort.size(1000, 20)
    step_count, batch_count = effort.size(20_000, 300), effort.size(1_000_000, 300)
    events, table = UserSteps(step_count, keys).events(), UserSteps(batch_count, keys).table()

    def text(events_inside: int) -> str:
        return _chain(window_of(keys, events_inside))

    def by_step(inside: int) -> tuple[Work, int]:
        return through_step(text(inside), events), step_count

    def by_batch(inside: int) -> tuple[Work, int]:
        return through_batch(text(inside), table), batch_count

    against = "events of a key in the window"
    yield curve(effort, "window-step", "a ; b ; c", against, sizes, by_step)
    yield curve(effort, "window-batch", "a ; b ; c", against, sizes, by_batch)


def _chain(within: str) -> str:
    """Without a reset, so that a long window does hold many events."""
    return f"""{LEAK_TYPES}
Alert correlation Chain (Login a where size > 0.99, Open b where size > 0.99, Copy c)
    a ; b ; c {within} by user
{{
    case true: push new Alert {{ user = a.user, first = a.size, last = c.size }};
}}
"""
