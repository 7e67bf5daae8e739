"""Ensue finds what follows from what: event correlation with one exact meaning.

    import ensue

    library = ensue.load("rules.cor")
    run = library.start()
    for event in events:
        for output in run.push(event):
            ...

The names below are the public surface. Each is imported when it is first used, so that
`import ensue` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ensue.version import __version__

if TYPE_CHECKING:
    from ensue.columns import correlate
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
    "correlate",
    "load",
    "parse",
]

_HOMES = {
    **dict.fromkeys(
        [
            "CaseError",
            "EnsueError",
            "EventError",
            "LibraryError",
            "SnapshotError",
            "UsageError",
        ],
        "ensue.errors",
    ),
    "Event": "ensue.events.event",
    "correlate": "ensue.columns",
    **dict.fromkeys(["Library", "load", "parse"], "ensue.library"),
}


def __getattr__(name: str) -> Any:
    if name == "build":
        value: Any = import_module("ensue.lang.builder")
    elif name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module `ensue` has no `{name}`; it has {', '.join(__all__)}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
