"""An ontology as a user holds it: loaded, asked, read again.

In come files; out come answers about their concepts. What the files say is held in a
`OntologySnapshot` that is swapped as a whole when they are read again, so that every question is
answered by one reading. A reading that lacks a concept which a filter in use names is refused;
otherwise all tests of filters take it over, one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from threading import RLock
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import pyarrow as pa

from ensue.errors import OntologyError
from ensue.knowledge.codes import Codes
from ensue.knowledge.snapshot import OntologySnapshot
from ensue.knowledge.sources import Source, Text, read
from ensue.knowledge.testing import LiveTest, compiled
from ensue.lang.expressions.tree import ConceptTerm


class Ontology:
    """Concepts and what is known of them. Made by `Ontology.load` and `Ontology.parse`."""

    def __init__(self, sources: Sequence[Source], prefixes: Mapping[str, str]) -> None:
        self._sources = tuple(sources)
        self._own_prefixes = dict(prefixes)
        self._changing = RLock()
        self._tests: WeakValueDictionary[ConceptTerm, LiveTest] = WeakValueDictionary()
        self._snapshot = self._read(1)

    @classmethod
    def load(cls, *sources: Source, prefixes: Mapping[str, str] | None = None) -> Ontology:
        """Read files of Turtle (`.ttl`), RDF/XML (`.rdf`, `.owl`, `.xml`) or N-Triples (`.nt`).

        Several files are read as one. `prefixes` are for filters, besides the prefixes of the
        files. Raises `OntologyError` for files that cannot be read, or that contradict themselves.
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

        Out goes the new generation. If a file cannot be read, or a filter that is in use names a
        concept that is gone, `OntologyError` is raised with all reasons and nothing changes.
        """
        with self._changing:
            before = self._sources
            self._sources = tuple(sources) or before
            try:
                snapshot = self._read(self._snapshot.generation + 1)
                take_over = self._prepared(snapshot)
            except OntologyError:
                self._sources = before
                raise
            self._snapshot = snapshot
            for each in take_over:
                each()
            return snapshot.generation

    def _read(self, generation: int) -> OntologySnapshot:
        reading = read(self._sources)
        # A prefix that is given here is meant, whatever the files use it for.
        for prefix in self._own_prefixes:
            reading.prefixes.pop(prefix, None)
        reading.declare(self._own_prefixes)
        return OntologySnapshot(reading, generation)

    def _prepared(self, snapshot: OntologySnapshot) -> list[Callable[[], None]]:
        """What takes the snapshot over in each test that is in use."""
        ready: list[Callable[[], None]] = []
        problems: list[str] = []
        for test in list(self._tests.values()):
            try:
                ready.append(partial(test.take, snapshot, compiled(test.term, snapshot)))
            except OntologyError as error:
                problems += error.problems
        if problems:
            raise OntologyError(list(dict.fromkeys(problems)))
        return ready

    # --- questions --------------------------------------------------------------------------------

    @property
    def snapshot(self) -> OntologySnapshot:
        """The reading that is in force."""
        return self._snapshot

    @property
    def generation(self) -> int:
        """How often the files have been read; 1 after `load`. Codes are those of a generation."""
        return self._snapshot.generation

    @property
    def prefixes(self) -> dict[str, str]:
        """The prefixes that names can be written with, each with its namespace."""
        return {prefix: spaces[0] for prefix, spaces in self._snapshot.prefixes.items()}

    def __len__(self) -> int:
        return len(self._snapshot.concepts)

    def __contains__(self, name: object) -> bool:
        return self._snapshot.names.code(name) >= 0

    def __repr__(self) -> str:
        return f"Ontology(concepts: {len(self)}, generation: {self.generation})"

    def is_a(self, narrow: str, wide: str) -> bool:
        """Whether a concept is another, equivalent to it, or more specific."""
        return self._asked("IS_A", narrow, wide)

    def same_as(self, one: str, other: str) -> bool:
        """Whether a concept is another, or equivalent to it."""
        return self._asked("SAME_AS", one, other)

    def _asked(self, word: str, left: str, right: str) -> bool:
        snapshot = self._snapshot
        return snapshot.test(word, snapshot.names.find(left), snapshot.names.find(right))

    def more_specific(self, name: str) -> list[str]:
        """The names of the concepts that are `IS_A` this one, without its own."""
        return self._listed(name, "IS_A")

    def less_specific(self, name: str) -> list[str]:
        """The names of the concepts that `SUBSUMES` this one, without its own."""
        return self._listed(name, "SUBSUMES")

    def equivalent(self, name: str) -> list[str]:
        """The names of the concepts that are `SAME_AS` this one, without its own."""
        return self._listed(name, "SAME_AS")

    def values(self, of_property: str, concept: str) -> list[str]:
        """The concepts that a concept has as values of a property, by name."""
        snapshot = self._snapshot
        code = snapshot.names.find(concept)
        snapshot.property_code(of_property)
        return sorted(map(snapshot.names.short, snapshot.related(of_property, code)))

    def _listed(self, name: str, test: str) -> list[str]:
        snapshot = self._snapshot
        code = snapshot.names.find(name)
        found = snapshot.passing(test, code)
        listed = [each for each in found if each != code and not snapshot.is_built_in(each)]
        return sorted(map(snapshot.names.short, listed))

    # --- filters ----------------------------------------------------------------------------------

    def bound(self, term: ConceptTerm) -> LiveTest:
        """The test of a concept term, which follows every `reload`.

        Raises `OntologyError` for a name that is unknown or ambiguous, with what could be meant.
        """
        with self._changing:
            test = self._tests.get(term)
            if test is None:
                test = self._tests[term] = LiveTest(term, self._snapshot)
            return test

    def code(self, text: str) -> int | None:
        """The code of a concept; None for a text that names none, or that is ambiguous."""
        return self._snapshot.code(text)

    def test(self, word: str, left: int, right: int) -> bool:
        """Whether `left IS_A right`, `left SUBSUMES right` or `left SAME_AS right`, by codes."""
        return self._snapshot.test(word, left, right)

    def above(self, code: int) -> Sequence[int]:
        """The codes that this one IS_A: itself, equivalents, and what is less specific."""
        return self._snapshot.above(code)

    def related(self, prop: str, code: int) -> Sequence[int]:
        """The codes that a concept has as values of a property."""
        return self._snapshot.related(prop, code)

    def constants(self, prop: str, code: int) -> Sequence[Any]:
        """The constants that a concept has as values of a property."""
        return self._snapshot.constants(prop, code)

    def knows_property(self, prop: str) -> bool:
        """Whether a text names a property."""
        return self._snapshot.knows_property(prop)

    def advice(self, text: str) -> str:
        """What to write in place of a text that names no concept, or no property."""
        return self._snapshot.advice(text)

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


def codes_of(snapshot: OntologySnapshot, column: Any) -> Codes:
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
