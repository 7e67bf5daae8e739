"""The batch engine: Arrow columns in, Arrow columns out.

For many events at once: a table in a file, a query, a partition of a larger job. `input` works out
types, predicates and keys over whole columns; rules run in the cells of `ensue.engine.core`, one by
one (`single`) or all that share a key in one pass (`many`); rules that relate events keep matches
instead (`related`); `output` makes the outputs of all firings of one statement at once; `snapshots`
is the state as bytes. Compiled loops stand with the arrays that they read. Correlations that have
no form in columns run event by event (`single.by_event`); `BatchEngine.paths` names them. Outputs
and their order are those of the other engines.
"""

from __future__ import annotations

from ensue.engine.batch.engine import BatchEngine
from ensue.engine.batch.paths import Path, path_on_machine

__all__ = ["BatchEngine", "Path", "path_on_machine"]
