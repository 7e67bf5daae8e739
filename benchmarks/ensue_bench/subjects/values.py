"""Rules over several events: a condition between two, and aggregates over windows.

From table to table and event by event, and how the cost of an event grows with the window, the keys
and the rules. Where there is a Java, Esper runs the same rules over the same events in the same
run. Windows hold about so many events of a key; thresholds are such that few of them trigger, so
that what is measured is counting and not writing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from ensue.errors import UsageError
from ensue_bench.effort import Effort
from ensue_bench.pushing import matches_of, through_batch, through_step
from ensue_bench.report import Curve, Figure, cost, rate
from ensue_bench.subjects.curves import Sized, curve
from ensue_bench.subjects.esper import Contest, EsperPeer, compare, prepare, write_records
from ensue_bench.timing import Work, rates, ratios, side_by_side
from ensue_bench.workload import LEAK_TYPES, UserSteps, window_of

EVENTS_A_SECOND = 5_000_000
STEPS_A_SECOND = 300_000
COUNTED_A_SECOND = ((10, 10_000, 3_000_000), (1000, 500, 2_000_000))
"""How many events of a key the window holds, how many keys there are, and what is aimed at."""
TIMES_WITH_HAVING = 3
TIMES_AHEAD = 5
VALUES = 200
"""How many different values an attribute has."""
HALF_A_GAP = 5e-6
"""An event that lies just at the edge is inside for us and outside for Esper."""

AGGREGATES = {"count": "count(f)", "distinct": "distinct(f.size)", "sum": "sum(f.size)"}


def pair(having: str = "having b.size < 0.95 * a.size") -> str:
    """Each event with the latest one before it."""
    return f"""{LEAK_TYPES}
Alert correlation Pair (Login a, Open b) a ; b {having} keep all bind latest by user
{{
    case true: push new Alert {{ user = b.user, first = a.size, last = b.size }};
}}
"""


def counted(aggregate: str, inside: int, within: str, number: int = 0) -> str:
    """An aggregate over a window that passes what it mostly is once in a while."""
    usual = {"count": inside, "distinct": min(inside, VALUES), "sum": inside / 2}[aggregate]
    most = usual * 2.2 + number
    if aggregate == "distinct" and inside >= VALUES:
        most = VALUES + number
    threshold = f"{most:.1f}" if aggregate == "sum" else f"{round(most)}"
    return f"""
Alert correlation Counted{number} (Step f) f {within} having {AGGREGATES[aggregate]} > {threshold}
    keep all by user
{{
    case true: push new Alert {{ user = f.user, first = f.size }};
}}
"""


class ValueSteps(UserSteps):
    """Steps of two types whose sizes are of few different values."""

    def __init__(self, count: int, keys: int) -> None:
        super().__init__(count, keys)
        self.types %= 2
        self.sizes = (self.sizes * VALUES).astype("int64") / VALUES


def measure(effort: Effort) -> Iterator[Figure | Curve]:
    pa.set_cpu_count(1)
    keys = effort.size(10_000, 50)
    steps = ValueSteps(effort.size(2_000_000, 3000), keys)
    yield from _pairs(effort, steps)
    yield from _aggregates(effort)
    yield from _beside_esper(effort)
    yield from _curves(effort)


def _pairs(effort: Effort, steps: UserSteps) -> Iterator[Figure]:
    table, few = steps.table(), steps.events()[: effort.size(100_000, 1000)]
    works = {
        "having": through_batch(pair(), table),
        "without": through_batch(pair(""), table),
        "step": through_step(pair(), few),
    }
    found = side_by_side(works, effort.times())
    name = "`a ; b having b.v < 0.95 * a.v keep all bind latest`"
    note = f"{matches_of(pair(), table):,} outputs"
    yield rate(f"{name}, batch", rates(len(steps), found["having"]), EVENTS_A_SECOND, note)
    note = f"{matches_of(pair(''), table):,} outputs"
    yield rate("the same without `having`, batch", rates(len(steps), found["without"]), note=note)
    yield cost(
        "price of `having`", "times", ratios(found["having"], found["without"]), TIMES_WITH_HAVING
    )
    yield rate(f"{name}, step", rates(len(few), found["step"]), STEPS_A_SECOND)


def _aggregates(effort: Effort) -> Iterator[Figure]:
    for inside, keys, aim in COUNTED_A_SECOND:
        steps = ValueSteps(effort.size(2_000_000, 3000), effort.size(keys, 20))
        table, within = steps.table(), window_of(steps.keys, inside)
        texts = {name: LEAK_TYPES + counted(name, inside, within) for name in AGGREGATES}
        works = {name: through_batch(text, table) for name, text in texts.items()}
        for name, taken in side_by_side(works, effort.times()).items():
            note = f"{matches_of(texts[name], table):,} outputs"
            said = f"`{name}` over {inside:,} events of a key, batch"
            yield rate(said, rates(len(steps), taken), aim, note)


def _beside_esper(effort: Effort) -> Iterator[Figure]:
    """The same rules through Esper; nothing where this machine cannot run it."""
    try:
        peer = prepare()
    except UsageError:
        return
    keys = effort.size(10_000, 50)
    steps = ValueSteps(effort.size(500_000, 3000), keys)
    contests = [Contest("pairs", pair(), ("pair",), None)]
    for name in AGGREGATES:
        within = window_of(keys, 10)
        seconds = int(re.sub(r"\D", "", within)) / 1000 + HALF_A_GAP
        text = LEAK_TYPES + counted(name, 10, within)
        contests.append(Contest(f"{name} in a window", text, (name,), seconds))
    with TemporaryDirectory() as folder:
        file = Path(folder) / "events.bin"
        write_records(steps, file)
        for contest in contests:
            few = effort.size(20_000, 500)
            with_thresholds = _with_threshold(peer, contest, folder)
            yield from compare(effort, with_thresholds, contest, steps, file, TIMES_AHEAD, few)


def _with_threshold(peer: EsperPeer, contest: Contest, folder: str) -> EsperPeer:
    """Esper with statements that ask for more than our rule does."""
    (statement,) = contest.statements
    epl = (peer.sources / f"{statement}.epl").read_text("utf-8")
    threshold = re.search(r"\) > ([\d.]+)", contest.text)
    asked = epl.replace("THRESHOLD", threshold.group(1) if threshold else "")
    sources = Path(folder) / "statements"
    sources.mkdir(exist_ok=True)
    (sources / f"{statement}.epl").write_text(asked, "utf-8")
    return EsperPeer(sources, peer.class_path)


def _curves(effort: Effort) -> Iterator[Curve]:
    batch_count = effort.size(500_000, 500)
    sizes = (1, 10) if effort.quick else (1, 10, 100, 1000, 10_000)
    keys = effort.size(100, 10)
    table = ValueSteps(batch_count, keys).table()

    def by_window(name: str) -> Sized:
        def sized(inside: int) -> tuple[Work, int]:
            text = LEAK_TYPES + counted(name, inside, window_of(keys, inside))
            return through_batch(text, table), batch_count

        return sized

    def by_keys(text: str, of: str) -> Sized:
        def sized(keys: int) -> tuple[Work, int]:
            within = window_of(keys, 10)
            said = text or LEAK_TYPES + counted(of, 10, within)
            return through_batch(said, ValueSteps(batch_count, keys).table()), batch_count

        return sized

    def by_rules(count: int) -> tuple[Work, int]:
        within = window_of(keys, 10)
        text = "".join(counted("count", 10, within, number) for number in range(count))
        return through_batch(LEAK_TYPES + text, table), batch_count

    against = "events of a key in the window"
    for name in AGGREGATES:
        yield curve(effort, "values-window", name, against, sizes, by_window(name))
    many = (10, 100) if effort.quick else (10, 100, 1000, 10_000, 100_000)
    yield curve(effort, "values-keys", "pairs", "keys", many, by_keys(pair(), ""))
    yield curve(effort, "values-keys", "distinct", "keys", many, by_keys("", "distinct"))
    rules = (1, 3) if effort.quick else (1, 3, 10, 30)
    yield curve(effort, "values-rules", "count", "rules", rules, by_rules)
