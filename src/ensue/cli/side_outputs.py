"""The side outputs of a run: refused records and late events.

Both are counted, and written to a file if one is given (`ensue.events.records.dead_letters`).
Refused records are also named on the standard error.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from ensue.cli import hints
from ensue.cli.hints import looks_like_an_object
from ensue.cli.terminal import listed, say
from ensue.errors import UsageError
from ensue.events.cloudevents import encode
from ensue.events.event import Event, Rejected
from ensue.events.files.output.whole_file import WholeFile
from ensue.events.records.dead_letters import dead_letter
from ensue.events.sources import STDIN

MOST_NAMED = 20
"""The most causes of refused records that are named."""

_NO_OFFSET = "the offset is missing"
_NOT_UTF8 = "the text is not UTF-8"


Naming = Literal["at the end", "at once", "each"]


@dataclass
class _Cause:
    """A cause of refusals: the first place, what was said there, and how often it came."""

    where: str
    text: str
    count: int = 1


def _cause(problem: str) -> str:
    """A problem without the values that differ from record to record."""
    head, colon, tail = problem.partition(": ")
    return f"{_NUMBER.sub('0', head)}{colon}{_NUMBER.sub('0', _QUOTED.sub('``', tail))}"


_QUOTED = re.compile("`[^`]*`")
_NUMBER = re.compile(r"(?<![`\w])-?[0-9][0-9.,]*")


class RefusedRecords:
    """The refused records of a run; `name` stands for the input in messages."""

    def __init__(
        self,
        name: str,
        dead_letter: Path | None,
        as_lines: bool,
        files: ExitStack,
        opened: Opener | None = None,
        naming: Naming = "at the end",
    ) -> None:
        """`opened` opens the file of dead letters; by default it replaces the file of before.

        `naming` says when records are named: each cause once at the end, each cause at once and its
        number at the end, or each record at once.
        """
        self._naming = naming
        self._causes: dict[tuple[str | None, tuple[str, ...]], _Cause] = {}
        self._unnamed = 0
        files.callback(self.tell)
        self.count = 0
        self.objects = 0
        self.without_offset = 0
        self.first: str | None = None
        self.first_record: Rejected | None = None
        self.first_without_offset: str | None = None
        self.first_not_utf8: str | None = None
        self.as_lines = as_lines
        self._name = name
        self.path = dead_letter
        self._file = _open(dead_letter, files, opened)

    @property
    def names_each(self) -> bool:
        """Whether every record is named, and not each cause once."""
        return self._naming == "each"

    def take(self, record: Rejected, place: str | None = None) -> None:
        """Count, name and keep a record. `place` replaces its file and number in the message."""
        self.count += 1
        self.objects += looks_like_an_object(record.raw)
        where = place or f"{record.file or self._name}:{record.number}"
        self.first = self.first or where
        self.first_record = self.first_record or record
        if any(_NO_OFFSET in problem for problem in record.problems):
            self.without_offset += 1
            self.first_without_offset = self.first_without_offset or where
        if self.first_not_utf8 is None and record.problems[0].startswith(_NOT_UTF8):
            self.first_not_utf8 = where
        if self._file:
            self._file.write(dead_letter(record, self.as_lines) + b"\n")
        text = "; ".join(record.problems)
        if self._naming == "each":
            say(f"{where}: {text}", "red")
            return
        key = record.file, tuple(map(_cause, record.problems))
        known = self._causes.get(key)
        if known is not None:
            known.count += 1
        elif len(self._causes) >= MOST_NAMED:
            self._unnamed += 1
        else:
            self._causes[key] = _Cause(where, text)
            if self._naming == "at once":
                say(f"{where}: {text}", "red")

    def tell(self) -> None:
        """Name each cause that has not been named, with the first place and the number."""
        for each in self._causes.values():
            more = f"{each.count - 1:,} more"
            if self._naming == "at the end":
                place = each.where if each.count == 1 else f"{each.where} and {more}"
                say(f"{place}: {each.text}", "red")
            elif each.count > 1:
                say(f"{each.where}: {more} of this kind", "red")
        if self._unnamed:
            rest = f"all are in `{self.path}`" if self.path else "`--verbose` names each"
            say(f"{self._name}: {self._unnamed:,} are refused for other causes; {rest}", "red")
        self._causes.clear()
        self._unnamed = 0

    def hints(self, read: int) -> list[str]:
        """Hints about the causes of the refusals, in a run that has read `read` events."""
        found = [
            hints.about_refusals(read, self.count, self.first),
            hints.about_offsets(self.without_offset, self.first_without_offset),
            hints.about_encoding(self.first_not_utf8),
        ]
        first = self.first_record
        if first is not None:
            found.append(hints.about_numbers(read, self.first, first.problems))
            found.append(hints.about_kinds(read, first.problems))
        if first is not None and self.as_lines:
            file = first.file or self._name
            found.append(hints.about_lines(read, self.count, self.objects, file, first.raw))
            found.append(hints.about_members(read, first.raw, first.problems))
        elif first is not None:
            found.append(hints.about_columns(read, first.problems))
        return [each for each in found if each is not None]

    def summary(self) -> str:
        kept = f" (kept in `{self.path}`)" if self.path else ""
        return f"{self.count:,} refused{kept}"


class LateEvents:
    """The late events of a run."""

    def __init__(self, path: Path | None, files: ExitStack, opened: Opener | None = None) -> None:
        self._path = path
        self._file = _open(path, files, opened)
        self._ids: list[str] = []
        self._count = 0

    def take(self, late: list[Event]) -> list[Event]:
        """Keep the late events of a run, which then has none."""
        self.take_new(late)
        return [] if late else late

    def take_new(self, late: Sequence[Event]) -> None:
        """Keep late events."""
        for event in late:
            self._count += 1
            if self._count <= MOST_NAMED:
                self._ids.append(event.id)
            if self._file:
                self._file.write(encode(event) + b"\n")

    def summary(self) -> str:
        more = self._count - len(self._ids)
        ids = f"id {listed(self._ids)}" + (f" and {more:,} more" if more else "")
        return f"{self._count:,} late ({f'kept in `{self._path}`' if self._path else ids})"


class Written(Protocol):
    """A file that bytes are written to."""

    def write(self, data: bytes, /) -> object: ...


Opener = Callable[[Path], Written]


def _open(path: Path | None, files: ExitStack, opened: Opener | None) -> Written | None:
    if path is None:
        return None
    return files.enter_context(WholeFile(path)).file if opened is None else opened(path)


def refuse_shared_files(
    options: Iterable[tuple[str, str | Path | None]], libraries: Sequence[Path]
) -> None:
    """Raise `UsageError` if a file that is written is also read, or written twice."""
    taken = {_identity(path): "the library" for path in libraries}
    for option, given in options:
        if given is None or str(given) == STDIN:
            continue
        path = Path(given)
        identity = _identity(path)
        # A file that is read twice is reported where files are searched.
        is_read_twice = option == "--events" and taken.get(identity) == "`--events`"
        # A device such as a terminal can be written to by two options.
        if identity in taken and not is_read_twice and (path.is_file() or not path.exists()):
            raise UsageError(
                f"`{option}` is `{given}`, which is also the file of {taken[identity]}: choose"
                " another file"
            )
        taken[identity] = f"`{option}`"


def file_of_history(url: str | None) -> str | None:
    """The file of a history, if the history is one file."""
    scheme, _, path = (url or "").partition(":")
    return path if scheme == "sqlite" and path else None


def _identity(path: Path) -> object:
    """The identity of a file, whatever path leads to it; the real path if the file is missing."""
    try:
        status = path.stat()
    except OSError:
        # Unlike `resolve`, it accepts a symbolic link to itself.
        return os.path.realpath(path)
    return status.st_dev, status.st_ino
