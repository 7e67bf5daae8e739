"""Files of an ontology, read.

In come paths (Turtle, RDF/XML, N-Triples, told by their endings), texts and rdflib graphs; out
goes one graph and the prefixes that the files declare. A file that cannot be read or parsed is
refused with its place, all files at once. `owl:imports` is not followed, for nothing here goes to
the network: the imported files are given beside the others.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Final, Self
from xml.sax import SAXParseException

from rdflib import Graph
from rdflib.plugins.parsers.notation3 import BadSyntax

from ensue.configuration.bounded import read_all
from ensue.errors import OntologyError, UsageError

FORMATS: Final = {
    ".ttl": "turtle",
    ".rdf": "xml",
    ".owl": "xml",
    ".xml": "xml",
    ".nt": "nt",
    ".n3": "n3",
}


_SMALLER: Final = "leave out what no rule asks for"


@dataclass(frozen=True)
class FileBounds:
    """What one file may have: a statement of two characters takes kilobytes once it is read."""

    bytes: int = 256 * 1024 * 1024
    statements: int = 1_000_000


@dataclass(frozen=True)
class Text:
    """The text of an ontology, and what format of rdflib it is in."""

    text: str
    format: str = "turtle"


Source = str | PathLike[str] | Text | Graph


@dataclass
class ReadTriples:
    """The triples of all sources. A prefix that two sources declare has two namespaces."""

    graph: Graph = field(default_factory=lambda: Graph(bind_namespaces="none"))
    prefixes: dict[str, list[str]] = field(default_factory=dict)

    def declare(self, prefixes: Mapping[str, str]) -> None:
        for prefix, namespace in prefixes.items():
            known = self.prefixes.setdefault(prefix, [])
            if namespace not in known:
                known.append(namespace)


def read(sources: Sequence[Source], bounds: FileBounds = FileBounds()) -> ReadTriples:
    """Raises `OntologyError` with what is wrong with each source."""
    if not sources:
        raise OntologyError(["no ontology was given: name at least one file"])
    reading = ReadTriples()
    problems: list[str] = []
    for source in sources:
        try:
            graph = _graph(source, bounds)
        except OntologyError as error:
            problems += error.problems
            continue
        reading.graph += graph
        reading.declare({prefix: str(uri) for prefix, uri in graph.namespaces()})
    if problems:
        raise OntologyError(problems)
    return reading


def _graph(source: Source, bounds: FileBounds) -> Graph:
    if isinstance(source, Graph):
        return source
    if isinstance(source, Text):
        return _parsed(source, "<text>", None, bounds.statements)
    path = Path(fspath(source))
    name = str(path)
    form = FORMATS.get(path.suffix.lower())
    if form is None:
        known = ", ".join(f"`{each}`" for each in FORMATS)
        raise OntologyError(
            [f"`{name}`: the ending does not tell what format it has; known are {known}"]
        )
    try:
        with path.open("rb") as file:
            text = read_all(file, bounds.bytes, f"`{name}`", _SMALLER).decode("utf-8")
    except UsageError as error:
        raise OntologyError([str(error)]) from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        raise OntologyError([f"`{name}` cannot be read: {reason}"]) from None
    return _parsed(Text(text, form), name, path.absolute().as_uri(), bounds.statements)


class _BoundedGraph(Graph):
    """A graph that refuses to grow beyond a bound while a file is parsed into it."""

    def __init__(self, most: int) -> None:
        super().__init__(bind_namespaces="none")
        self._most = self._left = most

    def add(self, triple: Any) -> Self:
        self._left -= 1
        if self._left < 0:
            raise OntologyError(
                [f"there are more than {self._most:,} statements, which is the most: {_SMALLER}"]
            )
        super().add(triple)
        return self


def _parsed(given: Text, name: str, base: str | None, most: int) -> Graph:
    graph, form = _BoundedGraph(most), given.format
    try:
        with quiet():
            graph.parse(data=given.text, format=form, publicID=base)
    except OntologyError as error:
        raise OntologyError([f"`{name}`: {each}" for each in error.problems]) from None
    # The parsers of rdflib have no error in common, and each says the place in its own way.
    except Exception as error:
        raise OntologyError([f"`{name}` is no {_FORMAT_NAMES[form]}: {_reason(error)}"]) from None
    return graph


_FORMAT_NAMES = {"turtle": "Turtle", "xml": "RDF/XML", "nt": "N-Triples", "n3": "N3"}


def _reason(error: Exception) -> str:
    """The message of a parser, with the line if it names one."""
    said, line = str(error), None
    if isinstance(error, BadSyntax):
        # Its own count of lines goes wrong at blank ones.
        said, line = error._why, error._str[: error._i].count(b"\n") + 1
    elif isinstance(error, SAXParseException):
        said, line = error.getMessage(), error.getLineNumber()
    words = " ".join(said.split())[:200]
    return f"line {line}: {words}" if line else words


@contextmanager
def quiet() -> Iterator[None]:
    """Without the warnings and logged tracebacks that rdflib has for ill-typed literals."""
    logger = logging.getLogger("rdflib.term")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
