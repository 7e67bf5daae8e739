"""The language of libraries: from text, or from Python values, to a library that can run.

    text ──parser──▶ LibraryTree ──checker──▶ CheckedLibrary
              builder ──▲   └──printer──▶ text

`source` and `diagnostics` say where a mistake is and what to do about it. `syntax` is the tree of
a library, `expressions` is CESQL, `matching` an index over many predicates, and `checked` the
library that all other rooms work from. Nothing is run here: `ensue.engine` runs libraries.

Importing this room is quick; the parser is loaded with `ensue.lang.parsing.parser`, the checks with
`ensue.lang.checker`.
"""

from ensue.lang.diagnostics import Diagnostic, Diagnostics
from ensue.lang.source import Position, Source, Span

__all__ = ["Diagnostic", "Diagnostics", "Position", "Source", "Span"]
