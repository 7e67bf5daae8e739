"""Everything Ensue raises on purpose, in one tree.

    EnsueError
    ├── LibraryError        a library that cannot be used; carries every diagnostic
    ├── EventError          one event that cannot be read; the run goes on
    ├── CaseError           a file of golden cases that cannot be used
    ├── LimitError          a rule that is larger than a named limit allows
    ├── SnapshotError       bytes that are no snapshot, or one of another library
    ├── TableError          bytes that are no tables, or tables that this version cannot read
    ├── OntologyError       an ontology, or a name in one, that cannot be used
    ├── HistoryError        a history that cannot be asked or written to at the moment, and why
    ├── JobError            a job of a cluster that has failed, and why
    ├── LinkError           an event service that cannot be reached, or has broken off
    └── UsageError          an option or argument that does not fit

Each carries its facts as attributes and survives pickling, since workers on other machines
raise them too. A message says what was asked, what was given, what is allowed and what to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ensue.lang.diagnostics import Diagnostic


class EnsueError(Exception):
    """The root of the tree: catch it to catch everything that Ensue raises on purpose."""


class LibraryError(EnsueError):
    """A library with at least one error. `diagnostics` holds all of them, warnings included."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__(self.diagnostics)

    def __str__(self) -> str:
        return "\n\n".join(str(each) for each in self.diagnostics)


class EventError(EnsueError):
    """One event that cannot be read. `problems` says, one a line, what is wrong with it."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__(self.problems)

    def __str__(self) -> str:
        return "; ".join(self.problems)


class CaseError(EnsueError):
    """A file of golden cases that cannot be used."""


class LimitError(EnsueError):
    """A rule that is larger than the limit called `name` allows."""

    def __init__(self, name: str, given: int, allowed: int, bounds: str, advice: str) -> None:
        self.name = name
        self.given = given
        self.allowed = allowed
        self.bounds = bounds
        self.advice = advice
        super().__init__(name, given, allowed, bounds, advice)

    def __str__(self) -> str:
        return (
            f"limit `{self.name}`: there are {self.given:,} or more {self.bounds}, "
            f"and {self.allowed:,} are allowed; {self.advice}"
        )


class SnapshotError(EnsueError):
    """Bytes that are no snapshot of this library."""


class TableError(EnsueError):
    """Bytes that are no tables, or tables that this version of Ensue cannot read."""


class OntologyError(EnsueError):
    """An ontology that cannot be used, or a name that it does not know. `problems` lists why."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__(self.problems)

    def __str__(self) -> str:
        return "\n".join(self.problems)


class HistoryError(EnsueError):
    """A history that was opened and cannot be asked or written to: a server or a disk has failed.

    What was being written is not kept; what was acknowledged before is.
    """


class JobError(EnsueError):
    """A job that was begun on a cluster and has failed there."""


class LinkError(EnsueError):
    """An event service that cannot be reached or has broken off. The link to it is made again.

    `confirmed` tells how many events of a batch, from its begin, the service has taken before.
    """

    confirmed: int = 0


class UsageError(EnsueError):
    """An option or an argument that does not fit what was asked."""
