"""`CONCAT` over columns: the texts of many rows joined at once.

In come the outcomes of its arguments, as `predicates` has them; out go texts, or None where a cast
to a string has to be asked row by row. A row with an error in any argument is left empty: its value
means nothing, and the mask of errors says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def concatenated(arguments: Sequence[tuple[str, Any]], count: int) -> pa.Array | None:
    """The arguments, each with its kind, as one text for each row."""
    texts: list[Any] = [_texts(kind, values) for kind, values in arguments]
    if any(each is None for each in texts) or all(len(each) != count for each in texts):
        return None
    # Constants are single values.
    spread = [each if len(each) == count else each[0] for each in texts]
    return pc.binary_join_element_wise(*spread, "")


def _texts(kind: str, values: Any) -> pa.Array | None:
    if kind == "string":
        return pc.fill_null(values, "")
    if kind == "integer":
        return pa.array(values).cast(pa.string())
    return None
