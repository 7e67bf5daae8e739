"""The type of an event packed into its arrival, as one column of integers.

In SQL, before the shuffle, an arrival and a type become one integer, with the number of the type in
its lowest bits. The worker sorts rows by the packed integer, and then unpacks it. A text would cost
more in the shuffle and the hand-over to Python than any other column but the id. Types are not
packed where the user gives the arrivals, which may need all their bits, where there are too many
files for their places to leave bits free, or where there are too many types.
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
"""How many types fit. Spark puts the number of the task at bit 33 of an arrival, and there is room
for 16 million tasks."""


FILES_BESIDE_TYPES = 1 << 16
"""How many files may there be: the number of a file is above bit 40 of an arrival."""


def can_be_packed(types: Sequence[str]) -> bool:
    """Whether there are few enough types, and none with a comma, which parts them in SQL."""
    return len(types) <= PACKED_TYPES and not any("," in name for name in types)


def pack_type(arrival: Column, type_: Column, types: Sequence[str]) -> Column:
    """An arrival with the place of the type among `types`, counted from 1."""
    place = sf.find_in_set(type_, sf.lit(",".join(types)))
    return sf.shiftleft(arrival, _BITS).bitwiseOR(place.cast("bigint"))


def unpack_arrivals(packed: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.shift_right(packed, _BITS)


def unpack_types(packed: pa.ChunkedArray, types: Sequence[str]) -> pa.DictionaryArray:
    places = packed.to_numpy() & PACKED_TYPES
    return pa.DictionaryArray.from_arrays((places - 1).astype(np.int8), list(types))
