"""Ids and sources of records without one: the place of the record, and the name of its file."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from ensue.events.files.chunk import Rows
from ensue.events.record_ids import record_ids


def fill_context(
    columns: dict[str, pa.Array], label: str | None, numbers: Rows, source: str
) -> None:
    """Fill in ids and sources of rows without one; `label` is the file in ids."""
    given = columns.get("id")
    if given is None or given.null_count:
        own = record_ids(label, numbers)
        columns["id"] = own if given is None else pc.coalesce(given, own)
    given = columns.get("source")
    if given is None:
        columns["source"] = pa.repeat(pa.scalar(source), len(numbers))
    elif given.null_count:
        columns["source"] = pc.fill_null(given, source)
