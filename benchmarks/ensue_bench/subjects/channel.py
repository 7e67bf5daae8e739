"""The event channel compared with the paper: latency, deadlines, spacing, look-up.

Unlike other measurements of this folder these use the wall clock, since an event is late or not.
Other work on the machine therefore shows in the results, in the maxima first.
"""

from __future__ import annotations

from collections.abc import Iterator

from ensue_bench.channel import latency, load, spacing
from ensue_bench.effort import Effort
from ensue_bench.report import Figure, Picture, ReportTable


def measure(effort: Effort) -> Iterator[Figure | ReportTable | Picture]:
    yield from latency.measure_collocated(effort)
    yield from latency.measure_two_processes(effort)
    yield from load.measure(effort)
    yield from spacing.measure(effort)
