"""Measures of workers by rule, as text that a query collects.

A partition or a bucket writes one `Measures` as JSON in each micro-batch. The query brings all of
them to the driver with its progress report, and `figures` adds them up. The size of a state is its
bytes in the checkpoint, rule by rule; waiting events belong to all rules of a bucket and are not
counted in it. What is done again because an executor was lost is told again: measures of one place
count once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from ensue.engine.ports import Ports
from ensue.events.event import Event
from ensue.events.types import TypeSystem
from ensue.spark.plan import PlannedRule


def _later(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)


class RuleMeasures(msgspec.Struct, omit_defaults=True):
    """Measures of one rule: `read` counts events that it wants, `latest` is their latest time."""

    read: int = 0
    late: int = 0
    outputs: int = 0
    state_bytes: int = 0
    latest: int | None = None

    def add(self, other: RuleMeasures) -> None:
        self.read += other.read
        self.late += other.late
        self.outputs += other.outputs
        self.state_bytes += other.state_bytes
        self.latest = _later(self.latest, other.latest)


class Measures(msgspec.Struct, omit_defaults=True):
    """Measures of one partition or bucket in a micro-batch.

    `late` counts an event once, also if several rules want it.

    `latest` is the latest time of all events, wanted or not, where workers read the rows, and
    `rows` is how many there were. `place` is that of the group and bucket which has told them.
    `buckets` is 1 for a bucket with state, `parts` how many parts it has, and the others how many
    of them it has read and written.
    """

    place: str = ""
    rows: int = 0
    late: int = 0
    rejected: int = 0
    latest: int | None = None
    buckets: int = 0
    parts: int = 0
    parts_read: int = 0
    parts_written: int = 0
    rules: dict[str, RuleMeasures] = {}

    def rule(self, name: str) -> RuleMeasures:
        return self.rules.setdefault(name, RuleMeasures())

    def add(self, other: Measures) -> None:
        self.rows += other.rows
        self.late += other.late
        self.rejected += other.rejected
        self.buckets += other.buckets
        self.parts += other.parts
        self.parts_read += other.parts_read
        self.parts_written += other.parts_written
        self.latest = _later(self.latest, other.latest)
        for name, measures in other.rules.items():
            self.rule(name).add(measures)

    def count_read(self, matched: Iterable[str], time: int, count: int = 1) -> None:
        """Add events that all these rules want; `time` is their latest time."""
        for name in matched:
            rule = self.rule(name)
            rule.read += count
            rule.latest = _later(rule.latest, time)

    def count_late(
        self, events: Iterable[Event], rules: Sequence[PlannedRule], types: TypeSystem
    ) -> None:
        asked = [(rule.name, Ports(rule.correlation, types)) for rule in rules]
        for event in events:
            for name, ports in asked:
                if ports.matched(event):
                    self.rule(name).late += 1

    def count_outputs(self, made: pa.Table) -> None:
        for each in pc.value_counts(made.column("correlation")).to_pylist():
            if each["values"] is not None:
                self.rule(each["values"]).outputs += each["counts"]


def write_measures(measures: Measures) -> str:
    return msgspec.json.encode(measures).decode()


def read_measures(texts: Iterable[str]) -> Measures:
    """The sum of measures that were written, those of each place once."""
    told = [msgspec.json.decode(text, type=Measures) for text in texts]
    total = Measures()
    for each in {each.place: each for each in told}.values():
        total.add(each)
    return total
