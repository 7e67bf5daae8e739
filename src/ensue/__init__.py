"""Ensue finds what follows from what: event correlation with one exact meaning.

    import ensue

    library = ensue.load("rules.cor")
    run = library.start()
    for event in events:
        for output in run.push(event):
            ...
"""

from ensue.errors import (
    CaseError,
    EnsueError,
    EventError,
    LibraryError,
    SnapshotError,
    UsageError,
)
from ensue.events.event import Event
from ensue.lang import builder as build
from ensue.library import Library, load, parse
from ensue.version import __version__

__all__ = [
    "CaseError",
    "EnsueError",
    "Event",
    "EventError",
    "Library",
    "LibraryError",
    "SnapshotError",
    "UsageError",
    "__version__",
    "build",
    "load",
    "parse",
]
