"""Types as numbers: the type of an event and its arrival, in one column of integers.

In SQL, before the shuffle, comes an arrival that Spark made and the text of a type; out goes one
integer, with the type in its lowest bits. In the worker, rows are put in order by it as it is, and
then it is taken apart. A text would cost a row more in the shuffle and in the hand-over to Python
than all else but its id. Arrivals that somebody else made may need all their bits: then types
travel as they are, as they do where there are more than fit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as sf

_BITS = 6
PACKED_TYPES = 2**_BITS - 1
"""How many types fit. Spark numbers rows by their task from bit 33 on, which leaves room for 16
million tasks."""


def with_type(arrival: Column, type_: Column, types: Sequence[str]) -> Column:
    """An arrival of Spark's own with the place of the type among `types`, which counts from 1."""
    place = sf.find_in_set(type_, sf.lit(",".join(types)))
    return sf.shiftleft(arrival, _BITS).bitwiseOR(place.cast("bigint"))


def arrivals_of(packed: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.shift_right(packed, _BITS)


def types_of(packed: pa.ChunkedArray, types: Sequence[str]) -> pa.DictionaryArray:
    places = packed.to_numpy() & PACKED_TYPES
    return pa.DictionaryArray.from_arrays((places - 1).astype(np.int8), list(types))
