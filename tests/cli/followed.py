"""Runs over files that grow piece by piece, in this process: singly, or in columns."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from ensue.cli.event_run import EventRun
from ensue.cli.outputs import OutputWriter
from ensue.cli.progress import ProgressDisplay
from ensue.cli.side_outputs import LateEvents, RefusedRecords
from ensue.engine.run import Run
from ensue.engine.timing.jumps import UNBOUNDED
from ensue.events.last_record import LastRecord
from ensue.events.mapping import Mapping as ColumnMapping
from ensue.events.records.following import Follower, Reading
from ensue.events.sources import open_inputs
from ensue.library import Library


class Runs:
    """Runs over files that grow piece by piece, on all engines that may follow."""

    def __init__(
        self,
        folder: Path,
        library: Library,
        lateness: int = 0,
        mapping: ColumnMapping | None = None,
        max_jump: float = UNBOUNDED,
    ) -> None:
        self.library = library
        self.folder = folder
        self.lateness = lateness
        self.mapping = mapping
        self.max_jump = max_jump

    def after(
        self,
        pieces: Mapping[str, Sequence[bytes]],
        columns_from: int | None,
        between: Callable[[EventRun], object] = lambda _: None,
    ) -> tuple[object, ...]:
        """All that a run puts out whose files grow by one piece at a time."""
        checked = self.library.checked
        names = [self.folder / name for name in pieces]
        out, dead, late = (self.folder / each for each in ("out", "dead", "late"))
        for path, parts in zip(names, pieces.values(), strict=True):
            path.write_bytes(parts[0])
        with ExitStack() as files:
            outputs = OutputWriter(out, checked, None, files)
            refused = RefusedRecords("-", dead, True, files)
            paths = [str(each) for each in names]
            last = LastRecord()
            follower = Follower(
                paths, open_inputs(paths), Reading(checked.types, self.mapping, last)
            )
            running = EventRun(
                run=Run(checked, "step", self.lateness, max_jump=self.max_jump),
                last=last,
                refused=refused,
                late=LateEvents(late, files),
                outputs=outputs,
                is_live=False,
                by_wall_clock=False,
                strict=False,
                explain=False,
                library=checked,
                columns_from=columns_from,
            )
            for number in range(max(map(len, pieces.values()))):
                for path, parts in zip(names, pieces.values(), strict=True):
                    if 0 < number < len(parts):
                        with path.open("ab") as file:
                            file.write(parts[number])
                coming = follower.records(grow=False, stops=lambda: False)
                running.feed(coming, in_order=True, bars=ProgressDisplay())
                between(running)
            running.feed(follower.rest(), in_order=True, bars=ProgressDisplay())
            running.finish(None)
        counts = running.counts
        return (
            out.read_bytes(), dead.read_bytes(), late.read_bytes(),
            counts.events, counts.late, counts.outputs, running.latest,
            running.seen.types, running.seen.absent, refused.count, refused.first,
        )  # fmt: skip


def pieces_of(lines: Sequence[bytes], count: int) -> list[bytes]:
    """Lines in pieces that end anywhere, also within a line."""
    whole = b"".join(lines)
    draw = random.Random(len(whole))
    ends = sorted(draw.randrange(len(whole)) for _ in range(count - 1))
    return [whole[a:b] for a, b in itertools.pairwise([0, *ends, len(whole)])]
