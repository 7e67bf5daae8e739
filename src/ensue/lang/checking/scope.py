"""The scope that all parts of the checker share: diagnostics, declared types, close matches.

Close matches are searched only for mistakes, and within a budget: to compare a name with thousands
of others is slow, and a library with thousands of unknown names has one mistake that matters. Past
the budget a finding is still reported, without a close match.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field

from ensue.lang.checking.type_forest import TypeForest
from ensue.lang.diagnostics import Diagnostics, close_match, did_you_mean
from ensue.lang.expressions import Name
from ensue.lang.source import Span

COMPARISONS_ALLOWED = 50_000

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass
class LibraryScope:
    diagnostics: Diagnostics
    types: TypeForest
    _comparisons_left: int = field(default=COMPARISONS_ALLOWED, init=False)

    def error(self, code: str, message: str, span: Span, hint: str | None = None) -> None:
        self.diagnostics.error(code, message, span, hint)

    def warning(self, code: str, message: str, span: Span, hint: str | None = None) -> None:
        self.diagnostics.warning(code, message, span, hint)

    def close_match(self, name: str, *known: Collection[str]) -> str | None:
        return close_match(name, set().union(*known)) if self._may_compare(known) else None

    def hint(self, name: str, *known: Collection[str]) -> str | None:
        """A hint with the close match, or else with the known names."""
        return did_you_mean(name, set().union(*known)) if self._may_compare(known) else None

    def _may_compare(self, known: Collection[Collection[str]]) -> bool:
        self._comparisons_left -= sum(map(len, known))
        return self._comparisons_left >= 0

    def check_type(self, name: str, span: Span) -> bool:
        """Whether a type is declared; one that is not is reported."""
        if name in self.types:
            return True
        hint = self.hint(name, self.types.types)
        if not self.types.types:
            hint = f"declare it: `eventtype {name} {{}};`"
        self.error("unknown-type", f"there is no event type `{name}`", span, hint)
        return False

    def place(self, span: Span) -> str:
        """A place in the words of a hint."""
        file, line, _ = self.diagnostics.source.position(span.start)
        same_file = len(self.diagnostics.source.files) == 1
        return f"line {line}" if same_file else f"{file}:{line}"

    def name_spans(self, span: Span, count: int) -> list[Span]:
        """The places of `count` names in a span with nothing but signs between them."""
        text = self.diagnostics.source.text[span.start : span.end]
        found = [
            Span(span.start + each.start(), span.start + each.end())
            for each in _NAME.finditer(text)
        ]
        # A comment in between has words of its own; then the whole span is marked.
        return found if len(found) == count else [span] * count

    def part_span(self, name: Name, index: int) -> Span:
        """The place of one part of a dotted name."""
        return self.name_spans(name.span, len(name.parts))[index]
