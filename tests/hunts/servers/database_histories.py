"""Histories in PostgreSQL and MariaDB answer temporal filters as the definitions do.

The rounds are those of `histories`, over servers that are started once and stopped with the
process.
"""

from __future__ import annotations

import atexit
from collections.abc import Mapping
from contextlib import ExitStack
from functools import cache

from ensue.history import History
from tests.hunts.computing.histories import play
from tests.servers.databases import PROVIDERS, Database, MissingServerError
from tests.servers.programs import skip_as_missing

SHORT = (1,)


def hunt(seed: int) -> Mapping[str, int]:
    with ExitStack() as stack:
        histories = []
        for name, server in servers().items():
            history = stack.enter_context(History.open(server.empty_url()))
            histories.append((name, history))
        return {"servers": len(histories), **play(seed, histories)}


@cache
def servers() -> Mapping[str, Database]:
    """The servers that this machine has, running."""
    running = {}
    for name, provider in PROVIDERS.items():
        server = provider()
        try:
            server.start()
        except MissingServerError:
            continue
        atexit.register(server.stop)
        running[name] = server
    if not running:
        skip_as_missing("neither PostgreSQL nor MariaDB is installed")
    return running
