"""Outputs of a run without an end: appended to a file, or as the next files of a folder.

JSON lines and CSV are appended to what the file holds. Tables can be read only when they are
complete, so that they become a folder with one file after the other; a file is complete when it has
its name. `settle` and `settled` bracket the saving of the position (`journal`): what was made
before it is on the disk then, and is not made again.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ensue.cli.followed.grown_file import GrownFile
from ensue.cli.outputs import note_rules, silent_at_first
from ensue.cli.terminal import say
from ensue.errors import UsageError
from ensue.events.cloudevents import encode
from ensue.events.event import Event
from ensue.events.files.output.endings import format_of
from ensue.lang.checked import CheckedLibrary

if TYPE_CHECKING:
    from ensue.engine.batch.output.columns import BatchOutputs
    from ensue.engine.batch.output.schema import OutputSchema

EVENTS_A_FILE = 100_000
"""The most outputs of a file of a folder, but for those of one event."""


class _Sink(Protocol):
    @property
    def waiting(self) -> int: ...

    def write(self, outputs: Sequence[Event]) -> None: ...

    def flush(self) -> None: ...

    def settle(self) -> int: ...

    def settled(self) -> None: ...


class GrownOutputs:
    """Writes the outputs of a run without an end. `only` is the rule whose outputs are written.

    `opened` opens a file to append to. `parts` is the number of files of a folder that a position
    knows of; a run that has no position is `alone`.
    """

    is_terminal = False

    def __init__(
        self,
        path: Path,
        library: CheckedLibrary,
        only: str | None,
        opened: Callable[[Path], GrownFile],
        parts: int | None = None,
        alone: bool = False,
    ) -> None:
        self.written = 0
        self.silent = silent_at_first(library)
        self._only = only
        self._is_alone = alone
        kind = format_of(path)
        self._sink: _Sink
        if kind is None:
            self._sink = _Lines(opened(path))
        elif kind == "csv":
            self._sink = _Rows(path, opened(path), library, only)
        else:
            self._sink = _Folder(path, library, only, parts)

    def write_events(self, outputs: Sequence[Event]) -> list[Event]:
        """Write the outputs of the chosen correlation. Returns those that were written."""
        note_rules(self.silent, outputs)
        only = self._only
        wanted = [
            each for each in outputs if only is None or each.extensions.get("correlation") == only
        ]
        self.written += len(wanted)
        self._sink.write(wanted)
        if self._is_alone and self.is_full:
            self.finish()
        return wanted

    def write_columns(self, outputs: BatchOutputs) -> None:
        """Write the outputs of a batch."""
        self.write_events(outputs.events())

    @property
    def is_full(self) -> bool:
        """Whether so much waits to be put on the disk that it should be soon."""
        return self._sink.waiting >= EVENTS_A_FILE

    def flush(self) -> None:
        self._sink.flush()

    def finish(self) -> None:
        self._sink.flush()
        if self._is_alone:
            self._sink.settle()
            self._sink.settled()

    def abandon(self) -> None:
        """Nothing is taken back: what was put out before a record was refused stays."""

    def caught_up(self) -> None:
        """What was written so far was written by an earlier run, and is not counted again."""
        self.written = 0

    def settle(self) -> int:
        """Put everything on the disk; the number of complete files of a folder is returned."""
        return self._sink.settle()

    def settled(self) -> None:
        self._sink.settled()


class _Lines:
    waiting = 0

    def __init__(self, file: GrownFile) -> None:
        self._file = file

    def write(self, outputs: Sequence[Event]) -> None:
        self._file.write(b"".join(encode(each) + b"\n" for each in outputs))

    def flush(self) -> None:
        self._file.flush()

    def settle(self) -> int:
        self._file.flush()
        return 0

    def settled(self) -> None:
        pass


class _Columns:
    """Outputs as tables of fixed columns."""

    def __init__(self, library: CheckedLibrary, only: str | None) -> None:
        self._library = library
        self._only = only

    @cached_property
    def schema(self) -> OutputSchema:
        from ensue.engine.batch.output.schema import output_schema

        rules = self._library.correlations
        wanted = [each for each in rules if self._only is None or each.name == self._only]
        return output_schema(self._library.types, wanted)

    def table(self, outputs: Sequence[Event]) -> Any:
        from ensue.engine.batch.output.schema import events_table

        return events_table(list(outputs), self._library.types, self.schema)


class _Rows:
    """CSV. Its columns are those of the first line, or of the rules if the file is new."""

    def __init__(
        self, path: Path, file: GrownFile, library: CheckedLibrary, only: str | None
    ) -> None:
        from ensue.events.files.output.tables import CsvRows

        self._file = file
        self._columns = _Columns(library, only)
        self._delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
        names = self._columns.schema.schema.names
        self._rows = CsvRows(self._columns.schema.schema, self._delimiter)
        self._has_said = False
        self.waiting = 0
        if file.is_new:
            self._file.write(self._rows.header)
            self._file.flush()
        else:
            text = file.head().decode("utf-8", "replace")
            found = next(csv.reader(io.StringIO(text), delimiter=self._delimiter), [])
            if found != names:
                raise UsageError(
                    f"`{path}` has the columns {_listed(found)}, and the outputs have"
                    f" {_listed(names)}: choose another file"
                )

    def write(self, outputs: Sequence[Event]) -> None:
        if not outputs:
            return
        table = self._columns.table(outputs)
        more = [
            name for name in table.schema.names if name not in self._columns.schema.schema.names
        ]
        if more and not self._has_said:
            self._has_said = True
            say(
                f"outputs have also {_listed(more)}, for which the file has no columns: write JSON"
                " lines to keep everything",
                "yellow",
            )
        self._file.write(self._rows.rows(table))

    def flush(self) -> None:
        self._file.flush()

    def settle(self) -> int:
        self._file.flush()
        return 0

    def settled(self) -> None:
        pass


class _Folder:
    """Tables, one file after the other. `parts` is how many the position knows of."""

    def __init__(
        self, path: Path, library: CheckedLibrary, only: str | None, parts: int | None
    ) -> None:
        if path.exists() and not path.is_dir():
            raise UsageError(
                f"`{path}` is a file, and a followed run writes tables as a folder, one file after"
                " the other: choose another name"
            )
        path.mkdir(exist_ok=True)
        self._path = path
        self._columns = _Columns(library, only)
        self._waiting: list[Event] = []
        self._parts = self._known(parts)

    def _known(self, parts: int | None) -> int:
        """The number of files; the last is given its name if a kill came before that."""
        numbers = [
            int(each.stem.removeprefix(_PART))
            for each in self._path.glob(f"{_PART}*{self._path.suffix}")
            if each.stem.removeprefix(_PART).isdigit()
        ]
        if parts is None:
            return max(numbers, default=0)
        if parts and self._beside(parts).exists():
            self._beside(parts).rename(self._part(parts))
        return max(parts, *numbers, 0)

    def _part(self, number: int) -> Path:
        return self._path / f"{_PART}{number:06d}{self._path.suffix}"

    def _beside(self, number: int) -> Path:
        return self._path / f".{_PART}{number:06d}{self._path.suffix}"

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def write(self, outputs: Sequence[Event]) -> None:
        self._waiting += outputs

    def flush(self) -> None:
        pass

    def settle(self) -> int:
        from ensue.cli.followed.position import sync
        from ensue.events.files.output.tables import TableFile

        if self._waiting:
            self._parts += 1
            table = TableFile(self._part(self._parts), self._columns.schema.schema)
            table.add(self._columns.table(self._waiting))
            with self._beside(self._parts).open("wb") as file:
                table.write_to(file)
                sync(file)
            self._waiting.clear()
        return self._parts

    def settled(self) -> None:
        # A file has its name only once the position knows of it, so that it is made once.
        beside = self._beside(self._parts)
        if beside.exists():
            beside.rename(self._part(self._parts))


_PART = "part-"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"
