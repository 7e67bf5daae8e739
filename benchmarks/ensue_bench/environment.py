"""What a figure depends on besides our code: versions, processor, load, and a yardstick.

The yardstick is a fixed loop of plain Python. Two reports from two machines, or from two moods of
one machine, differ in it; `benchmarks/compare.py` takes that into account.
"""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import time
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from ensue.version import __version__

PACKAGES = ("numba", "numpy", "pyarrow", "msgspec", "lark")


def environment() -> dict[str, Any]:
    return {
        "ensue": __version__,
        "commit": _commit(),
        "python": platform.python_version(),
        "packages": {name: metadata.version(name) for name in PACKAGES},
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load_average": load_average(),
        "yardstick_seconds": yardstick(),
        "measured": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def load_average() -> list[float] | None:
    """Over 1, 5 and 15 minutes; more than the number of cores means that others were at work."""
    return [round(each, 2) for each in os.getloadavg()] if hasattr(os, "getloadavg") else None


def yardstick() -> float:
    """Processor seconds of a loop that never changes."""
    found = []
    for _ in range(5):
        begin = time.process_time()
        table: dict[int, int] = {}
        for number in range(200_000):
            table[number & 1023] = table.get(number * 7 & 1023, 0) + number
        found.append(time.process_time() - begin)
    return statistics.median(found)


def _commit() -> str | None:
    """The commit of the sources that are measured, if they are a checkout; `+` if changed since."""
    here = Path(__file__).parent
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty=+", "--abbrev=12", "--exclude=*"],
            cwd=here,
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


def _processor() -> str | None:
    """The name of the processor, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor() or None
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else None
