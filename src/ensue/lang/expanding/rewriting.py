"""Texts of libraries written anew: other values of parameters, and imports in their place.

In comes a text, out goes a text that says the same in all else, comments and layout included: with
other values in the declarations of parameters, or with the definitions of imported files in place
of the imports. So a server keeps one text for each version of a library, which stands alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ensue.lang.diagnostics import Diagnostics
from ensue.lang.expanding.parameters import GivenValues, given_values
from ensue.lang.parsing.importing import without_imports
from ensue.lang.parsing.parser import parse_tree
from ensue.lang.printer import print_parameter_value
from ensue.lang.source import Source, Span
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


def before_values(text: str, earlier: Iterable[str]) -> str:
    """The text as it was before values were put into it. `earlier` are older ones, latest first."""
    spans = sorted((each.value_span for each in parameters_in(text).values()), key=_start)
    ends = [0, *(each.end for each in spans)]
    between = [text[a:b] for a, b in zip(ends, [*map(_start, spans), len(text)], strict=True)]
    for each in earlier:
        if not _has_parts(each, between):
            break
        text = each
    return text


def _start(span: Span) -> int:
    return span.start


def _has_parts(text: str, parts: Sequence[str]) -> bool:
    """Whether a text consists of some parts with a value, which has no line end, between them."""
    first, *rest = parts
    if not rest or not text.startswith(first) or not text.endswith(rest[-1]):
        return text == first
    at = len(first)
    for part in rest[:-1]:
        found = text.find(part, at)
        if found < 0 or "\n" in text[at:found]:
            return False
        at = found + len(part)
    value = text[at : len(text) - len(rest[-1])]
    return bool(value) and "\n" not in value


def bundled(files: Iterable[tuple[str, str]]) -> str:
    """The texts of several files as one, each under its name, without their imports."""
    *imported, (_, own) = files
    parts = [f"// imported: {name}\n{without_imports(text).strip()}\n" for name, text in imported]
    return "\n".join([*parts, without_imports(own).lstrip("\n")])
