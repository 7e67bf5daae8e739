"""Ontologies, and the operators of filters that ask them.

    from ensue.knowledge import Ontology

    wine = Ontology.load("wine.ttl")
    wine.is_a("wine:Chianti", "wine:RedWine")

Files are read by `sources`, closed under OWL 2 RL by `reasoning`, and made into codes by
`classification`; `names` knows how concepts are written. An `OntologySnapshot` holds all, an
`Ontology` the one in force. It needs the extra `knowledge` (rdflib and reasonable).
"""

from pathlib import Path
from typing import Final

from ensue.errors import OntologyError, UsageError

try:
    from ensue.knowledge.ontology import Ontology
except ModuleNotFoundError as error:
    if error.name not in ("rdflib", "reasonable"):
        raise
    raise UsageError(
        f"ontologies need `{error.name}`, which is not installed: pip install 'ensue[knowledge]'"
    ) from None

SAMPLES: Final = Path(__file__).parent / "samples"
"""The folder of the ontologies that come along: `wine.ttl`, with reds and whites."""

__all__ = ["SAMPLES", "Ontology", "OntologyError"]
