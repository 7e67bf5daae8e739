"""Mappings: events of one service in the words of another.

A mapping is read from a `[[map]]` table (`rules`). Its steps are taken in one order: the subject is
split into parameters, parameters are renamed, removed, retyped and computed, the subject is built
anew, and code of the user comes last. It is carried out in one of two ways with the same results:
`interpreted` goes through the steps for every event; `compiled` writes them down once as a function
of Python. Gateways compile.
"""

from ensue.federation.mapping.compiled import compiled
from ensue.federation.mapping.interpreted import interpreted
from ensue.federation.mapping.rules import MappingError, MappingRule

__all__ = ["MappingError", "MappingRule", "compiled", "interpreted"]
