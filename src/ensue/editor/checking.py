"""Findings about one file, checked with the files that form a library with it.

In come a project and a file; out come the diagnostics of that file, and the library if it has no
error. A type that several files beside it declare is named, for it cannot be told which is meant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ensue.editor.project import Project, imported_from
from ensue.explaining.findings import Findings, all_findings, quick_findings
from ensue.lang.diagnostics import Diagnostic
from ensue.lang.limits import DEFAULT_LIMITS
from ensue.lang.parsing.importing import imports_of
from ensue.lang.source import Source


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """`all` are the findings over the whole library."""

    all: Findings
    diagnostics: tuple[Diagnostic, ...]


def source_of(project: Project, path: Path, instead: Mapping[Path, str] | None = None) -> Source:
    """The texts of a file's library; `instead` holds texts to use in place of others."""
    files = []
    lost = set()
    for each in project.library_of(path):
        document = project.document(each)
        if document is not None:
            text = (instead or {}).get(each, document.text)
            files.append((str(each), text))
            lost |= {
                (str(each), name)
                for name, _, _ in imports_of(text)
                if project.document(imported_from(each, name)) is None
            }
    return Source(tuple(files) or ((str(path), ""),), has_imports=True, lost=frozenset(lost))


def check_file(project: Project, path: Path, seconds: float | None = None) -> CheckedFile:
    """What is to be said about a file; with `seconds` the analyses are run too, for so long."""
    return checked(source_of(project, path), path, project.knowledge.ontology(), seconds)


def checked(source: Source, path: Path, ontology: Any, seconds: float | None = None) -> CheckedFile:
    if sum(len(text) for _, text in source.files) > DEFAULT_LIMITS.bytes:
        seconds = None
    found = _quick(source, ontology) if seconds is None else all_findings(source, seconds, ontology)
    own = tuple(each for each in found.diagnostics if each.file == str(path))
    return CheckedFile(found, own)


@lru_cache(maxsize=16)
def _quick(source: Source, ontology: Any) -> Findings:
    """One text is asked about many times between two keystrokes."""
    return quick_findings(source, ontology)


def unclear_types(project: Project, path: Path) -> Mapping[str, str]:
    """For each type that cannot be told apart: which files declare it, and what to do."""
    return {
        type_: f"`{type_}` is declared in {' and in '.join(f'`{each.name}`' for each in places)}:"
        " name the files of this library in the setting `ensue.libraries`"
        for type_, places in project.ambiguous(path).items()
    }
