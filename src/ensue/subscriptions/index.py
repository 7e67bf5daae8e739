"""An index of subscriptions: names, each with a filter, and which of them an event concerns.

In come filters under names; out go, for an event, the names whose filters match, in the order in
which they were added. How an event finds its filters is the matter of `ensue.lang.matching`; here
names get numbers, and terms that ask a history or an ontology are refused where there is none. An
ontology that has changed is noticed at the next event, and the filters that ask it wait anew.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from ensue.engine.inputs import EventLike, as_event
from ensue.errors import UsageError
from ensue.lang.building.values import Value
from ensue.lang.expressions.asking import Ontology, TemporalStore, as_it_stands
from ensue.lang.expressions.terms import ValueTest
from ensue.lang.expressions.tree import ConceptTerm, OntologyProperty, TemporalTerm
from ensue.lang.matching.index import PredicateIndex
from ensue.subscriptions.concepts import concepts_in, terms_in
from ensue.subscriptions.filter import Filter, as_filter


class Index:
    """`history` and `ontology` answer the filters that ask them."""

    called: ClassVar = "index"
    made_by: ClassVar = "Index({}=...)"
    """How it is made with a history or an ontology, for advice; one inside of something else is
    made by that."""

    def __init__(
        self, *, history: TemporalStore | None = None, ontology: Ontology | None = None
    ) -> None:
        self._predicates = PredicateIndex(history, as_it_stands(ontology))
        self._ontology = ontology
        standing = self._predicates.ontology
        self._generation = None if standing is None else standing.generation
        self._numbers: dict[Hashable, int] = {}
        self._names: list[Hashable] = []
        self._order: list[int] = []
        self._free: list[int] = []
        self._is_reordered = False
        """Whether numbers have been used again, so that their order is not that of the names."""
        self._added = 0
        self._asking: dict[int, Filter] = {}
        self._tests: dict[int, list[ValueTest]] = {}
        self._asks_history = history is not None

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, name: Hashable) -> bool:
        return name in self._numbers

    def __iter__(self) -> Iterator[Hashable]:
        """The names, in the order in which they were added."""
        return iter(self._numbers)

    def add(self, name: Hashable, filtered: Filter | Value | str) -> None:
        """Add a filter under a name that is not taken."""
        if name in self._numbers:
            raise UsageError(f"`{name}` is in the index already: remove it first")
        filter_ = as_filter(filtered)
        asks_ontology = self._check_terms(filter_)
        number = self._number(name)
        self._predicates.add(number, filter_.expression)
        if asks_ontology:
            self._asking[number] = filter_
            self._tests[number] = self._bound(filter_)

    def _number(self, name: Hashable) -> int:
        if self._free:
            number = self._free.pop()
            self._names[number], self._order[number] = name, self._added
            self._is_reordered = True
        else:
            number = len(self._names)
            self._names.append(name)
            self._order.append(self._added)
        self._added += 1
        self._numbers[name] = number
        return number

    def remove(self, name: Hashable) -> None:
        """Remove the filter of a name."""
        number = self._numbers.pop(name, None)
        if number is None:
            raise UsageError(f"`{name}` is not in the index")
        self._predicates.remove(number)
        self._asking.pop(number, None)
        self._tests.pop(number, None)
        self._names[number] = None
        self._free.append(number)

    def match(self, event: EventLike) -> list[Any]:
        """The names whose filters match an event, in the order in which they were added."""
        if self._ontology is not None and self._ontology.generation != self._generation:
            self._wait_anew()
        found = self._predicates.match(as_event(event))
        found.sort(key=self._order.__getitem__ if self._is_reordered else None)
        return [self._names[number] for number in found]

    def match_columns(self, table: Any) -> list[list[Any]]:
        """The names for each row of an Arrow table, or for each of a sequence of events."""
        from ensue.lang.matching.columns import match_columns

        if self._ontology is not None and self._ontology.generation != self._generation:
            self._wait_anew()
        given = [as_event(each) for each in table] if isinstance(table, Sequence) else table
        matched: list[list[Any]] = []
        for positions, numbers, count in match_columns(self._predicates, given):
            if self._is_reordered:
                numbers = numbers[np.lexsort((np.array(self._order)[numbers], positions))]
            named = list(map(self._names.__getitem__, numbers.tolist()))
            ends = np.searchsorted(positions, np.arange(count + 1)).tolist()
            matched += [named[begin:end] for begin, end in pairwise(ends)]
        return matched

    def _wait_anew(self) -> None:
        """Codes of concepts may have changed, and with them where filters wait."""
        assert self._ontology is not None
        self._predicates.ontology = standing = as_it_stands(self._ontology)
        assert standing is not None
        self._generation = standing.generation
        for number, each in self._asking.items():
            self._predicates.remove(number)
            self._predicates.add(number, each.expression)

    def _bound(self, filter_: Filter) -> list[ValueTest]:
        """Tests of the concept terms: an ontology does not give up what they name."""
        bind = getattr(self._ontology, "bound", None)
        terms = [each for each in terms_in(filter_.expression) if isinstance(each, ConceptTerm)]
        return [] if bind is None else [bind(each) for each in terms]

    def _check_terms(self, filter_: Filter) -> bool:
        """Refuse what nothing can answer; tell whether the filter asks the ontology."""
        asks = False
        for term in terms_in(filter_.expression):
            if isinstance(term, TemporalTerm) and not self._asks_history:
                raise UsageError(
                    f"`{filter_}` asks a history, and this {self.called} has none: "
                    f"make it with `{self.made_by.format('history')}`"
                )
            if isinstance(term, ConceptTerm) or concepts_in(term):
                asks = True
                self._check_concepts(filter_, term)
        return asks

    def _check_concepts(self, filter_: Filter, term: TemporalTerm | ConceptTerm) -> None:
        ontology = self._ontology
        if ontology is None:
            raise UsageError(
                f"`{filter_}` asks an ontology, and this {self.called} has none: "
                f"make it with `{self.made_by.format('ontology')}`"
            )
        for text in concepts_in(term):
            if ontology.code(text) is None:
                raise UsageError(f"there is no concept `{text}`; {ontology.advice(text)}")
        if isinstance(term, OntologyProperty) and not ontology.knows_property(term.property):
            raise UsageError(
                f"there is no property `{term.property}`; {ontology.advice(term.property)}"
            )
