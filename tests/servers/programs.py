"""Where programs of servers are, what becomes of a test without them, and ports that are free."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import pytest

UNPRIVILEGED = "nobody"


class MissingServerError(Exception):
    """A program that is not installed."""


def program(name: str, folders: Sequence[Path] = (Path("/usr/sbin"), Path("/usr/bin"))) -> str:
    for folder in folders:
        if (folder / name).exists():
            return str(folder / name)
    if found := shutil.which(name):
        return found
    raise MissingServerError(
        f"`{name}` is not installed (tests/servers/install.sh brings it on Debian, as root)"
    )


def skip_as_missing(reason: str) -> NoReturn:
    """Skip the test that needs what is missing; with CI=true that is a failure."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
