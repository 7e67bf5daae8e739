"""Callbacks of the channel's user: an exception that one raises is logged and goes no further.

Failures, drops and changes of demand are reported in the thread in which they happen. An exception
would end the work that this thread does for other consumers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import ParamSpec

Given = ParamSpec("Given")

log = logging.getLogger("ensue.channel")


def logging_errors(callback: Callable[Given, None], name: str) -> Callable[Given, None]:
    """`callback`, with its exceptions logged under a name."""

    def call(*given: Given.args, **named: Given.kwargs) -> None:
        try:
            callback(*given, **named)
        except Exception as error:
            log.error("`%s` failed: %r", name, error)

    return call
