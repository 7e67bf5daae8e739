"""CESQL: the language of predicates and values.

`tree` has the nodes of expressions; `text` reads and prints them. `evaluation` computes an
expression over one event or, in a transformer, over the events bound to ports, with `values` for
casts, `scopes` for names and the functions of `builtins`. `checking` finds mistakes before anything
runs, `nesting` expressions that are too deep. The text is read by the grammar of the library
language, `grammar.lark` in `ensue.lang.parsing`.
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
