"""Mistakes in tables, each with its place, and the checks of single values that find them.

`TableFindings` collects all mistakes of a file, so that a user sees them at once. A text that
refers to a secret (`${env:NAME}`, `${file:PATH}`) is replaced here; no message shows a value that
had one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ensue.configuration.secrets import replaced
from ensue.configuration.toml import MOST_PROBLEMS, STOPPED
from ensue.errors import EnsueError, LibraryError, UsageError
from ensue.lang.diagnostics import did_you_mean
from ensue.lang.durations import LONGEST_DURATION
from ensue.library import duration_microseconds
from ensue.subscriptions import Filter

_LONGEST_SECONDS = LONGEST_DURATION / 1_000_000
NAME = re.compile(r"[^\s,]{1,200}")


@dataclass
class TableFindings:
    """Mistakes, each with its place."""

    where: str
    found: list[str] = field(default_factory=list)

    def add(self, place: str, problem: str) -> None:
        prefix = f"{self.where}: " if self.where else ""
        self.found.append(f"{prefix}{place}: {problem}")
        if len(self.found) >= MOST_PROBLEMS:
            self.found.append(STOPPED)
            self.done()

    def done(self) -> None:
        if self.found:
            raise UsageError("\n".join(self.found))


def resolved(
    table: Mapping[str, Any], place: str, findings: TableFindings
) -> Iterator[tuple[str, Any]]:
    """The values of a table with secrets put in, also those of tables and lists in it."""
    for key, value in table.items():
        yield key, _resolved_value(value, f"{place} {key}", findings)


def _resolved_value(value: Any, place: str, findings: TableFindings) -> Any:
    match value:
        case str():
            return resolve(value, place, findings)
        case Mapping():
            return dict(resolved(value, place, findings))
        case list():
            return [_resolved_value(each, place, findings) for each in value]
        case _:
            return value


def resolve(text: str, place: str, findings: TableFindings) -> str:
    """A text with every reference to a secret replaced by the secret."""

    return replaced(text, lambda problem: findings.add(place, problem))


def refuse_unknown(
    table: Mapping[str, Any], known: Sequence[str], place: str, findings: TableFindings
) -> None:
    for key in table:
        if key not in known:
            findings.add(f"{place} {key}", f"there is no such key: {did_you_mean(key, known)}")


def need_text(table: Mapping[str, Any], key: str, place: str, findings: TableFindings) -> None:
    if not isinstance(table.get(key), str) or not table[key]:
        given = "it is missing" if key not in table else "text is needed"
        findings.add(f"{place} {key}", given)


def texts_of(given: Any) -> tuple[str, ...] | None:
    """A text, or a list of texts; None for anything else."""
    listed = [given] if isinstance(given, str) else given
    if not isinstance(listed, list) or not all(isinstance(e, str) and e for e in listed):
        return None
    return tuple(listed)


def seconds_of(given: Any) -> float | None:
    if isinstance(given, bool):
        return None
    if isinstance(given, int | float):
        return float(given) if 0 <= given <= _LONGEST_SECONDS else None
    try:
        return duration_microseconds(given) / 1_000_000
    except (EnsueError, TypeError, ValueError):
        return None


def read_filter(text: Any, place: str, findings: TableFindings) -> Filter | None:
    if not isinstance(text, str):
        findings.add(place, "a filter is text")
        return None
    try:
        return Filter.parse(text)
    except LibraryError as error:
        for each in error.diagnostics:
            findings.add(place, f"in `{text}`, character {each.column}: {each.message}")
    return None
