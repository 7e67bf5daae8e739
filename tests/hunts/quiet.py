"""Silence for the log of a room whose parts fail on purpose."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet(name: str) -> Iterator[None]:
    """Nothing is logged under a name meanwhile."""
    log = logging.getLogger(name)
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before
