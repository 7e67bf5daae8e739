"""Whoever listens to a channel from outside: their mistakes are logged, and nobody else's trouble.

A report of a failure, a drop or a change of demand is made in the thread in which it happened. That
may be one that all consumers depend on, so an exception in it ends here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import ParamSpec

Given = ParamSpec("Given")

log = logging.getLogger("ensue.channel")


def contained(listener: Callable[Given, None], name: str) -> Callable[Given, None]:
    """The same listener, but what it raises is logged under its name."""

    def tell(*given: Given.args, **named: Given.kwargs) -> None:
        try:
            listener(*given, **named)
        except Exception as error:
            log.error("`%s` failed: %r", name, error)

    return tell
