"""Content-based subscriptions: filters over one publication, covering, and an index over many.

A filter is CESQL, with the temporal and semantic terms of `ensue.lang.expressions.tree`. It asks
a history and an ontology through the two protocols here, `TemporalStore` and `Ontology`, which
`ensue.history` and `ensue.knowledge` implement.
"""

from ensue.lang.expressions.asking import AskingScope, Ontology, TemporalStore
from ensue.subscriptions.covering import covers
from ensue.subscriptions.filter import Filter
from ensue.subscriptions.index import Index

__all__ = ["AskingScope", "Filter", "Index", "Ontology", "TemporalStore", "covers"]
