"""What the gallery of wrong libraries is made of, for its test and for `regenerate_gallery`.

The gallery is a folder of libraries (`NAME.cor`), each with the full text of everything that is
reported for it (`NAME.txt`), and with the ontology that it is loaded with where it has one
(`NAME.ttl`).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ensue.knowledge import Ontology
from ensue.lang.checker import check
from ensue.lang.diagnostics import Diagnostic, Diagnostics
from ensue.lang.expressions.binding import BindingOntology
from ensue.lang.parsing.files import read_source
from ensue.lang.parsing.parser import parse_tree
from ensue.lang.source import Source

GALLERY = Path(__file__).parent / "gallery"


def libraries() -> list[Path]:
    return sorted(GALLERY.glob("*.cor"))


def findings(source: Source, ontology: BindingOntology | None = None) -> tuple[Diagnostic, ...]:
    """Everything that is reported for a text, from its first word to who feeds whom."""
    diagnostics = Diagnostics(source)
    check(parse_tree(source, diagnostics), diagnostics, ontology)
    return diagnostics.in_order()


def findings_in(library: Path) -> tuple[Diagnostic, ...]:
    """Everything that is reported for a file, under its name without the folder."""
    source, problems = read_source([library])
    beside = library.with_suffix(".ttl")
    ontology = Ontology.load(beside) if beside.exists() else None
    found = problems or findings(source, ontology)
    return tuple(_named(each, library.name) for each in found)


def _named(found: Diagnostic, name: str) -> Diagnostic:
    """A finding under the name of its file without the folder, at both of its places."""
    inside = None if found.inside is None else _named(found.inside, name)
    return replace(found, file=name, inside=inside)


def report_on(library: Path) -> str:
    """The text that a user sees for a library of the gallery."""
    return "\n\n".join(str(each) for each in findings_in(library)) + "\n"
