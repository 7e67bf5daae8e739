"""The language of libraries: from text, or from Python values, to a library that can run.

    text ──parser──▶ LibraryTree ──checker──▶ CheckedLibrary
              builder ──▲   └──printer──▶ text

`source` and `diagnostics` say where a mistake is and what to do about it, `syntax` is what was
written, `expressions` is CESQL, `checked` is what the later rooms work from. Nothing is run here:
what a library means over events is told by `ensue.engine`.

Only what is light is loaded with this room; the parser comes with `ensue.lang.parsing.parser`, the
checks with `ensue.lang.checker`.
"""

from ensue.lang.diagnostics import Diagnostic, Diagnostics
from ensue.lang.source import Position, Source, Span

__all__ = ["Diagnostic", "Diagnostics", "Position", "Source", "Span"]
