"""One golden case as it is in its file: checked for its form, and not run yet.

Times are microseconds since 1970. Events are kept as members of CloudEvents and not as `Event`s,
because a case may contain an event that is to be refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from ensue.events.cloudevents import plain_json
from ensue.events.event import Event
from ensue.events.mapping import Mapping as Columns
from ensue.events.sources.contents import Given
from ensue.lang.diagnostics import Diagnostic

TIMER = "timer"
SECOND = 1_000_000


@dataclass(frozen=True)
class ExpectedOutput:
    """The fields of an output that a case expects; other fields may have any value."""

    fields: Mapping[str, Any]

    def is_met_by(self, output: Event) -> bool:
        return not self.differing_fields(output)

    def differing_fields(self, output: Event) -> tuple[str, ...]:
        found = observed_fields(output)
        return tuple(
            name for name, value in self.fields.items() if not same_value(value, found[name])
        )

    def __str__(self) -> str:
        return output_text(self.fields, self.fields)


@dataclass(frozen=True)
class ExpectedFinding:
    """An expected error or warning: its code and, if the case gives it, its place."""

    code: str
    line: int | None = None
    column: int | None = None

    def is_met_by(self, found: Diagnostic) -> bool:
        return self.code == found.code and (
            self.line is None or (self.line, self.column) == (found.line, found.column)
        )

    def __str__(self) -> str:
        return self.code if self.line is None else f"{self.line}:{self.column} {self.code}"


@dataclass(frozen=True)
class Expected:
    """All that a case expects. If `warnings` is None, warnings are not compared."""

    outputs: tuple[ExpectedOutput, ...] = ()
    late: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    errors: tuple[ExpectedFinding, ...] = ()
    warnings: tuple[ExpectedFinding, ...] | None = None


@dataclass(frozen=True)
class Recorded:
    """Files of events that a case names, the mapping of their columns, and how they are read."""

    paths: tuple[str, ...]
    mapping: Columns = field(default_factory=Columns)
    given: Given = field(default_factory=Given)


@dataclass(frozen=True)
class Case:
    """A golden case. `library` is a text, or the path of a file; `lateness` is in microseconds.

    The events are `events`, from the case file, or `recorded`, in files of their own. `parameters`
    are values for parameters of the library.
    """

    file: Path
    name: str
    why: str
    library: str | Path
    events: tuple[Mapping[str, Any], ...] = ()
    expected: Expected = field(default_factory=Expected)
    until: int | None = None
    lateness: int | None = None
    recorded: Recorded | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.file}:{self.name}"


OUTPUT_FIELDS = (
    "trigger",
    "type",
    "labels",
    "data",
    "causes",
    "key",
    "correlation",
    "time",
    "id",
    "source",
    "extensions",
)
_OF_OUTPUTS = frozenset({"trigger", "labels", "causes", "correlation", "partitionkey"})


def observed_fields(output: Event) -> dict[str, Any]:
    """The fields of an output, under the names that case files use."""
    extensions = output.extensions
    return {
        "trigger": extensions.get("trigger"),
        "type": output.type,
        "labels": extensions.get("labels", ""),
        "data": plain_json(output.data),
        "causes": extensions.get("causes", ""),
        "key": extensions.get("partitionkey"),
        "correlation": extensions.get("correlation"),
        "time": output.time,
        "id": output.id,
        "source": output.source,
        "extensions": {n: value for n, value in extensions.items() if n not in _OF_OUTPUTS},
    }


def same_value(expected: Any, found: Any) -> bool:
    """Whether two values are equal as JSON: 1 equals 1.0, but not `true`."""
    if isinstance(expected, bool) or isinstance(found, bool):
        return expected is found
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        return expected.keys() == found.keys() and all(
            same_value(value, found[name]) for name, value in expected.items()
        )
    if isinstance(expected, list) and isinstance(found, list):
        return len(expected) == len(found) and all(map(same_value, expected, found))
    return bool(expected == found)


def output_text(fields: Mapping[str, Any], asked: Mapping[str, Any]) -> str:
    """An output in the notation of case files, with the fields that are in `asked`."""
    trigger = fields["trigger"] if "trigger" in asked else "*"
    if trigger == TIMER and "time" in asked:
        trigger = f"{TIMER}@{seconds_text(fields['time'])}"
    parts = [str(trigger), str(fields["type"]) if "type" in asked else "*"]
    if "labels" in asked and fields["labels"]:
        parts.append(fields["labels"])
    if "data" in asked:
        parts.append(json.dumps(fields["data"], ensure_ascii=False))
    others = ("causes", "key", "correlation", "id", "source")
    parts += [f"{name}={fields[name]}" for name in others if name in asked]
    if "extensions" in asked:
        parts.append(f"with {json.dumps(fields['extensions'], ensure_ascii=False)}")
    if "time" in asked and trigger != f"{TIMER}@{seconds_text(fields['time'])}":
        parts.append(f"time={seconds_text(fields['time'])}")
    return " ".join(parts)


def seconds_text(microseconds: int) -> str:
    """Seconds since 1970 with no more digits than needed."""
    text = f"{Decimal(microseconds) / SECOND:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
