"""Content-based subscriptions: filters over one publication, covering, and an index over many.

A filter is CESQL, with the temporal and semantic terms of `ensue.lang.expressions.terms`. It asks
a history and an ontology through the two protocols here, `TemporalStore` and `Ontology`, which
`ensue.history` and `ensue.knowledge` implement.
"""

from ensue.lang.expressions.asking import AskingScope, Ontology, TemporalStore

__all__ = ["AskingScope", "Ontology", "TemporalStore"]
