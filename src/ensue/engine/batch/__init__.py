"""The batch engine: Arrow columns in, Arrow columns out.

For many events at once: a table of them in a file, a query, a partition of a larger job.
Predicates, types and keys are worked out over whole columns (`batches`, `predicates`, `keys`,
`matching`), the machine of a correlation runs in a compiled loop over all keys (`kernels`,
`walks`), and outputs are made by statement (`actions`, `made`). What has no such form runs event by
event (`by_event`), and the engine says which correlations those are. It answers as the other
engines do, order included.
"""

from ensue.engine.batch.correlations import Path, path_of
from ensue.engine.batch.engine import BatchEngine

__all__ = ["BatchEngine", "Path", "path_of"]
