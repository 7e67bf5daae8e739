"""The outputs of a run: lines on the standard output, or a file in the format that its name tells.

A file is replaced when the run is done, and keeps its old content until then; the lines of an
endless run can be read while they are written. Outputs come in columns, or as events from engines
that read event by event.
"""

from __future__ import annotations

import errno
import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO

from ensue.cli.terminal import standard_output
from ensue.errors import UsageError
from ensue.events.cloudevents import encode
from ensue.events.event import Event
from ensue.events.files.output.endings import FORMATS, format_of
from ensue.events.files.output.whole_file import WholeFile
from ensue.events.sources.opening import check_url, is_url, put_file
from ensue.lang.checked import CheckedLibrary

if TYPE_CHECKING:
    import pyarrow as pa

    from ensue.engine.batch.output.columns import BatchOutputs
    from ensue.engine.batch.output.schema import OutputSchema

_EVENTS_AT_ONCE = 10_000


_TABLES_OF_OTHERS = (".avro", ".db", ".ods", ".orc", ".sqlite", ".xls", ".xlsx")
_TEXTS_OF_OTHERS = (".bz2", ".gz", ".xml", ".yaml", ".yml", ".zip", ".zst")


def refuse_other_formats(path: Path | None) -> None:
    """Raise `UsageError` for the name of a format that is not supported."""
    if path is not None and path.suffix.lower() in (*_TABLES_OF_OTHERS, *_TEXTS_OF_OTHERS):
        written = ", ".join(f"`{ending}`" for ending in FORMATS)
        raise UsageError(
            f"`--out`: the format `{path.suffix}` cannot be written: choose {written}, or `.jsonl`"
            " for lines of JSON"
        )


class Destination:
    """Where outputs go: `path` is a file of this machine, or none for the standard output.

    What goes to a URL is written to a temporary file first, and is put there by `finish`, whole.
    """

    def __init__(self, given: str | None) -> None:
        self.given = given
        self.path = None if given is None else Path(given)
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        if given is not None and is_url(given):
            check_url(given)
            self._folder = tempfile.TemporaryDirectory()
            self.path = Path(self._folder.name, PurePosixPath(given).name)

    @property
    def is_url(self) -> bool:
        return self._folder is not None

    def finish(self) -> None:
        if self._folder is not None:
            assert self.path is not None
            assert self.given is not None
            put_file(self.path, self.given)
            self._folder.cleanup()


def silent_at_first(library: CheckedLibrary) -> set[str]:
    """The rules that can put something out and have not done so yet."""
    # What an internal rule puts out stays in the library.
    return {each.name for each in library.correlations if each.role != "internal"}


def note_rules(silent: set[str], outputs: Sequence[Event]) -> None:
    """Take the rules that have put something out from those that have not."""
    if silent:
        silent.difference_update(str(each.extensions.get("correlation")) for each in outputs)


class OutputWriter:
    """Writes the outputs of a run. Without `finish`, a file keeps its old content.

    `only` is the correlation whose outputs are written. With `grows`, lines are written to the file
    at once, for a run without an end.
    """

    def __init__(
        self,
        path: Path | None,
        library: CheckedLibrary,
        only: str | None,
        files: ExitStack,
        grows: bool = False,
    ) -> None:
        self.written = 0
        self.silent = silent_at_first(library)
        self._only = only
        self._library = library
        self._path = path
        self._files = files
        self._format = None if path is None else format_of(path)
        # A table can be read only when it is complete.
        grows = grows and self._format is None
        self._file = None if path is None else files.enter_context(WholeFile(path, grows))
        self._waiting: list[Event] = []
        self._tables: Any = None
        self._held: BinaryIO | None = None
        self._stdout = standard_output()
        if self._file is None:
            _refuse_closed_output()

    @property
    def is_terminal(self) -> bool:
        return self._file is None and sys.stdout.isatty()

    def hold_back(self) -> None:
        """Write nothing to the standard output before `finish`, since `restart` may discard it."""
        if self._file is None:
            self._held = self._files.enter_context(tempfile.TemporaryFile())  # noqa: SIM115

    def restart(self) -> None:
        """Discard all outputs written so far."""
        self.written = 0
        self._waiting.clear()
        if self._tables is not None:
            self._tables.restart()
        if self._file is not None:
            self._file.restart()
        elif self._held is not None:
            self._held.seek(0)
            self._held.truncate()

    def abandon(self) -> None:
        """Leave the file as it was before the run."""
        if self._file is not None:
            self._file.abandon()

    # --- writing ------------------------------------------------------------------------------

    def write_events(self, outputs: Sequence[Event]) -> list[Event]:
        """Write the outputs of the chosen correlation. Returns those that were written."""
        note_rules(self.silent, outputs)
        only = self._only
        wanted = [
            each for each in outputs if only is None or each.extensions.get("correlation") == only
        ]
        self.written += len(wanted)
        if self._format is None:
            self._lines.write(b"".join(encode(output) + b"\n" for output in wanted))
        else:
            self._waiting += wanted
            if len(self._waiting) >= _EVENTS_AT_ONCE:
                self._write_waiting()
        return wanted

    @cached_property
    def columns(self) -> OutputSchema:
        """The columns of the outputs of the chosen correlation, or of all correlations."""
        from ensue.engine.batch.output.schema import output_schema

        rules = self._library.correlations
        wanted = [each for each in rules if self._only is None or each.name == self._only]
        return output_schema(self._library.types, wanted)

    def write_columns(self, outputs: BatchOutputs) -> None:
        """Write the outputs of a batch."""
        if self.silent and len(outputs):
            from ensue.engine.batch.output.lines import batch_correlations

            self.silent.difference_update(batch_correlations(outputs).unique().to_pylist())
        if self._format is not None:
            if len(outputs):
                table = self._chosen(outputs.table())
                self.written += table.num_rows
                self._table_file.add(table)
            return
        from ensue.engine.batch.output.lines import batch_lines

        lines = batch_lines(outputs, self._only)
        self.written += len(lines)
        if len(lines):
            _, offsets, data = lines.buffers()
            width = 8 if offsets.size >= 8 * (len(lines) + 1) and _is_large(lines) else 4
            begin = int.from_bytes(
                offsets[lines.offset * width : (lines.offset + 1) * width], "little"
            )
            last = lines.offset + len(lines)
            end = int.from_bytes(offsets[last * width : (last + 1) * width], "little")
            self._lines.write(memoryview(data)[begin:end])

    def _chosen(self, table: pa.Table) -> pa.Table:
        if self._only is None:
            return table
        import pyarrow.compute as pc

        return table.filter(pc.equal(table.column("correlation"), self._only))

    def flush(self) -> None:
        if self._format is None:
            self._lines.flush()

    def finish(self) -> None:
        """Complete the outputs, and replace the file."""
        if self._format is not None:
            assert self._file is not None
            self._write_waiting()
            self._table_file.write_to(self._file.file)
        elif self._held is not None:
            self._held.seek(0)
            while block := self._held.read(1 << 20):
                self._stdout.write(block)
        if self._file is None:
            self._stdout.flush()
        else:
            self._file.keep()

    # --- files --------------------------------------------------------------------------------

    @property
    def _lines(self) -> BinaryIO:
        if self._file is not None:
            return self._file.file
        return self._held or self._stdout

    def _write_waiting(self) -> None:
        if self._waiting:
            from ensue.engine.batch.output.schema import events_table

            rows = events_table(self._waiting, self._library.types, self.columns)
            self._table_file.add(rows)
            self._waiting.clear()

    @property
    def _table_file(self) -> Any:
        if self._tables is None:
            from ensue.events.files.output.tables import TableFile

            assert self._path is not None
            self._tables = TableFile(self._path, self.columns.schema)
        return self._tables


def _is_large(lines: Any) -> bool:
    return str(lines.type) == "large_string"


def _refuse_closed_output() -> None:
    """Raise `UsageError` if the standard output is closed, since outputs would be lost."""
    try:
        os.fstat(sys.stdout.fileno())
    except OSError as error:
        if error.errno == errno.EBADF:
            raise UsageError(CLOSED) from None
    except (AttributeError, ValueError):
        # A test or another program has replaced the standard output.
        return
    if getattr(sys.stdout, "name", None) == os.devnull:
        raise UsageError(CLOSED)


CLOSED = "the standard output is closed, so the outputs would be lost: give `--out FILE`"
