"""What a followed run reads and puts out, tied together by its position.

The journal is told of each step before it is taken, and saves the state of the run between steps:
every few seconds, more rarely if that takes long, and at the end. A run that is started again takes
the steps after the last state once more, and its files know what they have already.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ensue.cli.followed.grown_file import GrownFile
from ensue.cli.followed.grown_outputs import GrownOutputs
from ensue.cli.followed.position import VERSION, Clock, PositionFile, State, Step, position_path
from ensue.errors import UsageError
from ensue.events.files.output.endings import format_of
from ensue.events.records.following import Follower
from ensue.events.records.places import InputPlace, ReadingStep

SECONDS_BETWEEN_STATES = 2.0
SECONDS_BETWEEN_FILES = 60.0
"""As `SECONDS_BETWEEN_STATES`, for outputs that become one file of a folder after the other."""
_SHARE_OF_TIME = 0.05
"""The most of its time that a run spends on saving its state."""


class Journal:
    """The position of a run beside its outputs. Raises `UsageError` for a position of another run.

    `made_by` are the options on which the state depends, each as the user would write it.
    """

    def __init__(
        self, out: Path, made_by: dict[str, str], seconds_between_states: float | None = None
    ) -> None:
        is_folder = format_of(out) not in (None, "csv")
        self._position = PositionFile(position_path(out))
        self._made_by = made_by
        self._between = SECONDS_BETWEEN_FILES if is_folder else SECONDS_BETWEEN_STATES
        if seconds_between_states is not None:
            self._between = seconds_between_states
        found = self._position.read()
        self.state: State | None = None
        self._steps: list[Step] = []
        if found is not None:
            self.state, self._steps = found
            self._check_options(self.state)
        self._files: dict[str, GrownFile] = {}
        self._is_replaying = bool(self._steps)
        self._is_settled = True
        self._pause = self._between
        self._saved_at = 0.0
        self.now = 0

    def _check_options(self, state: State) -> None:
        before = state.made_by
        for name in {**before, **self._made_by}:
            was, given = before.get(name, ""), self._made_by.get(name, "")
            if was != given:
                # A library is too long for a message.
                told = "" if name == "the library" else f", `{was}` and not `{given}`"
                raise UsageError(
                    f"`{self._position.path}` is the position of a run with another"
                    f" {name.removeprefix('the ')}{told}: run it as before; or, to read all events"
                    " again, choose another `--out`"
                )

    # --- what belongs to it -----------------------------------------------------------------------

    @property
    def places(self) -> Sequence[InputPlace] | None:
        """Where the files go on; None if the run is new."""
        return None if self.state is None else self.state.inputs

    def length_of(self, path: Path) -> int | None:
        """How long a file was when the state was saved."""
        return None if self.state is None else self.state.lengths.get(str(path))

    def grown_file(self, path: Path) -> GrownFile:
        """A file that the run appends to."""
        file = GrownFile(path, self.length_of(path))
        self._files[str(path)] = file
        return file

    def bind(
        self, snapshot: Callable[[], bytes], follower: Follower, outputs: GrownOutputs
    ) -> None:
        """Say whose state it is; `snapshot` returns that of the engine."""
        self._snapshot, self._follower, self._outputs = snapshot, follower, outputs

    # --- steps ------------------------------------------------------------------------------------

    def steps(self) -> Sequence[Step]:
        """The steps that are to be taken again."""
        return self._steps

    def taking(self, step: Step) -> None:
        """Say that a step is taken again."""
        self.now = step.now

    def caught_up(self) -> None:
        """Say that all steps were taken, and that what comes is new."""
        self._is_replaying = False
        for each in self._files.values():
            each.caught_up()
        self._outputs.caught_up()
        self.save()

    def note(self, step: ReadingStep) -> None:
        self._note(step)

    def clock(self, moment: int) -> None:
        """The clock is about to move to a moment."""
        self._note(Clock(moment))

    def _note(self, what: ReadingStep | Clock) -> None:
        self.now = time.time_ns() // 1000
        self._is_settled = False
        self._position.note(Step(what, self.now))

    def settled(self) -> None:
        """All records of all steps have been dealt with: save the state, if it is time."""
        is_time = time.monotonic() - self._saved_at >= self._pause or self._outputs.is_full
        if is_time and not self._is_settled:
            self.save()
        for each in self._files.values():
            each.flush()

    def save(self) -> None:
        """Save the state, with everything that was put out before it on the disk."""
        begun = time.monotonic()
        parts = self._outputs.settle()
        lengths = {path: file.sync() for path, file in self._files.items()}
        places, engine = self._follower.places, self._snapshot()
        state = State(VERSION, self._made_by, places, engine, lengths, parts)
        self._position.save(state)
        self._outputs.settled()
        self._is_settled = True
        self._saved_at = time.monotonic()
        self._pause = max(self._between, (self._saved_at - begun) / _SHARE_OF_TIME)

    def close(self) -> None:
        self._position.close()
        for each in self._files.values():
            each.close()


def made_by(library: str, options: Mapping[str, object]) -> dict[str, str]:
    """The options on which the state of a run depends; the library by a sum of its text."""
    given = {name: str(value) for name, value in options.items() if value not in (None, (), "")}
    return {"the library": hashlib.sha256(library.encode()).hexdigest(), **given}
