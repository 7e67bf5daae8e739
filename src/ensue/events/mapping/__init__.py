"""Which column or path of a record is what: said once by a user, and meant the same at every door.

`definition` has the `Mapping` and the ways to write it; `values` has what it makes of single
times; `rows` applies it to one record, and `tables` to a table of columns. Both make the form that
`ensue.events.columns` describes. `tables` needs pyarrow, so it is imported with columns only.
"""

from ensue.events.mapping.definition import UNITS, Mapping, Origin
from ensue.events.mapping.rows import apply_row

__all__ = ["UNITS", "Mapping", "Origin", "apply_row"]
