"""A run of the batch engine that goes on somewhere else."""

from __future__ import annotations

import ensue
from ensue.engine.batch import BatchEngine


def moved(engine: BatchEngine, library: ensue.Library) -> BatchEngine:
    """The same engine in another process, as it were."""
    fresh = BatchEngine(library.checked)
    fresh.restore(engine.snapshot())
    return fresh
