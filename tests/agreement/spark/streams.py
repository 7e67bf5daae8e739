"""Whether a stream, however it is cut, agrees with the judges on a trial.

In comes a trial and a seed; out goes what differs, or nothing. The events arrive in an order of
their own, in some trials so late that they are left out, in micro-batches; they end with a
heartbeat, up to which (less the lateness) the judge lets its clock run. A simulated stream calls
the workers as Spark does. A stream of Spark reads a file in each micro-batch, and is stopped on the
way and started again from its checkpoint.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

from pyspark.sql import SparkSession

from ensue.events.event import Event
from ensue.spark import correlate
from ensue.spark.streaming.bucket import KIND, LATE_KIND, LEFT_OUT, OUTPUT_KIND, PROBLEMS
from ensue.spark.streaming.job import StreamJob, StreamOptions
from tests.agreement.trials import Trial
from tests.spark.streaming.cutting import HEARTBEAT, collected, cut, stream_of, write_pieces
from tests.spark.streaming.simulation import SimulatedStream

from .rows import as_rows, as_text, frame_of, table_of_events

LATENESSES = (0, 1_000_000, 5_000_000)
DELAYS = (0, 1_000_000, 3_000_000)
"""By how much an event may come later than the lateness allows."""


@dataclass(frozen=True)
class Cut:
    """Places of events in the order of their arrival, by micro-batch.

    The place after the last one is that of a heartbeat, at `end` and the lateness.
    """

    lateness: int
    pieces: Sequence[Sequence[int]]
    end: int

    @classmethod
    def drawn(cls, trial: Trial, random: Random) -> Cut:
        lateness, delay = random.choice(LATENESSES), random.choice(DELAYS)
        times = [event.time for event in trial.events]
        arrivals = [
            (time + random.randrange(lateness + delay + 1), n) for n, time in enumerate(times)
        ]
        order = [place for _, place in sorted(arrivals)]
        end = max(times, default=0) + random.randrange(10_000_000)
        return cls(lateness, cut([*order, len(order)], random), end)

    def events(self, trial: Trial) -> list[Event]:
        heartbeat = Event("heartbeat", "test", HEARTBEAT, self.end + self.lateness, None, {})
        return [*trial.events, heartbeat]

    def parted(self, trial: Trial) -> tuple[list[int], list[int]]:
        """Places of the events that are read, in the order of time and arrival, and of the late."""
        read: list[int] = []
        late: list[int] = []
        settled: int | None = None
        for piece in self.pieces:
            places = [place for place in piece if place < len(trial.events)]
            for place in places:
                is_late = settled is not None and trial.events[place].time < settled
                (late if is_late else read).append(place)
            times = [trial.events[place].time - self.lateness for place in places]
            settled = max([*times, *([] if settled is None else [settled])], default=None)
        return sorted(read, key=lambda place: trial.events[place].time), late


def simulated(
    spark: SparkSession, trial: Trial, seed: int, whole_events: bool = False
) -> str | None:
    """What differs in a stream without Spark, whose partitions are cut as well."""
    random = Random(seed)
    chosen = Cut.drawn(trial, random)
    events = chosen.events(trial)
    arriving = [events[place] for piece in chosen.pieces for place in piece]
    job = StreamJob.of(
        frame_of(spark, arriving, trial.library).coalesce(1),
        trial.library,
        options=StreamOptions(
            lateness=timedelta(microseconds=chosen.lateness),
            buckets=random.choice([1, 2, 5]),
            whole_events=whole_events,
        ),
    )
    rows = job.rows().toArrow()
    # So that keys lie in one part or in very many.
    stream = SimulatedStream(job.task._replace(part_bytes=random.choice([1, 500, 1 << 15])))
    found: list[dict[str, Any]] = []
    first = 0
    for piece in chosen.pieces:
        numbers = range(first, first + len(piece))
        first += len(piece)
        found += stream.read(
            [rows.slice(part[0], len(part)) for part in cut(numbers, random, most=3)]
        )
    return _difference(trial, chosen, found, f"simulated in {job.task.form} with seed {seed}")


def streamed(spark: SparkSession, trial: Trial, seed: int, folder: Path) -> str | None:
    """What differs in a stream of Spark that is stopped on the way."""
    random = Random(seed)
    chosen = Cut.drawn(trial, random)
    table = table_of_events(chosen.events(trial), trial.library)
    files = [table.take(list(piece)) for piece in chosen.pieces]
    buckets = random.choice([1, 3])
    stop = random.randrange(len(files))
    found: list[dict[str, Any]] = []
    for first, part in ((0, files[:stop]), (stop, files[stop:])):
        if not part:
            continue
        write_pieces(folder / "events", part, first)
        made = correlate(
            stream_of(spark, folder / "events"),
            trial.library,
            lateness=timedelta(microseconds=chosen.lateness),
            buckets=buckets,
        )
        found += collected(made, folder / "checkpoint")
    return _difference(trial, chosen, found, f"streamed with seed {seed}, stopped after {stop}")


def _difference(
    trial: Trial, chosen: Cut, found: Iterable[Mapping[str, Any]], how: str
) -> str | None:
    read, late = chosen.parted(trial)
    aside = (KIND, LEFT_OUT, PROBLEMS, "event")
    kinds: dict[str, list[Mapping[str, Any]]] = {}
    for row in found:
        kinds.setdefault(row.get(KIND) or OUTPUT_KIND, []).append(row)
    outputs = [
        {name: value for name, value in row.items() if name not in aside}
        for row in kinds.pop(OUTPUT_KIND, [])
    ]
    lines: list[str] = []
    for each in trial.judged(read, chosen.end):
        wanted = sorted(as_text(row) for row in as_rows(each.outputs, trial.library))
        got = sorted(as_text(row) for row in outputs if row["correlation"] in each.rules)
        if wanted != got:
            lines += [each.text, "expected:", *wanted, "stream:", *got]
    told_late = Counter(row["id"] for row in kinds.pop(LATE_KIND, []))
    # A late event that no rule wants is not told.
    if not told_late <= Counter(trial.events[each].id for each in late) or kinds:
        others = [str(row) for rows in kinds.values() for row in rows]
        lines += [trial.text, f"late: {told_late}", *others]
    if not lines:
        return None
    cuts = f"// {how}, lateness {chosen.lateness}, cut {chosen.pieces}, late {late}"
    return "\n".join([cuts, str(trial), *lines])
