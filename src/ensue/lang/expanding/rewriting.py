"""Texts of libraries written anew: other values of parameters, and imports in their place.

In comes a text, out goes a text that says the same in all else, comments and layout included: with
other values in the declarations of parameters, or with the definitions of imported files in place
of the imports. So a server keeps one text for each version of a library, which stands alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ensue.lang.diagnostics import Diagnostics
from ensue.lang.expanding.parameters import GivenValues, given_values
from ensue.lang.parsing.importing import without_imports
from ensue.lang.parsing.parser import parse_tree
from ensue.lang.printer import print_parameter_value
from ensue.lang.source import Source
from ensue.lang.syntax import Parameter


def parameters_in(text: str) -> Mapping[str, Parameter]:
    """The parameters that a text declares, by name, as far as it can be read."""
    diagnostics = Diagnostics(Source.of(text))
    found: dict[str, Parameter] = {}
    for each in parse_tree(diagnostics.source, diagnostics).parameters:
        found.setdefault(each.name, each)
    return found


def text_with_values(text: str, given: GivenValues) -> str:
    """The text with other values of some parameters. Raises `UsageError` where one does not fit."""
    declared = parameters_in(text)
    values = given_values(declared, given)
    edits = [
        (each.value_span, print_parameter_value(values[name]))
        for name, each in declared.items()
        if name in given and values[name] != each.value
    ]
    for span, value in sorted(edits, key=lambda edit: -edit[0].start):
        text = f"{text[: span.start]}{value}{text[span.end :]}"
    return text


def bundled(files: Iterable[tuple[str, str]]) -> str:
    """The texts of several files as one, each under its name, without their imports."""
    *imported, (_, own) = files
    parts = [f"// imported: {name}\n{without_imports(text).strip()}\n" for name, text in imported]
    return "\n".join([*parts, without_imports(own).lstrip("\n")])
