"""A user's mapping of columns or paths of records to parts of an event.

`definition` has the `Mapping` and its text forms; `values` reads single times, `instants` columns
of times; `rows` applies a mapping to one record, and `tables` to a table. Both make the columns of
`ensue.events.columns`. `tables` needs pyarrow, so that only callers with columns import it.
"""

from ensue.events.mapping.definition import UNITS, Mapping, Origin, refuse_derived
from ensue.events.mapping.rows import apply_row

__all__ = ["UNITS", "Mapping", "Origin", "apply_row", "refuse_derived"]
