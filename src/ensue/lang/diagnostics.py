"""Diagnostics: what is wrong with a library, where, and what to do about it.

Every stage of `ensue.lang` reports into a `Diagnostics` and goes on, so that a user sees all
mistakes at once. A diagnostic has its facts (file, line, column, the line itself) as plain values:
it can be shown without the source, and pickled.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Literal

from ensue.lang.source import Source, Span

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding. `code` is a short and stable name such as `unknown-port`."""

    severity: Severity
    code: str
    message: str
    file: str
    line: int
    column: int
    width: int
    text: str
    hint: str | None = None
    inside: Diagnostic | None = None
    """Where it stands in the text that is used here, for what is found in a `use`."""
    given: tuple[str, ...] = ()
    """What was given on the command line that makes it a mistake, such as `--set limit=0`."""

    def __str__(self) -> str:
        head = f"{self._place}: {self.severity}: {self.message} [{self.code}]"
        lines = [head, *self._excerpt()]
        if self.inside is not None:
            lines += [f"{self.inside._place}: it stands here", *self.inside._excerpt()]
        last = self if self.inside is None else self.inside
        margin = " " * len(str(last.line))
        for each in self.given:
            lines += ["command line: the value is given here", f"  {margin} | {each}"]
            lines.append(f"  {margin} | {'^' * len(each)}")
        if self.hint:
            lines.append(f"  {margin} = {self.hint}")
        return "\n".join(lines)

    @property
    def _place(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def _excerpt(self) -> list[str]:
        """The line, and a caret at the place."""
        # The line with the caret keeps the tabs of the line above, or it would point elsewhere.
        shown, column = _window(self.text, self.column - 1)
        margin = "".join(c if c == "\t" else " " for c in shown[:column])
        marks = "^" * max(1, min(self.width, len(shown) - column))
        number = str(self.line)
        return [f"  {number} | {shown}", f"  {' ' * len(number)} | {margin}{marks}"]


LONGEST_LINE = 300
"""Of a longer line, only the part around the place of a finding is shown."""


def _window(line: str, column: int) -> tuple[str, int]:
    """The part of a long line around a column, and the place of the column in it."""
    if len(line) <= LONGEST_LINE:
        return line, column
    start = max(0, min(column - LONGEST_LINE // 2, len(line) - LONGEST_LINE))
    before = "..." if start > 0 else ""
    after = "..." if start + LONGEST_LINE < len(line) else ""
    return before + line[start : start + LONGEST_LINE] + after, column - start + len(before)


_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters of terminals and of text direction, which must not be shown."""


@dataclass
class Diagnostics:
    """Collects findings over the source of one library."""

    source: Source
    found: list[Diagnostic] = field(default_factory=list)
    _shown: dict[str, str] = field(default_factory=dict)
    _known: set[Diagnostic] = field(default_factory=set)

    def error(self, code: str, message: str, span: Span, hint: str | None = None) -> None:
        self._add("error", code, message, span, hint)

    def warning(self, code: str, message: str, span: Span, hint: str | None = None) -> None:
        self._add("warning", code, message, span, hint)

    def in_use(self, found: Diagnostic, name: str, rule: str, span: Span) -> None:
        """Report at a `use` what was found in the text of the rule that it uses."""
        message = f"in `use {rule} as {name}`: {found.message}"
        self._add(found.severity, found.code, message, span, found.hint, found)

    def _add(
        self,
        severity: Severity,
        code: str,
        message: str,
        span: Span,
        hint: str | None,
        inside: Diagnostic | None = None,
    ) -> None:
        place = self.source.position(span.start)
        width = max(1, span.end - span.start)
        text = self.source.line_at(span.start)
        # Thousands of findings may share a very long line, which is cleaned once.
        shown = self._shown.get(text)
        if shown is None:
            shown = self._shown[text] = _CONTROLS.sub("\ufffd", text)
        found = Diagnostic(severity, code, message, *place, width, shown, hint, inside)
        # The ports of a rule and of its uses may be found wanting at one place.
        if found not in self._known:
            self._known.add(found)
            self.found.append(found)

    @property
    def has_errors(self) -> bool:
        return any(each.severity == "error" for each in self.found)

    def in_order(self) -> tuple[Diagnostic, ...]:
        """The findings by file and from top to bottom."""
        files = [name for name, _ in self.source.files]
        return tuple(sorted(self.found, key=lambda d: (files.index(d.file), d.line, d.column)))


_LONGEST_COMPARED = 200
_MOST_COMPARED = 200


def close_match(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` was probably meant to be, if there is one."""
    candidates = sorted(set(known))
    by_case = [each for each in candidates if each.lower() == name.lower()]
    if len(name) > _LONGEST_COMPARED:
        return next(iter(by_case), None)
    if len(candidates) > _MOST_COMPARED:
        # A comparison takes microseconds, and a text may have thousands of unknown names.
        first = name[:1].lower()
        candidates = [each for each in candidates if each[:1].lower() == first][:_MOST_COMPARED]
    return next(iter(by_case or get_close_matches(name, candidates, n=1, cutoff=0.7)), None)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint with the close match, or else with the known names."""
    names = sorted(set(known))
    match = close_match(name, names)
    if match:
        return f"did you mean `{match}`?"
    if not names:
        return "none is declared"
    shown = ", ".join(f"`{each}`" for each in names[:8])
    return f"known: {shown}" + (f" and {len(names) - 8} more" if len(names) > 8 else "")
