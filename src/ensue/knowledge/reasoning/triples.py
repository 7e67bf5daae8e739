"""Triples, found by predicate, by subject and by object.

In come triples in any order; a rule then asks for the pairs of a predicate, the objects of a
subject, the subjects of an object, or the members of an RDF list. A list that is broken (no first
member, no end, or a circle) is no list, and the rule that asks for it does not apply.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set

from rdflib.term import Node

from ensue.knowledge.reasoning.vocabulary import FIRST, NIL, REST, SAME, TYPE, Triple

_NONE: frozenset[Node] = frozenset()


class Triples:
    """A set of triples that grows."""

    def __init__(self, triples: Iterable[Triple] = ()) -> None:
        self._forth: dict[Node, dict[Node, set[Node]]] = defaultdict(lambda: defaultdict(set))
        self._back: dict[Node, dict[Node, set[Node]]] = defaultdict(lambda: defaultdict(set))
        self._interned: dict[Node, Node] = {}
        self._size = 0
        self.add_all(triples)

    def add_all(self, triples: Iterable[Triple]) -> None:
        intern = self._interned.setdefault
        for triple in triples:
            # Equal nodes are compared in Python, one node is told by its identity.
            subject, predicate, value = (intern(node, node) for node in triple)
            objects = self._forth[predicate][subject]
            if value not in objects:
                objects.add(value)
                self._back[predicate][value].add(subject)
                self._size += 1

    def __contains__(self, triple: Triple) -> bool:
        subject, predicate, value = triple
        return value in self.objects(subject, predicate)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Triple]:
        for predicate in self._forth:
            for subject, value in self.pairs(predicate):
                yield subject, predicate, value

    @property
    def nodes(self) -> Iterable[Node]:
        """Everything that stands in a triple, once."""
        return self._interned

    @property
    def predicates(self) -> list[Node]:
        return list(self._forth)

    def pairs(self, predicate: Node) -> Iterator[tuple[Node, Node]]:
        """Subject and object of every triple of a predicate."""
        for subject, objects in self.by_subject(predicate).items():
            for value in objects:
                yield subject, value

    def by_subject(self, predicate: Node) -> Mapping[Node, Set[Node]]:
        return self._forth.get(predicate, {})

    def objects(self, subject: Node, predicate: Node) -> Set[Node]:
        return self.by_subject(predicate).get(subject, _NONE)

    def subjects(self, predicate: Node, value: Node) -> Set[Node]:
        return self._back[predicate].get(value, _NONE) if predicate in self._back else _NONE

    def members(self, of_class: Node) -> Set[Node]:
        return self.subjects(TYPE, of_class)

    def lists(self, predicate: Node) -> Iterator[tuple[Node, list[Node]]]:
        """Subject and members of every well-formed list that a predicate points at."""
        for subject, head in self.pairs(predicate):
            members = self._list(head)
            if members is not None:
                yield subject, members

    def _list(self, head: Node) -> list[Node] | None:
        members: list[Node] = []
        seen = set()
        while head != NIL:
            # What is the same stands in one place of a list together, and any of it will do.
            firsts, rests = self.objects(head, FIRST), self.objects(head, REST)
            first = min(firsts, default=NIL, key=str)
            if head in seen or not firsts or len(rests) != 1:
                return None
            if not firsts <= {first, *self.objects(first, SAME)}:
                return None
            seen.add(head)
            members.append(first)
            (head,) = rests
        return members
