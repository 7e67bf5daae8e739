"""The short texts of a case file: an event, an output, a finding and a time, each on one line.

    1.5 DataNotify from gps {"SourceID": 3}      an event
    4 Notify l1,l2 {"SourceID": 3}               an output, triggered by the event with id 4
    timer@6 Notify                               an output that the clock completed
    3:14 unknown-port                            a finding

In comes a text; out goes its value, or a `ValueError` that shows the correct notation.
"""

from __future__ import annotations

import re
from datetime import datetime
from decimal import Decimal
from typing import Any

from ensue.casefile.case import SECOND, TIMER, ExpectedFinding
from ensue.errors import EventError
from ensue.events.cloudevents import read_json
from ensue.events.times import EARLIEST, LATEST, microseconds_of, parse_time

_EVENT = re.compile(r"(\S+)\s+([^\s{]\S*)(?:\s+from\s+(\S+))?(?:\s+(\{.*\}))?", re.DOTALL)
_OUTPUT = re.compile(r"(\S+)\s+([^\s{]\S*)(?:\s+([^\s{]\S*))?(?:\s+(\{.*\}))?", re.DOTALL)
_FINDING = re.compile(r"(?:(\d+):(\d+)\s+)?([a-z0-9-]+)")
_SECONDS = re.compile(r"-?\d+(\.\d{1,6})?")


def read_time(value: object) -> int:
    """Seconds since 1970 as a number or its text, RFC 3339 text, or a TOML date-time."""
    if isinstance(value, datetime):
        if value.utcoffset() is None:
            raise ValueError(
                f"the time {value} has no offset: write `{value.isoformat()}Z` for UTC"
            )
        return microseconds_of(value)
    if isinstance(value, str) and not _SECONDS.fullmatch(value):
        try:
            return parse_time(value)
        except ValueError:
            raise ValueError(
                f"`{value}` is no time: write seconds since 1970 with at most 6 decimal places,"
                " or RFC 3339 as in `2024-05-06T07:08:09Z`"
            ) from None
    if isinstance(value, bool) or not isinstance(value, int | Decimal | str):
        raise ValueError("a time is a number of seconds since 1970, or RFC 3339 text")
    return _from_seconds(value)


def _from_seconds(value: int | Decimal | str) -> int:
    try:
        exact = Decimal(value) * SECOND
        microseconds = int(exact)
    except (ArithmeticError, ValueError):
        raise ValueError(f"`{value}` is no number of seconds") from None
    if microseconds != exact:
        raise ValueError(f"the time {value} has more than 6 decimal places")
    if not EARLIEST <= microseconds <= LATEST:
        raise ValueError(f"the time {value} lies outside the years 1 to 9999")
    return microseconds


def read_event_text(text: str) -> dict[str, Any]:
    """The members of the CloudEvent, `time` in microseconds; `id` is left to the caller."""
    found = _EVENT.fullmatch(text.strip())
    if not found:
        raise ValueError(
            f"`{text}` is no event: write 'TIME TYPE [from SOURCE] [JSON-OBJECT]',"
            """ as in '1.5 Login from gate {"user": "ann"}'"""
        )
    time, type_, source, data = found.groups()
    members: dict[str, Any] = {"time": read_time(time), "type": type_}
    if source is not None:
        members["source"] = source
    if data is not None:
        members["data"] = _json_object(data)
    return members


def read_output_text(text: str) -> dict[str, Any]:
    """The fields of an `ExpectedOutput`. Labels that are left out mean that none is active."""
    found = _OUTPUT.fullmatch(text.strip())
    if not found:
        raise ValueError(
            f"`{text}` is no output: write 'TRIGGER TYPE [LABELS] [JSON-OBJECT]',"
            """ as in '4 Alarm l1,l2 {"user": "ann"}' or 'timer@6 Alarm'; labels are sorted and"""
            " joined by commas, without blanks"
        )
    trigger, type_, labels, data = found.groups()
    fields: dict[str, Any] = {"trigger": trigger, "type": type_, "labels": labels or ""}
    if trigger.startswith(f"{TIMER}@"):
        fields |= {"trigger": TIMER, "time": read_time(trigger.removeprefix(f"{TIMER}@"))}
    elif trigger == TIMER:
        raise ValueError(f"`{text}` says no time: write `timer@SECONDS`")
    _refuse_unsorted(fields["labels"])
    if data is not None:
        fields["data"] = _json_object(data)
    return fields


def _refuse_unsorted(labels: str) -> None:
    names = labels.split(",") if labels else []
    if names != sorted(set(names)) or not all(names):
        best = ",".join(sorted({name for name in names if name}))
        raise ValueError(f"the labels `{labels}` are not sorted and joined by commas: `{best}`")


def read_labels(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("`labels` is one text: names, sorted and joined by commas")
    _refuse_unsorted(value)
    return value


def read_finding(text: object) -> ExpectedFinding:
    found = _FINDING.fullmatch(text.strip()) if isinstance(text, str) else None
    if not found:
        raise ValueError(
            f"`{text}` is no finding: write 'CODE' or 'LINE:COLUMN CODE', as in '3:14 unknown-port'"
        )
    line, column, code = found.groups()
    if line is None:
        return ExpectedFinding(code)
    return ExpectedFinding(code, int(line), int(column))


def _json_object(text: str) -> Any:
    try:
        return read_json(text)
    except EventError as error:
        raise ValueError(f"the data `{text}`: {error}") from None
