"""An ontology as a user holds it: loaded, asked, read again.

In come files; out come answers about their concepts. What the files say is held in a `Snapshot`
that is swapped as a whole when they are read again, so that every question is answered by one
reading. What depends on an ontology (an index of filters, a run) watches it: it is asked first
whether it can go on with the new reading, and only if all can is the reading taken over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import Any

import numpy as np
import pyarrow as pa

from ensue.errors import OntologyError
from ensue.knowledge.codes import Codes
from ensue.knowledge.snapshot import Snapshot
from ensue.knowledge.sources import Source, Text, read

Prepare = Callable[[Snapshot], Callable[[], None]]
"""Takes the next snapshot and gives what takes it over; raises `OntologyError` if it cannot."""


class Ontology:
    """Concepts and what is known of them. Made by `Ontology.load` and `Ontology.parse`."""

    def __init__(self, sources: Sequence[Source], prefixes: Mapping[str, str]) -> None:
        self._sources = tuple(sources)
        self._own_prefixes = dict(prefixes)
        self._changing = RLock()
        self._watching: dict[int, Prepare] = {}
        self._snapshot = self._read(1)

    @classmethod
    def load(cls, *sources: Source, prefixes: Mapping[str, str] | None = None) -> Ontology:
        """Read files of Turtle (`.ttl`), RDF/XML (`.rdf`, `.owl`, `.xml`) or N-Triples (`.nt`).

        Several are read as one. `prefixes` are for filters, beside those that the files declare.
        Raises `OntologyError` for files that cannot be read, or that contradict themselves.
        """
        return cls(sources, prefixes or {})

    @classmethod
    def parse(
        cls, text: str, form: str = "turtle", prefixes: Mapping[str, str] | None = None
    ) -> Ontology:
        """An ontology from text: `turtle`, `xml` or `nt`. Raises `OntologyError`."""
        return cls([Text(text, form)], prefixes or {})

    def reload(self, *sources: Source) -> int:
        """Read the files again, or others in their place, and take effect everywhere at once.

        Out goes the new version. If a file cannot be read, or a filter that is in use names a
        concept that is gone, `OntologyError` is raised with all reasons and nothing changes.
        """
        with self._changing:
            before = self._sources
            self._sources = tuple(sources) or before
            try:
                snapshot = self._read(self._snapshot.version + 1)
                take_over = self._prepared(snapshot)
            except OntologyError:
                self._sources = before
                raise
            self._snapshot = snapshot
            for each in take_over:
                each()
            return snapshot.version

    @contextmanager
    def at_rest(self) -> Iterator[Snapshot]:
        """The snapshot, which is not swapped as long as this is held."""
        with self._changing:
            yield self._snapshot

    def watch(self, prepare: Prepare) -> Callable[[], None]:
        """Have `prepare` called with each next snapshot; calling what comes back ends that."""
        with self._changing:
            ticket = max(self._watching, default=0) + 1
            self._watching[ticket] = prepare

        def leave() -> None:
            with self._changing:
                self._watching.pop(ticket, None)

        return leave

    def _read(self, version: int) -> Snapshot:
        reading = read(self._sources)
        # A prefix that is given here is meant, whatever the files use it for.
        for prefix in self._own_prefixes:
            reading.prefixes.pop(prefix, None)
        reading.declare(self._own_prefixes)
        return Snapshot(reading, version)

    def _prepared(self, snapshot: Snapshot) -> list[Callable[[], None]]:
        ready: list[Callable[[], None]] = []
        problems: list[str] = []
        for prepare in list(self._watching.values()):
            try:
                ready.append(prepare(snapshot))
            except OntologyError as error:
                problems += error.problems
        if problems:
            raise OntologyError(list(dict.fromkeys(problems)))
        return ready

    # --- questions --------------------------------------------------------------------------------

    @property
    def snapshot(self) -> Snapshot:
        """The reading that is in force."""
        return self._snapshot

    @property
    def version(self) -> int:
        """How often the files have been read; 1 after `load`."""
        return self._snapshot.version

    @property
    def prefixes(self) -> dict[str, str]:
        """The prefixes that names can be written with, each with its namespace."""
        return {prefix: spaces[0] for prefix, spaces in self._snapshot.prefixes.items()}

    def __len__(self) -> int:
        return len(self._snapshot.concepts)

    def __contains__(self, name: object) -> bool:
        return self._snapshot.names.code(name) >= 0

    def __repr__(self) -> str:
        return f"Ontology(concepts: {len(self)}, version: {self.version})"

    def code(self, name: str) -> int:
        """The code of a concept, which is its own in this version."""
        return self._snapshot.names.find(name)

    def is_a(self, narrow: str, wide: str) -> bool:
        """Whether a concept is another, equivalent to it, or more specific."""
        names = self._snapshot.names
        return self._snapshot.is_a(names.find(narrow), names.find(wide))

    def same_as(self, one: str, other: str) -> bool:
        """Whether a concept is another, or equivalent to it."""
        names = self._snapshot.names
        return self._snapshot.is_same(names.find(one), names.find(other))

    def more_specific(self, name: str) -> list[str]:
        """What `IS_A` the concept, itself left out, by name."""
        return self._listed(name, "IS_A")

    def less_specific(self, name: str) -> list[str]:
        """What `SUBSUMES` the concept, itself left out, by name."""
        return self._listed(name, "SUBSUMES")

    def equivalent(self, name: str) -> list[str]:
        """What is `SAME_AS` the concept, itself left out, by name."""
        return self._listed(name, "SAME_AS")

    def values(self, of_property: str, concept: str) -> list[str]:
        """The concepts that a concept has as values of a property, by name."""
        snapshot = self._snapshot
        code = snapshot.names.find(concept)
        found = snapshot.values(snapshot.property_code(of_property), code)
        return sorted(map(snapshot.names.short, found))

    def _listed(self, name: str, test: str) -> list[str]:
        snapshot = self._snapshot
        code = snapshot.names.find(name)
        found = snapshot.passing(test, code)
        listed = [each for each in found if each != code and not snapshot.is_built_in(each)]
        return sorted(map(snapshot.names.short, listed))

    # --- columns ----------------------------------------------------------------------------------

    def codes(self, column: Any) -> Codes:
        """The code of each text of an Arrow column; -1 where it is null or no concept."""
        return codes_of(self._snapshot, column)

    def matches(self, column: Any, test: str, concept: str) -> pa.Array:
        """Of each text of an Arrow column, whether it `IS_A`, `SUBSUMES` or is `SAME_AS` a concept.

        Null where the text is null.
        """
        snapshot = self._snapshot
        wanted = snapshot.passing(test.upper(), snapshot.names.find(concept))
        found = wanted.contains(codes_of(snapshot, column))
        return pa.array(found, mask=np.asarray(_as_array(column).is_null()))


def codes_of(snapshot: Snapshot, column: Any) -> Codes:
    encoded = _as_array(column).dictionary_encode()
    code = snapshot.names.code
    # What is null has no place in the dictionary, and gets the one behind its end.
    distinct = [code(text) for text in encoded.dictionary.to_pylist()] + [-1]
    places = encoded.indices.fill_null(len(distinct) - 1)
    return np.take(np.asarray(distinct, dtype=np.int32), np.asarray(places))


def _as_array(column: Any) -> Any:
    array = pa.chunked_array(column) if hasattr(column, "__arrow_c_stream__") else pa.array(column)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
