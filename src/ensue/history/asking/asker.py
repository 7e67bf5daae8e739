"""What a filter with temporal terms means, over the publications of a store.

In come a filter and a publication X; out goes whether X matches: surely, or possibly where times
are uncertain. Each temporal term looks for stored publications Y, X left out, by a window of time
(`windows`) and then asks its own filter of those; there Y takes the place of X. Stores narrow the
search by indexes and may give too much; what counts is decided here. A reference that X does not
have (the end of an open interval) makes the whole filter fail, also under NOT.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from ensue.events.event import Event
from ensue.history.asking.bounding import bound
from ensue.history.asking.intervals import compares
from ensue.history.asking.latest import Latest, LatestByFilter
from ensue.history.asking.prepared import TEMPORAL, Filters, Prepared
from ensue.history.asking.references import Instant, plain_value, value_of
from ensue.history.asking.windows import Search, search_of
from ensue.history.narrowing import MIRRORED, Clause, Clauses, compared
from ensue.history.publication import Interval, Publication
from ensue.history.store import FOREVER, State, Store, Stored, Window
from ensue.lang.expressions.asking import Ontology, as_it_stands, concept_holds
from ensue.lang.expressions.comparing import stands_in
from ensue.lang.expressions.evaluation import evaluate, holds
from ensue.lang.expressions.scopes import MISSING, EventScope
from ensue.lang.expressions.terms import Concept
from ensue.lang.expressions.tree import (
    Compared,
    ConceptTerm,
    Expression,
    IsA,
    Name,
    SameAs,
    Subsumes,
    TemporalTerm,
)

FEW: Final = 12
"""Publications that are looked at first: often one of them matches."""
FIRST_PAGE: Final = 120
"""As many more before an index is chosen."""
LARGEST_PAGE: Final = 4096
COUNTED: Final = 4096
"""How far publications are counted to choose between an index of times and one of keys."""
MOST_FORKS: Final = 10
"""Uncertain terms of one filter that are weighed against each other; with more, nothing is sure."""

_CONCEPT_TESTS: Final[dict[str, Callable[[Name, Concept], ConceptTerm]]] = {
    "IS_A": IsA,
    "SUBSUMES": Subsumes,
    "SAME_AS": SameAs,
}


class Subject(NamedTuple):
    """The publication that a filter is asked about."""

    event: Event
    times: Interval
    key: bytes


class Asker:
    """Answers filters over one store."""

    def __init__(self, store: Store, ontology: Ontology | None = None) -> None:
        self._store = store
        self._live = ontology
        self._ontology = as_it_stands(ontology)
        self._filters = Filters()
        self._latest = LatestByFilter(store, self._is_match)
        self._state: State | None = None
        self._generation = None if self._ontology is None else self._ontology.generation

    def matches(self, expression: Expression, x: Publication, possibly: bool) -> bool:
        """Whether a publication matches. To be called inside of `reading`."""
        self.refresh()
        prepared = self._filters.of(expression)
        return self._holds(prepared, Subject(x.event, x.times, x.key), possibly)

    def is_match(self, expression: Expression, row: Stored, possibly: bool = False) -> bool:
        """Whether a stored publication matches. After `refresh`, inside of `reading`."""
        return self._is_match(self._filters.of(expression), row, possibly)

    def holds(self, term: TemporalTerm, x: Publication) -> bool | None:
        """Whether a single term holds, surely. To be called inside of `reading`."""
        self.refresh()
        return self.ask(term, Subject(x.event, x.times, x.key))

    def matching(self, expression: Expression, clause: Clause, window: Window) -> list[Stored]:
        """What matches a filter, found by one of its clauses. After `refresh`."""
        found = {
            row.seq: row for row in self._posted(clause, window) if self.is_match(expression, row)
        }
        return list(found.values())

    def refresh(self) -> None:
        """Give up what is remembered of publications that have changed since."""
        state = self._store.state()
        seen, self._state = self._state, state
        if seen is not None and state.version != seen.version:
            self._filters.forget_temporal()
            if state.removed > seen.version:
                self._latest.clear()
            elif state.floor > seen.floor:
                self._latest.raise_floor(state.floor)
            if state.revised > seen.version:
                rows = self._store.revisions(seen.version)
                self._filters.revise(row.seq for row in rows)
                self._latest.revise(rows)
        standing = as_it_stands(self._live)
        if standing is not None and standing.generation != self._generation:
            self._ontology, self._generation = standing, standing.generation
            self._filters.forget_concepts()
            self._latest.clear()

    # --- one filter, one publication ------------------------------------------------------------

    def _is_match(self, prepared: Prepared, row: Stored, possibly: bool) -> bool:
        known = self._filters.answer(prepared, row.seq, possibly)
        if known is not None:
            return known
        subject = Subject(row.event, row.times, row.key)
        answer = self._holds(prepared, subject, possibly)
        self._filters.keep(prepared, row.seq, possibly, answer)
        return answer

    def _holds(self, prepared: Prepared, subject: Subject, possibly: bool) -> bool:
        scope = _Scope(self, subject)
        if not prepared.is_temporal:
            return holds(prepared.expression, scope)
        for each in prepared.cheap:
            outcome = evaluate(each, scope)
            if outcome.errors or outcome.value is False:
                return False
        if self._is_certain(subject):
            return holds(prepared.expression, scope)
        return self._weigh(prepared.expression, subject, possibly, {})

    def _is_certain(self, subject: Subject) -> bool:
        assert self._state is not None, "refreshed before anything is asked"
        return subject.times.is_certain and not self._state.uncertain

    def _weigh(
        self, expression: Expression, subject: Subject, possibly: bool, assumed: dict[int, bool]
    ) -> bool:
        """Whether the filter holds for some, or for all, ways in which uncertain terms may be."""
        try:
            return holds(expression, _WeighingScope(self, subject, assumed))
        except _ForkError as fork:
            if len(assumed) >= MOST_FORKS:
                return possibly
            ways = (
                self._weigh(expression, subject, possibly, {**assumed, fork.term: answer})
                for answer in (True, False)
            )
            return any(ways) if possibly else all(ways)

    # --- terms ----------------------------------------------------------------------------------

    def ask(self, term: TemporalTerm, subject: Subject, possibly: bool = False) -> bool | None:
        """Whether a temporal term holds; None if X has not what the term refers to."""
        if isinstance(term, Compared):
            return self._compared(term, subject, possibly)
        search = search_of(term, subject.times, possibly)
        if search is None:
            return None
        return self._are_enough(self._filters.of(term.filter), search, subject, possibly)

    def ask_concepts(self, term: ConceptTerm, event: Event) -> bool | None:
        if self._ontology is None:
            return None
        return concept_holds(term, EventScope(event).lookup(term.name.parts), self._ontology)

    def _are_enough(
        self, prepared: Prepared, search: Search, subject: Subject, possibly: bool
    ) -> bool:
        found: set[int] = set()
        for row in self._candidates(search.window, prepared.clauses):
            if row.key == subject.key or row.seq in found or not search.admits(row.times):
                continue
            if self._is_match(prepared, row, possibly):
                found.add(row.seq)
                if len(found) >= search.times:
                    return True
        return False

    def _candidates(self, window: Window, clauses: Clauses) -> Iterator[Stored]:
        """Publications of a window that may meet the clauses. Some may come twice."""
        store = self._store
        rows = store.page(window, None, FEW)
        yield from rows
        if is_more := len(rows) == FEW:
            rows = store.page(window, rows[-1], FIRST_PAGE)
            yield from rows
            is_more = len(rows) == FIRST_PAGE
        if is_more:
            clause = self._best(window, clauses)
            if clause is None:
                yield from self._pages(window, rows[-1], clauses)
            else:
                yield from self._posted(clause, window)
        assert self._state is not None, "refreshed before anything is asked"
        if self._state.uncertain and window.kind != "arrived":
            yield from self._pages(Window("uncertain"), None, ())

    def best(self, expression: Expression, window: Window) -> Clause | None:
        """As `_best`, of a filter."""
        return self._best(window, self._filters.of(expression).clauses)

    def _best(self, window: Window, clauses: Clauses) -> Clause | None:
        """The clause that fewer publications meet than lie in the window, if there is one."""
        fewest, best = self._store.count_window(window, COUNTED), None
        for clause in clauses:
            count = self._store.count_posted(clause, fewest)
            if count < fewest:
                fewest, best = count, clause
        return best

    def _pages(self, window: Window, after: Stored | None, clauses: Clauses) -> Iterator[Stored]:
        # What meets clauses is likely to match: the first few may be all that is needed.
        limit = FEW if clauses else FIRST_PAGE * 4
        while True:
            rows = self._store.page(window, after, limit, clauses)
            yield from _bounded(rows)
            if len(rows) < limit:
                return
            after, limit = rows[-1], min(limit * 4, LARGEST_PAGE)

    def _posted(self, clause: Clause, window: Window) -> Iterator[Stored]:
        limit, before = FIRST_PAGE, FOREVER
        while rows := self._store.posted(clause, window, before, limit):
            yield from _bounded(rows)
            before, limit = rows[-1].seq, min(limit * 4, LARGEST_PAGE)

    # --- FILTER ---------------------------------------------------------------------------------

    def _compared(self, term: Compared, subject: Subject, possibly: bool) -> bool | None:
        value = value_of(term.name, subject.event, subject.times)
        if value is MISSING:
            return None
        prepared = self._filters.of(term.filter)
        if term.limit is None:
            return self._compared_with_all(term, prepared, value, subject, possibly)
        if prepared.is_temporal or not self._is_certain(subject) or isinstance(value, Instant):
            return self._compared_with_latest(term, prepared, value, subject, possibly)
        latest: Latest = self._latest.of(prepared, term.limit)
        if term.operator in MIRRORED:
            quick = latest.compare(term.operator, value, term.name, term.limit, subject.key)
            if quick is not None:
                return quick
        values = latest.values(term.name, term.limit, subject.key)
        return any(self._stands(term.operator, value, each, possibly) for each in values)

    def _compared_with_all(
        self, term: Compared, prepared: Prepared, value: Any, subject: Subject, possibly: bool
    ) -> bool:
        clauses = prepared.clauses
        if term.operator in MIRRORED and not isinstance(value, Instant):
            clauses = compared(term.name.parts, MIRRORED[term.operator], value) + clauses
        return any(
            row.key != subject.key
            and self._stands(
                term.operator, value, value_of(term.name, row.event, row.times), possibly
            )
            and self._is_match(prepared, row, possibly)
            for row in self._candidates(Window("arrived"), clauses)
        )

    def _compared_with_latest(
        self, term: Compared, prepared: Prepared, value: Any, subject: Subject, possibly: bool
    ) -> bool:
        """The latest by arrival, one by one, for filters whose answers change.

        A publication is surely among the latest if few enough later ones possibly match, and
        possibly if few enough surely do.
        """
        assert term.limit is not None, "without a limit all are compared"
        later = 0
        for row in self._newest(prepared.clauses):
            if later >= term.limit:
                return False
            if row.key == subject.key:
                continue
            if self._is_match(prepared, row, possibly) and self._stands(
                term.operator, value, value_of(term.name, row.event, row.times), possibly
            ):
                return True
            later += self._is_match(prepared, row, not possibly)
        return False

    def _newest(self, clauses: Clauses) -> Iterator[Stored]:
        window = Window("arrived")
        clause = self._best(window, clauses)
        return self._pages(window, None, ()) if clause is None else self._posted(clause, window)

    def _stands(self, operator: str, left: Any, right: Any, possibly: bool) -> bool:
        if right is MISSING:
            return False
        if operator not in MIRRORED:
            return self._stands_as_concept(operator, left, right)
        if isinstance(left, Instant) and isinstance(right, Instant):
            return compares(operator, left, right, possibly)
        return stands_in(operator, plain_value(left), plain_value(right))

    def _stands_as_concept(self, operator: str, left: Any, right: Any) -> bool:
        if self._ontology is None or not isinstance(right, str):
            return False
        test = _CONCEPT_TESTS[operator](Name(()), Concept(right))
        return concept_holds(test, left, self._ontology)


def _bounded(rows: Sequence[Stored]) -> Iterator[Stored]:
    look = bound()
    for row in rows:
        look()
        yield row


# --- scopes -------------------------------------------------------------------------------------


class _Scope:
    """A publication to look names up in, and to ask terms about."""

    __slots__ = ("_asker", "_names", "_subject")

    def __init__(self, asker: Asker, subject: Subject) -> None:
        self._asker = asker
        self._subject = subject
        self._names = EventScope(subject.event)

    def lookup(self, parts: tuple[str, ...]) -> Any:
        return self._names.lookup(parts)

    def answer(self, term: TemporalTerm | ConceptTerm) -> bool | None:
        if isinstance(term, TEMPORAL):
            return self._asker.ask(term, self._subject)
        return self._asker.ask_concepts(term, self._subject.event)


class _ForkError(Exception):
    """A term that may hold or not; `term` is the place of the object that stands for it."""

    def __init__(self, term: int) -> None:
        self.term = term
        super().__init__(term)


class _WeighingScope(_Scope):
    """As `_Scope`; where a term is uncertain, its answer is one that is assumed."""

    __slots__ = ("_assumed",)

    def __init__(self, asker: Asker, subject: Subject, assumed: dict[int, bool]) -> None:
        super().__init__(asker, subject)
        self._assumed = assumed

    def answer(self, term: TemporalTerm | ConceptTerm) -> bool | None:
        if not isinstance(term, TEMPORAL):
            return super().answer(term)
        if (assumed := self._assumed.get(id(term))) is not None:
            return assumed
        surely = self._asker.ask(term, self._subject, possibly=False)
        if surely or surely is None:
            return surely
        if not self._asker.ask(term, self._subject, possibly=True):
            return False
        raise _ForkError(id(term))
