"""Ids of records without one: `FILE:LINE`, so that what an output names as cause can be found.

The file is called as it was given, without its folders where no other file that is read has the
same name; the line is that with which the record begins, or the row of a table. Rows of a table in
memory have no file, and are numbered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


def record_id(label: str | None, number: int) -> str:
    """The id of the record that stands at a line of a file, or of a row of no file."""
    return str(number) if label is None else f"{label}:{number}"


def record_ids(label: str | None, numbers: Any) -> pa.Array:
    """As `record_id`, for many records."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pa.array(numbers).cast(pa.string())
    return texts if label is None else pc.binary_join_element_wise(pa.scalar(label), texts, ":")


def labels_of(paths: Sequence[str]) -> dict[str, str]:
    """What files are called in ids, by their paths as they were given."""
    count = Counter(map(_name, paths))
    return {path: _name(path) if count[_name(path)] == 1 else path for path in paths}


def _name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2] or path
