"""The entailment cases of the W3C that are about classes and properties.

A premise entails a conclusion if every triple of the conclusion is among the facts that follow, or
is one that holds of everything (`rdfs6`, `rdfs10`: each is below itself). It entails `false` if it
contradicts itself.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from rdflib import RDF, RDFS, Graph, Literal, Namespace, URIRef
from rdflib.term import Node

from ensue.errors import OntologyError
from ensue.knowledge.reasoning.closure import entailed
from ensue.knowledge.reasoning.triples import Triples
from ensue.knowledge.sources import read

CORPUS = Path(__file__).parents[1] / "corpora" / "rdf_mt"
MF = Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#")
BASE = "http://corpus.example/"


def _manifest() -> Graph:
    text = (CORPUS / "manifest.ttl").read_text("utf-8")
    return Graph().parse(data=text, format="turtle", publicID=BASE + "manifest.ttl")


def _cases() -> list[tuple[str, bool, Path, Path | None]]:
    """Name, whether it is to be entailed, premise, and conclusion (None for `false`)."""
    manifest = _manifest()
    found = []
    for case, kind in manifest.subject_objects(RDF.type):
        action = manifest.value(case, MF.action)
        if kind not in (MF.PositiveEntailmentTest, MF.NegativeEntailmentTest):
            continue
        premise = _file(action)
        if premise.exists():
            result = manifest.value(case, MF.result)
            conclusion = None if isinstance(result, Literal) else _file(result)
            name = str(manifest.value(case, MF.name))
            found.append((name, kind == MF.PositiveEntailmentTest, premise, conclusion))
    return sorted(found)


def _file(node: Node | None) -> Path:
    return CORPUS / str(node).removeprefix(BASE)


def _follows(premise: Path, conclusion: Path | None) -> bool:
    try:
        facts = entailed(read([premise]).graph)
    except OntologyError:
        return True
    if conclusion is None:
        return False
    return all(_holds(facts, triple) for triple in read([conclusion]).graph)


def _holds(facts: Triples, triple: tuple[Node, Node, Node]) -> bool:
    subject, predicate, value = triple
    if subject == value and predicate in (RDFS.subClassOf, RDFS.subPropertyOf):
        return True
    return triple in facts


CASES = _cases()

MORE_FOLLOWS = {
    "rdfs-domain-and-range-intensionality-domain": "scm-dom1",
    "rdfs-domain-and-range-intensionality-range": "scm-rng1",
}
"""Cases that RDFS alone does not entail and OWL 2 RL does, by a rule of it: a property whose domain
or range is a class has the wider classes as well. The manifest says of both that the conclusion may
hold in semantic extensions of RDFS, and OWL 2 RL is one."""


def _is_entailed(name: str, positive: bool) -> bool:
    return positive or name in MORE_FOLLOWS


@pytest.mark.parametrize(
    ("name", "positive", "premise", "conclusion"), CASES, ids=[each[0] for each in CASES]
)
def test_premise_entails_what_the_w3c_says(
    name: str, positive: bool, premise: Path, conclusion: Path | None
) -> None:
    assert _follows(premise, conclusion) is _is_entailed(name, positive)


def test_cases_with_a_reason_are_cases_that_the_w3c_denies() -> None:
    denied = {name for name, positive, _, _ in CASES if not positive}

    assert denied >= MORE_FOLLOWS.keys()


def test_every_case_whose_files_are_here_is_run() -> None:
    folders = {each.parent.name for each in CORPUS.glob("*/*")}

    assert len(CASES) == 11
    assert {premise.parent.name for _, _, premise, _ in CASES} == folders


def test_entailments_are_not_read_off_the_names_alone() -> None:
    """The way of asking can tell the conclusions of two cases apart."""
    by_name = {name: (premise, conclusion) for name, _, premise, conclusion in CASES}
    premise, _ = by_name["rdfs-subPropertyOf-semantics-test001"]
    _, other = by_name["horst-01-subClassOf-intensional"]

    assert not _follows(premise, other)
    assert URIRef(BASE) not in entailed(read([premise]).graph).predicates
