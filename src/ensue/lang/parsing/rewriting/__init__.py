"""The line that was probably meant, where a text is written in the habits of another language.

In comes the part of a definition that does not parse (an attribute, a port, the filter with its
clauses, a statement); out goes a line of ours with a reason. People who come from Flink CEP, SQL,
Esper, EQL or Sigma write `a -> b`, `group by`, `5m`, `!b`. Each habit is a pattern over the text
and its replacement (`habits`, `heads`, `declarations`). A line is offered only if it parses
(`suggestion`), so a hint never leads to the next error of this kind. What a name means is not
looked at here: that is the checker's part.
"""

from ensue.lang.parsing.rewriting.suggestion import suggested_line

__all__ = ["suggested_line"]
