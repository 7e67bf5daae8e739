"""CESQL: the language of predicates and values.

`tree` holds what was written, `evaluation` gives it its meaning over one event (or, in a
transformer, over the events bound to the ports), `typing` finds what cannot fit before anything
runs. The text is read by the one grammar of the library language (`ensue.lang.grammar`).
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
