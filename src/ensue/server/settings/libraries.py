"""The libraries that a file of settings names: read, and checked with everything else in it.

In come settings; out go the texts of the libraries, or what is wrong with each, so that one start
tells all mistakes. With an ontology, which takes long to load, texts are checked when they are put.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import indent
from typing import Any

from ensue.configuration.bounded import read_text
from ensue.engine.changing import checked_source
from ensue.errors import LibraryError, UsageError
from ensue.lang.diagnostics import did_you_mean
from ensue.lang.expanding.parameters import what_there_is
from ensue.lang.expanding.rewriting import bundled, parameters_in, text_with_values
from ensue.lang.parsing.files import read_source
from ensue.lang.syntax import Parameter
from ensue.library import parse
from ensue.server.settings.settings import Settings
from ensue.server.settings.tables import LibraryTable


def text_of(settings: Settings, table: LibraryTable) -> str:
    """The text of a library, with what it imports from its folder in place of the imports.

    Raises `UsageError`, and `LibraryError` for mistakes that have to be told of several files.
    """
    file = settings.folder / table.file
    hint = "give the file of a library, or raise limit `library_bytes`"
    text = read_text(file, settings.limits.library_bytes, hint)
    source, problems = read_source([file], inside=file.parent)
    if len(source.files) == 1 and not problems:
        return text
    checked_source(source, problems=problems)
    return bundled(source.files)


def library_texts(settings: Settings) -> Mapping[str, str]:
    """The text of each library by its name, with the values that `[parameters]` gives.

    A name in that table that none of the libraries declares, nor that of the gateway's site, is a
    `UsageError`, as is a value that does not fit.
    """
    texts: dict[str, str] = {}
    declared = dict(site_parameters(settings.gateway, settings.folder))
    for each in settings.libraries:
        try:
            texts[each.name] = text_of(settings, each)
        except LibraryError as error:
            raise UsageError(words_of(each.name, error)) from None
        declared |= parameters_in(texts[each.name])
    given = settings.parameters
    for name in given:
        if name not in declared:
            known = did_you_mean(name, declared) if declared else ""
            guess = f"; {known}" if known.startswith("did you mean") else ""
            raise UsageError(
                f"`[parameters]`: there is no parameter `{name}`{guess}"
                f" ({what_there_is(declared.values())})"
            )
    if not given:
        return texts
    return {
        name: text_with_values(text, {p: given[p] for p in parameters_in(text) if p in given})
        for name, text in texts.items()
    }


def site_parameters(gateway: Mapping[str, Any], folder: Path) -> Mapping[str, Parameter]:
    """The parameters of the library that a gateway's site runs; its mistakes are told elsewhere."""
    site = gateway.get("site")
    named = site.get("library") if isinstance(site, Mapping) else None
    files = [named] if isinstance(named, str) else named
    if not isinstance(files, list) or not files or not all(isinstance(e, str) for e in files):
        return {}
    source, problems = read_source([folder / each for each in files])
    return {} if problems else parameters_in(source.text)


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
