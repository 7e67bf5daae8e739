"""Text that becomes a function: templates that are filled in, and code that is compiled once.

In comes text that another module has written for a library, with the values that it names; out
goes a function. Compiling takes longer than most of what is compiled ever runs, so equal texts
share their code: a writer of text names its constants in the order in which they come, so that
what differs only in its constants has the same text.

Nothing a user wrote is part of a text, but for names that the language has checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from types import CodeType
from typing import Any

TEXTS_REMEMBERED = 1024


def filled(template: str, **parts: Sequence[str]) -> str:
    """The template with each part in its place, at the depth at which the place stands."""
    lines = []
    for line in template.splitlines():
        if "{" not in line:
            lines.append(line)
            continue
        bare = line.strip()
        depth = line[: len(line) - len(bare)]
        if bare[1:-1] in parts and bare == f"{{{bare[1:-1]}}}":
            lines += [depth + each for each in parts[bare[1:-1]] or ["pass"]]
            continue
        for name, text in parts.items():
            if f"{{{name}}}" in line:
                line = line.replace(f"{{{name}}}", text[0])
        lines.append(line)
    return "\n".join(lines)


def function_from(text: str, function: str, scope: dict[str, Any]) -> Any:
    """The function of that name, over the values of `scope`."""
    exec(_code(text, function), scope)
    return scope[function]


@lru_cache(maxsize=TEXTS_REMEMBERED)
def _code(text: str, function: str) -> CodeType:
    return compile(text, f"<{function}>", "exec")
