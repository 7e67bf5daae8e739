"""A pause of Python's garbage collector, while very many objects without cycles are made.

Trees and machines have very many parts and no reference cycles: the collector would go through all
of them again and again, and find nothing. That is most of the time for a large library.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collection_paused() -> Iterator[None]:
    """Pauses the collector; it stays off if it was off before."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
