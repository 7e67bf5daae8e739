"""Covering: whether a filter matches whatever another one does.

`covers(f, g)` looks for a publication that `g` matches and `f` does not. The atoms of both filters
are grouped by the name that they ask about, and each group has all that it can come to
(`behaviours`, a superset). If no combination makes `g` true and `f` not, there is no such
publication: True. If a combination is found whose values are known, the publication is made of them
and both filters are asked: False. Otherwise nothing is claimed.

Atoms of other forms (functions, arithmetic, one name against another) may come to anything, each by
itself. Temporal terms are true or false; one implies another as the paper says: the same operator,
with an inner filter that covers the other's, and a window that is no shorter. For False, terms are
asked of an empty history. Concepts imply each other as the ontology says.

Publications are those of JSON, and of columns, whose doubles may be NaN or infinite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from random import Random
from typing import Any

from ensue.events.event import Event
from ensue.events.times import microseconds_of
from ensue.lang.building.values import Value
from ensue.lang.expressions.asking import AskingScope, Ontology
from ensue.lang.expressions.evaluation import holds
from ensue.lang.expressions.names import names_in
from ensue.lang.expressions.scopes import MISSING
from ensue.lang.expressions.tree import Compared, ConceptTerm, Expression, Related, TemporalTerm
from ensue.lang.matching.outcomes import Signed
from ensue.lang.matching.tests import NEVER, Parts, View, test_of
from ensue.subscriptions.behaviours import (
    Behaviour,
    TooManyBehavioursError,
    behaviours_of,
    can_have,
    is_unknown,
)
from ensue.subscriptions.filter import Filter, as_filter
from ensue.subscriptions.implying import concept_implies, plainly_implies, term_implies
from ensue.subscriptions.questions import (
    ANYTHING,
    ERROR,
    FALSE,
    TRUE,
    Atom,
    Atoms,
    Node,
    node_of,
    possible,
)

MOST_STEPS = 60_000
MOST_TERMS = 6
SAMPLES = 200


def covers(
    general: Filter | Value | str,
    special: Filter | Value | str,
    *,
    ontology: Ontology | None = None,
) -> bool | None:
    """True: whatever `special` matches, `general` matches. False: some publication shows that not.

    None: it cannot be told, or not with reasonable effort.
    """
    return _covers(as_filter(general).expression, as_filter(special).expression, ontology)


def _covers(f: Expression, g: Expression, ontology: Ontology | None) -> bool | None:
    if f == g or plainly_implies(g, f):
        return True
    question = _Question(f, g, ontology)
    if question.is_impossible():
        return True
    return None if question.witness() is None else False


def counterexample(
    general: Filter | Value | str,
    special: Filter | Value | str,
    *,
    ontology: Ontology | None = None,
) -> Event | None:
    """A publication that `special` matches and `general` does not, with nothing stored before it.

    None where there is none, or none was found.
    """
    f, g = as_filter(general).expression, as_filter(special).expression
    return _Question(f, g, ontology).witness()


class EmptyHistory:
    """A history in which nothing was published."""

    def holds(self, term: TemporalTerm, publication: Event) -> bool:  # noqa: ARG002
        return False


@dataclass
class AtomGroup:
    """Atoms that are decided together, by their numbers, and what they can come to.

    A behaviour goes with the value of `name` that shows it, or with what `is_unknown` knows.
    """

    atoms: tuple[int, ...]
    behaviours: dict[Behaviour, Any]
    name: Parts | None = None


class _Question:
    def __init__(self, f: Expression, g: Expression, ontology: Ontology | None) -> None:
        self._f, self._g, self._ontology = f, g, ontology
        atoms = Atoms()
        # What `g` asks decides first whether a combination is of interest.
        self._wanted = node_of(g, atoms)
        self._refused = node_of(f, atoms)
        self._atoms = atoms.all
        self._groups = list(self._grouped())

    # --- groups ----------------------------------------------------------------------------------

    def _grouped(self) -> Iterator[AtomGroup]:
        by_name: dict[Parts, list[int]] = {}
        temporal, concepts, others = [], [], []
        for number, atom in enumerate(self._atoms):
            if isinstance(atom.expression, TemporalTerm):
                temporal.append(number)
            elif isinstance(atom.expression, ConceptTerm):
                concepts.append(number)
            elif (name := _name_of(atom)) is not None:
                by_name.setdefault(name, []).append(number)
            else:
                others.append(number)
        for name, numbers in by_name.items():
            yield from self._of_name(name, numbers)
        yield from self._of_terms(temporal, self._temporal_implies, None)
        yield from self._of_terms(concepts, self._concept_implies, _UNKNOWN)
        for number in others:
            yield AtomGroup((number,), dict.fromkeys([(TRUE,), (FALSE,), (ERROR,)], _UNKNOWN))

    def _of_name(self, name: Parts, numbers: Sequence[int]) -> Iterator[AtomGroup]:
        atoms = [self._atoms[each] for each in numbers]
        try:
            yield AtomGroup(tuple(numbers), behaviours_of(name, atoms), name)
        except TooManyBehavioursError:
            for number in numbers:
                yield AtomGroup((number,), dict.fromkeys([(TRUE,), (FALSE,), (ERROR,)], _UNKNOWN))

    def _of_terms(
        self, numbers: Sequence[int], implies: Callable[[int, int], bool], shows: Any
    ) -> Iterator[AtomGroup]:
        """Terms of which one may imply another; `shows` goes with all of them being false.

        Where a publication lacks what terms refer to, all of these are in error.
        """
        if not numbers:
            return
        if len(numbers) > MOST_TERMS:
            for number in numbers:
                yield AtomGroup((number,), {(FALSE,): shows, (TRUE,): _UNKNOWN, (ERROR,): _UNKNOWN})
            return
        referred = [_referred(self._atoms[number].expression) for number in numbers]
        lacking = [each for each in dict.fromkeys(referred) if each is not None]
        implied = [
            (i, j)
            for i, one in enumerate(numbers)
            for j, other in enumerate(numbers)
            if i != j and implies(one, other)
        ]
        found: dict[Behaviour, Any] = {}
        for count in range(len(lacking) + 1):
            for missing in combinations(lacking, count):
                can_be = [(ERROR,) if each in missing else (FALSE, TRUE) for each in referred]
                for ways in product(*can_be):
                    if not any(ways[i] == TRUE and ways[j] == FALSE for i, j in implied):
                        found[ways] = shows if set(ways) == {FALSE} else _UNKNOWN
        yield AtomGroup(tuple(numbers), found)

    def _temporal_implies(self, one: int, other: int) -> bool:
        return term_implies(
            self._atoms[one].expression,
            self._atoms[other].expression,
            lambda general, special: _covers(general, special, self._ontology) is True,
        )

    def _concept_implies(self, one: int, other: int) -> bool:
        return concept_implies(
            self._atoms[one].expression, self._atoms[other].expression, self._ontology
        )

    # --- search ----------------------------------------------------------------------------------

    def is_impossible(self) -> bool:
        """Whether no combination at all makes `g` true and `f` not."""
        search = _Search(self._groups, len(self._atoms), self._wanted, self._refused)
        return next(search.found(), None) is None and not search.gave_up

    def witness(self) -> Event | None:
        """A publication that `g` matches and `f` does not, if one was found."""
        shown = [_only_shown(each) for each in self._groups]
        known = [each for each in shown if each.behaviours]
        if len(known) == len(shown):
            search = _Search(known, len(self._atoms), self._wanted, self._refused)
            for values in search.found():
                if (event := self._verified(values)) is not None:
                    return event
        tried = map(self._verified, self._samples())
        return next((event for event in tried if event is not None), None)

    def _samples(self) -> Iterator[dict[Parts, Any]]:
        """Values put together at random, for what only evaluation knows."""
        choices: dict[Parts, list[Any]] = {}
        for group in self._groups:
            if group.name is not None:
                values = [each for each in group.behaviours.values() if not is_unknown(each)]
                choices[group.name] = values
        for atom in self._atoms:
            for name in names_in(atom.expression):
                choices.setdefault(name, [MISSING, 0, 1, 2, -1, 0.5, "", "a", True])
        random = Random(1)
        for _ in range(SAMPLES if choices else 1):
            yield {name: random.choice(values) for name, values in choices.items() if values}

    def _verified(self, values: dict[Parts, Any]) -> Event | None:
        """The publication with these values, if both filters say what they should."""
        event = _publication(values)
        if event is None:
            return None
        scope = AskingScope(event, EmptyHistory(), self._ontology)
        return event if holds(self._g, scope) and not holds(self._f, scope) else None


class _Search:
    """Goes through combinations of behaviours, group by group, while one may be of interest."""

    def __init__(
        self, groups: Sequence[AtomGroup], atoms: int, wanted: Node, refused: Node
    ) -> None:
        self._groups = sorted(groups, key=lambda each: len(each.behaviours))
        self._known = [ANYTHING] * atoms
        for group in groups:
            for place, number in enumerate(group.atoms):
                outcomes = {each[place] for each in group.behaviours}
                self._known[number] = sum(outcomes)
        self._wanted = wanted
        self._refused = refused
        self._steps = 0
        self.gave_up = False

    def found(self, at: int = 0) -> Iterator[dict[Parts, Any]]:
        """The values of names in each combination that makes `g` true and `f` not."""
        self._steps += 1
        if self._steps > MOST_STEPS:
            self.gave_up = True
            return
        if not possible(self._wanted, self._known) & TRUE:
            return
        if possible(self._refused, self._known) == TRUE:
            return
        if at == len(self._groups):
            yield {}
            return
        group = self._groups[at]
        before = [self._known[each] for each in group.atoms]
        for behaviour, value in group.behaviours.items():
            for number, outcome in zip(group.atoms, behaviour, strict=True):
                self._known[number] = outcome
            for others in self.found(at + 1):
                yield others if group.name is None else {**others, group.name: value}
        for number, outcome in zip(group.atoms, before, strict=True):
            self._known[number] = outcome


def _referred(term: Any) -> Parts | None:
    """What a publication may lack and the term refers to: a name, or the end of its interval."""
    if isinstance(term, ConceptTerm | Compared):
        return term.name.parts
    is_of_end = isinstance(term, Related) or term.reference == "end"
    return ("the end of the interval",) if is_of_end else None


class _Unknown:
    pass


_UNKNOWN = _Unknown()


def _only_shown(group: AtomGroup) -> AtomGroup:
    shown = {
        behaviour: value
        for behaviour, value in group.behaviours.items()
        if value is not _UNKNOWN and not is_unknown(value)
    }
    return AtomGroup(group.atoms, shown, group.name)


def _name_of(atom: Atom) -> Parts | None:
    """The name that an atom compares with constants, if that is all it does."""
    if atom.whole:
        return None
    test = test_of(Signed(atom.expression, True))
    if test == NEVER:
        return next(names_in(atom.expression))
    if test is None or isinstance(test, str) or test.view is View.CONCEPT:
        return None
    return test.name


def _publication(values: dict[Parts, Any]) -> Event | None:
    """A publication with these values; None where no publication has all of them."""
    core: dict[str, Any] = {"id": "1", "source": "s", "type": "t", "time": 0}
    data: dict[str, Any] = {}
    for parts, value in sorted(values.items(), key=lambda each: len(each[0])):
        if not can_have(parts, value):
            continue
        if parts == ("time",):
            core["time"] = microseconds_of(value)
        elif len(parts) == 1 and parts[0] in core:
            core[parts[0]] = value
        elif parts == ("specversion",) or value is MISSING:
            continue
        else:
            inner = data
            for part in parts[:-1]:
                inner = inner.setdefault(part, {})
                if not isinstance(inner, dict):
                    return None
            inner[parts[-1]] = value
    return Event(data=data or None, **core)
