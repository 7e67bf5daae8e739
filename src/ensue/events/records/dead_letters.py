"""Rejected records as lines of a dead-letter file.

A JSON line stays as it was, so that it can be corrected and read again. A row of CSV or Parquet
becomes a JSON object with its number, the row and the problems.
"""

from __future__ import annotations

import base64
import json
from typing import Any

from ensue.events.event import Rejected


def dead_letter(record: Rejected, as_line: bool) -> bytes:
    """The line of a rejected record; with `as_line`, the record as it was."""
    return raw_bytes(record.raw) if as_line else _as_json(record)


def raw_bytes(raw: bytes | str) -> bytes:
    return raw if isinstance(raw, bytes) else raw.encode("utf-8", "backslashreplace")


def shown(record: Rejected) -> dict[str, Any]:
    """The number of a record and its row: a text, the value of a row of Parquet, or base64."""
    row: dict[str, Any]
    try:
        # The raw form of a Parquet row is JSON, that of a CSV row its text.
        row = {
            "row": record.raw.decode() if isinstance(record.raw, bytes) else json.loads(record.raw)
        }
    except UnicodeDecodeError:
        row = {"row_base64": base64.b64encode(raw_bytes(record.raw)).decode()}
    except ValueError:
        row = {"row": record.raw}
    return {"number": record.number, **row}


def _as_json(record: Rejected) -> bytes:
    whole = {**shown(record), "problems": list(record.problems)}
    return json.dumps(whole, ensure_ascii=False).encode("utf-8", "backslashreplace")
