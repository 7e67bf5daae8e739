"""CESQL: the language of predicates and values.

`tree` holds what was written; `text` builds it from the parser's reductions and writes it down
again. `evaluation` gives it its meaning over one event or, in a transformer, over the events bound
to the ports, with `values` for casts, `scopes` for names and the functions of `builtins`.
`checking` finds what cannot be right before anything runs, `nesting` what is too deep. The text is
read by the one grammar of the library language, `grammar.lark` in `ensue.lang.parsing`.
"""

from ensue.lang.expressions.tree import (
    Arithmetic,
    Call,
    Comparison,
    Exists,
    Expression,
    In,
    Like,
    Literal,
    Logic,
    Name,
    Negate,
    Not,
)

__all__ = [
    "Arithmetic",
    "Call",
    "Comparison",
    "Exists",
    "Expression",
    "In",
    "Like",
    "Literal",
    "Logic",
    "Name",
    "Negate",
    "Not",
]
