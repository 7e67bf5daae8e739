"""The position of a followed run: a file beside its outputs that says where the run was.

In come the state of a run, now and then, and each step that it takes after that: what it reads, and
when its clock moves. Out comes, after a kill, all that is needed to go on: the state, and the steps
to take again. A step is written before its outputs are, so that a run that is started again makes
the same outputs in the same order, and knows by the length of its files which of them it has
written. A state replaces the file as a whole. What ends in the middle, or is damaged, ends the list
of steps: of a step that was never written whole, nothing was put out.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from ensue.errors import UsageError
from ensue.events.files.output.whole_file import WholeFile
from ensue.events.records.places import InputPlace, ReadingStep

VERSION = 1
SUFFIX = ".position"
_SIGN = b"ensue position\n"
_LENGTH = 8


class Clock(msgspec.Struct, frozen=True, tag="clock"):
    """The clock was moved to a time, while no event came."""

    time: int


class Step(msgspec.Struct, frozen=True):
    """A step of a run, and the time of this machine then, which bounds the times of live events."""

    what: ReadingStep | Clock
    now: int


class State(msgspec.Struct, frozen=True):
    """All of a run at one moment: its inputs, its engine, and how long its files were.

    `made_by` are the options that the state depends on, and `parts` the number of files of a folder
    of tables.
    """

    version: int
    made_by: dict[str, str]
    inputs: tuple[InputPlace, ...]
    engine: bytes
    lengths: dict[str, int]
    parts: int = 0


_encode = msgspec.msgpack.Encoder().encode
_read_state = msgspec.msgpack.Decoder(State).decode
_read_step = msgspec.msgpack.Decoder(Step).decode


class PositionFile:
    """The position of a run, on the disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: BinaryIO | None = None

    def read(self) -> tuple[State, list[Step]] | None:
        """The last state and the steps after it; None if there is no file.

        Raises `UsageError` for a file that is no position.
        """
        try:
            whole = self.path.read_bytes()
        except FileNotFoundError:
            return None
        if not whole.startswith(_SIGN):
            raise UsageError(
                f"`{self.path}` is where a followed run keeps its position, and is another file:"
                " choose another `--out`"
            )
        frames = _frames(whole[len(_SIGN) :])
        try:
            state = _read_state(frames[0])
            steps = [_read_step(each) for each in frames[1:]]
            if state.version != VERSION:
                raise ValueError(f"its version is {state.version}, and not {VERSION}")
        except (IndexError, ValueError) as error:
            raise UsageError(
                f"`{self.path}`, the position of a followed run, is damaged or of another version"
                f" ({error}): take it away to read all events again, with another `--out`"
            ) from None
        return state, steps

    def save(self, state: State) -> None:
        """Replace everything by a state, which is on the disk when this returns."""
        self.close()
        with WholeFile(self.path) as whole:
            whole.file.write(_SIGN + _frame(_encode(state)))
        self._file = self.path.open("ab", buffering=0)

    def note(self, step: Step) -> None:
        """Add a step. It survives the end of this process when this returns."""
        assert self._file is not None
        self._file.write(_frame(_encode(step)))

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def position_path(out: Path) -> Path:
    """Where the position of a run stands whose outputs go to a file."""
    return out.with_name(f"{out.name}{SUFFIX}")


def _frame(content: bytes) -> bytes:
    length, check = len(content), zlib.crc32(content)
    return length.to_bytes(4, "big") + check.to_bytes(4, "big") + content


def _frames(data: bytes) -> Sequence[bytes]:
    """The frames up to the first that is not whole."""
    found = []
    at = 0
    while at + _LENGTH <= len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        check = int.from_bytes(data[at + 4 : at + _LENGTH], "big")
        content = data[at + _LENGTH : at + _LENGTH + length]
        if len(content) < length or zlib.crc32(content) != check:
            break
        found.append(content)
        at += _LENGTH + length
    return found


def sync(file: BinaryIO) -> None:
    """Write a file to the disk."""
    file.flush()
    os.fsync(file.fileno())
