"""Ids and sources of records without one: the number of the record, and the name of its file."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from ensue.events.files.chunk import Rows


def fill_context(columns: dict[str, pa.Array], numbers: Rows, source: str) -> None:
    """Fill in ids and sources of rows without one."""
    given = columns.get("id")
    if given is None or given.null_count:
        own = pa.array(numbers).cast(pa.string())
        columns["id"] = own if given is None else pc.coalesce(given, own)
    given = columns.get("source")
    if given is None:
        columns["source"] = pa.repeat(pa.scalar(source), len(numbers))
    elif given.null_count:
        columns["source"] = pc.fill_null(given, source)
