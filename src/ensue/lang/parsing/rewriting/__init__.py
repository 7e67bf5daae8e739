"""Rewrites text in the habits of another language as the line that was probably meant.

In comes the part of a definition that does not parse (an attribute, a port, the filter with its
clauses, a statement); out goes a line of our language with a reason. Users of Flink CEP, SQL,
Esper, EQL or Sigma write `a -> b`, `group by`, `5m`, `!b`. Each habit is a pattern over the text
and its replacement (`habits`, `heads`, `declarations`). A line is offered only if it parses
(`suggestion`), so that a hint never leads to the next syntax error. Names are not checked here.
"""

from ensue.lang.parsing.rewriting.suggestion import suggested_line

__all__ = ["suggested_line"]
