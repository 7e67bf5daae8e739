"""What benchmarks beside other systems share: their sources in the repository, and their tools.

A peer is no dependency of Ensue. It is fetched when it is measured, into the user's cache folder;
what it runs stands under `benchmarks/`. What fails on the way is a `UsageError` with what the tool
said.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from ensue.errors import UsageError


def sources_of(peer: str) -> Path:
    """The folder of a peer, beside the measurements."""
    return Path(__file__).parents[1] / peer


def cache_of(peer: str) -> Path:
    """Where what was fetched for a peer is kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ensue" / peer


def output_of(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = (done.stdout + done.stderr).strip().splitlines()
        # Compilers say what is wrong first, and whatever fails in Python last.
        shown = lines if len(lines) <= 10 else [*lines[:5], "...", *lines[-5:]]
        said = "\n  ".join(shown)
        raise UsageError(f"`{command[0]}` ended with {done.returncode} and said\n  {said}")
    return done.stdout
