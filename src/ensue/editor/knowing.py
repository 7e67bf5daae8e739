"""The ontology that predicates of a project ask: files that are read when they are first needed.

In come paths; out goes an `Ontology`, read anew once one of its files has changed, or nothing where
there are no files. Files that cannot be read are told once, and rules are checked without them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from ensue.errors import EnsueError

if TYPE_CHECKING:
    from ensue.knowledge import Ontology

Stamp = tuple[tuple[Path, int], ...]


class Knowledge:
    """Threads that check texts ask for it, so that no request waits for it to be read."""

    def __init__(self, files: Sequence[Path] = ()) -> None:
        self.files = tuple(files)
        self._lock = Lock()
        self._stamp: Stamp | None = None
        self._found: Ontology | None = None
        self._problem: str | None = None

    def ontology(self) -> Ontology | None:
        if not self.files:
            return None
        with self._lock:
            stamp = tuple((each, _changed_at(each)) for each in self.files)
            if stamp != self._stamp:
                self._stamp = stamp
                self._read()
            return self._found

    def _read(self) -> None:
        # rdflib takes a while to import, and few libraries ask an ontology.
        from ensue.knowledge import Ontology

        try:
            self._found = Ontology.load(*self.files)
        except (EnsueError, OSError) as error:
            self._found, self._problem = None, f"the ontology cannot be read: {error}"

    def take_problem(self) -> str | None:
        """What went wrong since this was last asked."""
        problem, self._problem = self._problem, None
        return problem


def _changed_at(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
