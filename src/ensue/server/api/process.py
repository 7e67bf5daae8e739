"""Metrics of the process and the build, by the names that Prometheus has for them."""

from __future__ import annotations

import os
import platform
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

from ensue.version import __version__


def process_metrics(started: float) -> Iterator[tuple[str, str, str, str, float]]:
    """Name, kind, words, labels and value of each, for a process that began at a time."""
    build = f'version="{__version__}",python="{platform.python_version()}"'
    yield "ensue_build_info", "gauge", "version of ensue and of Python", build, 1
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = used.ru_utime + used.ru_stime
    yield "process_cpu_seconds_total", "counter", "processor time", "", round(seconds, 3)
    yield "process_start_time_seconds", "gauge", "start of the process", "", round(started, 3)
    for name, words, value in _memory(used.ru_maxrss):
        yield name, "gauge", words, "", value
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield "process_max_fds", "gauge", "files and connections that may be open", "", most
    if (count := _open_files()) is not None:
        yield "process_open_fds", "gauge", "files and connections that are open", "", count


def _memory(most_kib: int) -> Iterator[tuple[str, str, float]]:
    resident = most_kib * (1 if sys.platform == "darwin" else 1024)
    try:
        virtual, pages = Path("/proc/self/statm").read_text("ascii").split()[:2]
    except OSError:
        # Without /proc there is only the most that it ever was.
        yield "process_resident_memory_bytes", "memory, at the most so far", resident
        return
    size = resource.getpagesize()
    yield "process_resident_memory_bytes", "memory", int(pages) * size
    yield "process_virtual_memory_bytes", "addresses in use", int(virtual) * size


def _open_files() -> int | None:
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:
        return None
