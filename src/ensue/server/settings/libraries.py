"""The libraries that a file of settings names: read, and checked with everything else in it.

In come settings; out go the texts of the libraries, or what is wrong with each, so that one start
tells all mistakes. With an ontology, which takes long to load, texts are checked when they are put.
"""

from __future__ import annotations

from collections.abc import Callable
from textwrap import indent

from ensue.configuration.bounded import read_text
from ensue.errors import LibraryError, UsageError
from ensue.library import parse
from ensue.server.settings.settings import Settings
from ensue.server.settings.tables import LibraryTable


def text_of(settings: Settings, table: LibraryTable) -> str:
    """The text of a library. Raises `UsageError`."""
    hint = "give the file of a library, or raise limit `library_bytes`"
    return read_text(settings.folder / table.file, settings.limits.library_bytes, hint)


def check_libraries(settings: Settings, on_problem: Callable[[int, str], None]) -> None:
    """Tell what is wrong with the libraries, by their number, from 0."""
    for number, each in enumerate(settings.libraries):
        if not (settings.folder / each.file).is_file():
            continue
        try:
            text = text_of(settings, each)
            if not settings.ontology.files:
                parse(text, each.file)
        except LibraryError as error:
            on_problem(number, words_of(each.name, error))
        except UsageError as error:
            on_problem(number, str(error))


def words_of(name: str, error: LibraryError) -> str:
    """The mistakes of a library, below a line that names it."""
    errors = [each for each in error.diagnostics if each.severity == "error"]
    found = "\n".join(str(each).rstrip() for each in errors)
    count = "1 error" if len(errors) == 1 else f"{len(errors):,} errors"
    return f"library `{name}` has {count}:\n{indent(found, '  ')}"
