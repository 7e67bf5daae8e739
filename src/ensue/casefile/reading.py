"""The reader of case files.

In comes the path of a TOML file; out go its cases in order, or a `CaseError` with every mistake in
the file, one a line, each with the file and the line of its case. Nothing is run here, and
libraries are not parsed; `comparison` does that.

A file has `[[case]]` tables with `name`, `why`, `library` or `library_file`, `events` or
`events_file`, and `outputs`, and optionally `parameters`, `until`, `lateness`, `late`, `rejected`,
`errors` and `warnings`. `columns`, `type`, `timezone`, `year`, `format`, `delimiter`, `header` and
`null` describe an `events_file`, as in `ensue run`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

from ensue.casefile.case import (
    OUTPUT_FIELDS,
    Case,
    Expected,
    ExpectedFinding,
    ExpectedOutput,
    Recorded,
)
from ensue.casefile.notation import (
    read_event_text,
    read_finding,
    read_labels,
    read_output_text,
    read_time,
)
from ensue.configuration.toml import MOST_PROBLEMS, STOPPED, read_toml
from ensue.errors import CaseError, UsageError
from ensue.events.mapping import Mapping as Columns
from ensue.events.sources.contents import Given
from ensue.events.sources.finding import find_files
from ensue.events.times import format_time, microseconds_of
from ensue.lang.diagnostics import did_you_mean
from ensue.lang.durations import parse_duration

_READING = ("columns", "type", "timezone", "year", "format", "delimiter", "header", "null")
"""The keys that say how an `events_file` is read: of a case, or of all cases of a file."""
KEYS = (
    "name",
    "why",
    "library",
    "library_file",
    "events",
    "events_file",
    "parameters",
    *_READING,
    "outputs",
    "until",
    "lateness",
    "late",
    "rejected",
    "errors",
    "warnings",
)
DEFAULT_SOURCE = "case"
LARGEST_BYTES = 16 * 1024 * 1024
"""The largest size of a case file."""

_HEADER = re.compile(r"[ \t]*\[\[[ \t]*case[ \t]*\]\]", re.MULTILINE)
_NUMBER = re.compile(r"-?\d+(\.\d+)?")

Read = TypeVar("Read")


def find_case_files(path: Path) -> list[Path]:
    """The file itself, or every `*.toml` below a folder, in the order of their names."""
    if path.is_dir():
        return sorted(path.rglob("*.toml"))
    return [path]


def read_cases(path: Path) -> list[Case]:
    """The cases of a file. Raises `CaseError` with all its mistakes."""
    try:
        # Decimals keep times such as 0.1 exact; data gets its floats back below.
        file = read_toml(path, "give a file of cases", LARGEST_BYTES, Decimal)
    except UsageError as error:
        raise CaseError(str(error)) from None
    return _CaseFile(path, file.text).read(file.tables)


class _CaseFile:
    """Reads one file and collects its mistakes."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.problems: list[str] = []
        self._headers = [text.count("\n", 0, at.start()) + 1 for at in _HEADER.finditer(text)]
        self._where = str(path)
        self._shared: dict[str, Any] = {}

    def read(self, content: Mapping[str, Any]) -> list[Case]:
        self._shared = {key: content[key] for key in _READING if key in content}
        for key in content.keys() - {"case", *_READING}:
            self._complain(
                f"unknown key `{key}`: a file of cases holds `[[case]]` tables, and may say by "
                f"{', '.join(f'`{each}`' for each in _READING)} how the files of all are read"
            )
        tables = content.get("case", [])
        if not isinstance(tables, list) or not all(isinstance(each, dict) for each in tables):
            self._complain("`case` must be an array of tables: start each case with `[[case]]`")
            tables = []
        elif not tables:
            self._complain("the file holds no case: start one with `[[case]]`")
        cases = [self._case(index, table) for index, table in enumerate(tables)]
        self._where = str(self.path)
        self._refuse_doubles([case.name for case in cases])
        if self.problems:
            raise CaseError("\n".join(self.problems))
        return cases

    def _refuse_doubles(self, names: list[str]) -> None:
        for name in (name for name, count in Counter(names).items() if name and count > 1):
            self._complain(f"two cases are named `{name}`: names must differ within a file")

    def _complain(self, problem: str) -> None:
        self.problems.append(f"{self._where}: {problem}")
        if len(self.problems) >= MOST_PROBLEMS:
            raise CaseError("\n".join([*self.problems, STOPPED]))

    def _case(self, index: int, table: dict[str, Any]) -> Case:
        self._place(index, table)
        for key in table:
            if key not in KEYS:
                self._complain(f"unknown key `{key}`; {did_you_mean(key, KEYS)}")
        name = self._text(table, "name")
        errors = self._findings(table, "errors") or ()
        if not errors:
            for key in ("events", "outputs"):
                if key not in table and (key == "outputs" or "events_file" not in table):
                    self._complain(f"`{key}` is missing: a case without `errors` needs it")
        return Case(
            file=self.path,
            name=name,
            why=self._text(table, "why") if "why" in table else "",
            library=self._library(table),
            events=tuple(self._events(table)),
            expected=Expected(
                outputs=tuple(self._outputs(table)),
                late=self._ids(table, "late"),
                rejected=self._ids(table, "rejected"),
                errors=errors,
                warnings=self._findings(table, "warnings"),
            ),
            until=self._value(table, "until", read_time),
            lateness=self._value(table, "lateness", _duration),
            recorded=self._recorded(table),
            parameters=self._parameters(table),
        )

    def _parameters(self, table: Mapping[str, Any]) -> Mapping[str, Any]:
        given = table.get("parameters", {})
        if not isinstance(given, dict):
            self._complain("`parameters` is a table, as `parameters = { limit = 10 }`")
            return {}
        return {
            name: float(each) if isinstance(each, Decimal) else each for name, each in given.items()
        }

    def _place(self, index: int, table: Mapping[str, Any]) -> None:
        """Where mistakes of this case are: TOML keeps no lines, so the headers are looked for."""
        total_is_known = index < len(self._headers)
        line = f":{self._headers[index]}" if total_is_known else ""
        name = table.get("name")
        named = f"case `{name}`" if isinstance(name, str) and name else f"case {index + 1}"
        self._where = f"{self.path}{line}: {named}"

    def _text(self, table: Mapping[str, Any], key: str) -> str:
        value = table.get(key, "")
        if isinstance(value, str) and value.strip():
            return value
        self._complain(
            f"`{key}` is missing"
            if key not in table
            else f"`{key}` must be a text that says something"
        )
        return ""

    def _library(self, table: Mapping[str, Any]) -> str | Path:
        text, file = table.get("library"), table.get("library_file")
        if (text is None) == (file is None):
            self._complain("give either `library` (its text) or `library_file` (its path)")
        elif not isinstance(text if file is None else file, str):
            self._complain("`library` and `library_file` are texts")
        elif file is not None:
            path = Path(self.path.parent, file)
            if path.is_file():
                return path
            self._complain(f"there is no library file `{file}` beside the case file")
        else:
            return str(text)
        return ""

    def _events(self, table: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        for number, given in enumerate(self._list(table, "events"), 1):
            event = self._try(f"event {number}", _event, given)
            if event is not None:
                yield {"id": str(number), "source": DEFAULT_SOURCE} | event

    def _recorded(self, table: Mapping[str, Any]) -> Recorded | None:
        if "events_file" not in table:
            for key in _READING:
                if key in table:
                    self._complain(f"`{key}` says how `events_file` is read, which is not there")
            return None
        if "events" in table:
            self._complain("give either `events` or `events_file`")
        named = table["events_file"]
        names = named if isinstance(named, list) else [named]
        if not names or not all(isinstance(each, str) and each for each in names):
            self._complain("`events_file` is the path of a file, or a list of paths")
            return None
        paths = tuple(str(Path(self.path.parent, each)) for each in names)
        try:
            reading = {**self._shared, **table}
            columns = reading.get("columns", {})
            if not isinstance(columns, dict):
                raise UsageError('`columns` is a table, as `columns = { time = "ts" }`')
            mapping = Columns.of(
                columns, reading.get("type"), reading.get("timezone"), reading.get("year")
            )
            format_, delimiter, header = (
                _text_of(reading, key) for key in ("format", "delimiter", "header")
            )
            given = Given.of(format_, delimiter, header, _texts_of(reading, "null"))
            find_files(paths, given.format)
        except UsageError as error:
            self._complain(str(error))
            return None
        return Recorded(paths, mapping, given)

    def _outputs(self, table: Mapping[str, Any]) -> Iterator[ExpectedOutput]:
        for number, given in enumerate(self._list(table, "outputs"), 1):
            fields = self._try(f"output {number}", _output, given)
            if fields is not None:
                yield ExpectedOutput(fields)

    def _findings(self, table: Mapping[str, Any], key: str) -> tuple[ExpectedFinding, ...] | None:
        if key not in table:
            return None
        found = [self._try(f"`{key}`", read_finding, each) for each in self._list(table, key)]
        return tuple(each for each in found if each is not None)

    def _ids(self, table: Mapping[str, Any], key: str) -> tuple[str, ...]:
        ids = self._list(table, key)
        if all(isinstance(each, str | int) and not isinstance(each, bool) for each in ids):
            return tuple(str(each) for each in ids)
        self._complain(f"`{key}` is a list of the ids of events")
        return ()

    def _list(self, table: Mapping[str, Any], key: str) -> list[Any]:
        value = table.get(key, [])
        if isinstance(value, list):
            return value
        self._complain(f"`{key}` must be a list")
        return []

    def _value(
        self, table: Mapping[str, Any], key: str, read: Callable[[Any], Read]
    ) -> Read | None:
        return self._try(f"`{key}`", read, table[key]) if key in table else None

    def _try(self, what: str, read: Callable[[Any], Read], value: Any) -> Read | None:
        try:
            return read(value)
        except ValueError as error:
            self._complain(f"{what}: {error}")
            return None


def _duration(value: Any) -> int:
    if not isinstance(value, str):
        raise ValueError("a duration is a text, as in `5 s`")
    return parse_duration(value).microseconds


def _event(given: Any) -> dict[str, Any]:
    """The members of the CloudEvent for an event of a case, as JSON values.

    Only the form is checked. The run decides whether the event is valid, since a case may be about
    a refused event; so a `time` that is not valid is kept as it is.
    """
    if isinstance(given, str):
        event = read_event_text(given)
        event["time"] = format_time(event["time"])
        return event
    if not isinstance(given, dict):
        raise ValueError("an event is a text or a table")
    event = {name: _plain(value) for name, value in given.items()}
    if isinstance(given.get("id"), int):
        event["id"] = str(given["id"])
    moment = given.get("time", "")
    if not isinstance(moment, str) or _NUMBER.fullmatch(moment):
        event["time"] = format_time(read_time(moment))
    return event


def _output(given: Any) -> dict[str, Any]:
    if isinstance(given, str):
        return read_output_text(given)
    if not isinstance(given, dict):
        raise ValueError("an output is a text or a table")
    for key in given:
        if key not in OUTPUT_FIELDS:
            raise ValueError(f"unknown field `{key}`; {did_you_mean(key, OUTPUT_FIELDS)}")
    if not given:
        raise ValueError("the table asks for nothing: give at least one field")
    return {name: _FIELD_READERS[name](value) for name, value in given.items()}


def _joined(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(_one_text(each) for each in value)
    return _one_text(value)


def _one_text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(f"`{value}` must be a text")
    return str(value)


def _plain(value: Any) -> Any:
    """A TOML value as a JSON value: floats for decimals, RFC 3339 text for date-times."""
    if isinstance(value, Decimal):
        number = float(value)
        if not math.isfinite(number):
            raise ValueError(f"JSON has no number `{value}`")
        return number
    if isinstance(value, datetime) and value.utcoffset() is not None:
        return format_time(microseconds_of(value))
    if isinstance(value, datetime | date | time):
        raise ValueError(f"`{value}` has no offset or no date: write a full time such as `{_FULL}`")
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value


def _text_of(table: Mapping[str, Any], key: str) -> str | None:
    """A text of a table. Raises `UsageError` for another value."""
    value = table.get(key)
    if value is not None and not isinstance(value, str):
        raise UsageError(f"`{key}` is `{value}`, and must be a text, as for `ensue run --{key}`")
    return value


def _texts_of(table: Mapping[str, Any], key: str) -> list[str]:
    """A text of a table, or a list of them. Raises `UsageError` for another value."""
    value = table.get(key, [])
    texts = value if isinstance(value, list) else [value]
    if not all(isinstance(each, str) for each in texts):
        raise UsageError(f'`{key}` is a text, or a list of texts, as `{key} = ["NA"]`')
    return texts


_FULL = "2024-05-06T07:08:09Z"
_FIELD_READERS: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(OUTPUT_FIELDS, _one_text),
    "time": read_time,
    "data": _plain,
    "extensions": _plain,
    "labels": read_labels,
    "causes": _joined,
}
