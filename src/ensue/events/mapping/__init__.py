"""A user's mapping of columns or paths of records to parts of an event.

`definition` has the `Mapping` and its text forms; `values` reads single times, `instants` columns
of times, `patterned` those that are text of a pattern, and `years` finds years that times lack;
`rows` applies a mapping to one record, and `tables` to a table. Both make the columns of
`ensue.events.columns`. `tables` needs pyarrow, so that only callers with columns import it.
"""

from ensue.events.mapping.definition import (
    NO_MAPPING,
    UNITS,
    Mapping,
    Origin,
    PlainMapping,
    refuse_derived,
)
from ensue.events.mapping.rows import apply_row

__all__ = [
    "NO_MAPPING",
    "UNITS",
    "Mapping",
    "Origin",
    "PlainMapping",
    "apply_row",
    "refuse_derived",
]
