"""Filters to correlation machines.

Every subexpression has a state that says *complete*. A port is completed by its event if what
stands before it (`;`) was complete when the event came; the operators complete from their parts by
internal transitions. Nothing is cleared on the way: a later event may complete a part again, with a
later start or a later binding. A branch that is complete fires, and what it remembers is cleared.

A label is judged on all that is remembered, not on its stretch: below the right side of a `;` its
subexpression is watched a second time, from the beginning of the memory.

A label that is ever aborted has two marks. While it is *alive* its ports read; while it is
*aborted* it counts as complete for `+` and `;`, and is nothing to `|`. What is complete only
because of it is derived anew when it is revived.

One thing this form cannot say: a label aborted to the left of a `;` changes which earlier events
count for the right side, and needs them back. `needs_memory` tells.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ensue.lang.printer import print_filter
from ensue.lang.syntax import (
    Both,
    Change,
    Either,
    Filter,
    FilterCorrelation,
    Labelled,
    PortRef,
    Then,
    Times,
)
from ensue.machine.growth import Growth
from ensue.machine.model import Bind, Branch, Fire, Machine, PortAtom, State, Switch


def changed_labels(correlation: FilterCorrelation) -> frozenset[str]:
    """The labels that some statement aborts, revives or toggles."""
    statements = [*correlation.initially, *(s for c in correlation.cases for s in c.statements)]
    changes = [statement for statement in statements if isinstance(statement, Change)]
    return frozenset(label.name for change in changes for label in change.labels)


def needs_memory(correlation: FilterCorrelation) -> str | None:
    """Why this correlation cannot be run without remembering its events, if it cannot."""
    changed = changed_labels(correlation)
    for branch in correlation.branches:
        for label in _left_of_then(branch):
            if label in changed:
                return f"label `{label}` is aborted to the left of a `;`"
    if correlation.clauses.within and correlation.clauses.bind == "first":
        return "`bind first` within a window asks for the first event that is still inside"
    return None


def machine_of_filter(correlation: FilterCorrelation) -> Machine:
    return _FilterMachine(correlation).machine()


@dataclass(frozen=True, slots=True)
class Node:
    """A subexpression: complete, left out (if it can be), and every state that belongs to it."""

    complete: State
    left_out: State | None
    inside: frozenset[State]
    derived: frozenset[State]


@dataclass(frozen=True, slots=True)
class Around:
    """Where a subexpression stands: what must be complete before it, and which labels are alive."""

    before: State
    alive: tuple[State, ...]
    bound: bool


class _FilterMachine:
    def __init__(self, correlation: FilterCorrelation) -> None:
        self._correlation = correlation
        self._growth = Growth()
        self._origin = self._growth.state("origin")
        self._first = correlation.clauses.bind == "first"
        self._alive = {
            label: self._growth.state(f"{label} alive")
            for label in sorted(changed_labels(correlation))
        }
        self._aborted = {label: self._growth.state(f"{label} aborted") for label in self._alive}
        self._contents: dict[str, set[State]] = {label: set() for label in self._alive}
        self._above: dict[str, set[State]] = {label: set() for label in self._alive}
        self._labels: list[tuple[str, State]] = []
        self._places: list[tuple[int, str, State]] = []
        self._place_count = 0
        self._left_out_states: set[State] = set()

    def machine(self) -> Machine:
        built = [self._branch(branch) for branch in self._correlation.branches]
        for number, (branch, inside) in enumerate(built):
            self._growth.add([[branch.root]], clear=inside, effect=Fire(number))
        within = self._correlation.clauses.within
        marks = {*self._alive.values(), *self._aborted.values(), *self._left_out_states}
        return Machine(
            tuple(self._growth.names),
            frozenset({self._origin, *self._alive.values()}),
            tuple(self._growth.transitions),
            tuple(self._growth.atoms),
            tuple(branch for branch, _ in built),
            tuple(self._switches()),
            within.microseconds if within else None,
            frozenset({self._origin, *marks}),
        )

    def _branch(self, x: Filter) -> tuple[Branch, frozenset[State]]:
        self._labels, self._places = [], []
        outside = Around(self._origin, (), bound=True)
        root = self._node(x, outside)
        watched = [
            (label, self._watch(body, around)) for label, body, around in self._watches(x, outside)
        ]
        labels = [*self._labels, *((label, node.complete) for label, node in watched)]
        inside = root.inside.union(*(node.inside for _, node in watched))
        return Branch(root.complete, tuple(labels), tuple(self._places)), inside

    # --- subexpressions -----------------------------------------------------------------------

    def _node(self, x: Filter, around: Around) -> Node:
        match x:
            case PortRef(name):
                return self._port(name, around)
            case Labelled(label, body):
                return self._labelled(label, body, around)
            case Both(parts):
                nodes = [self._node(part, around) for part in parts]
                each = [_present(node.complete, node.left_out) for node in nodes]
                one = [node.complete for node in nodes]
                return self._joined(x, nodes, [*each, one])
            case Either(parts):
                nodes = [self._node(part, around) for part in parts]
                return self._joined(x, nodes, [[node.complete for node in nodes]])
            case Then(parts):
                return self._then(x, parts, around)
            case Times(body, count):
                return self._then(x, (body,) * count, around)

    def _port(self, name: str, around: Around) -> Node:
        complete = self._growth.state(name)
        effect = None
        if around.bound:
            effect = Bind(self._place_count, self._first)
            self._places.append((self._place_count, name, complete))
            self._place_count += 1
        self._growth.add(
            [[around.before], *([alive] for alive in around.alive)],
            input=self._growth.atom(PortAtom(name)),
            target=[complete],
            effect=effect,
        )
        return Node(complete, None, frozenset({complete}), frozenset())

    def _labelled(self, label: str, body: Filter, around: Around) -> Node:
        if label not in self._alive:
            node = self._node(body, around)
        else:
            inner = Around(around.before, (*around.alive, self._alive[label]), around.bound)
            node = self._node(body, inner)
            self._contents[label] |= node.inside
            # A label counts as left out when it is aborted, or when all that is in it is.
            if node.left_out is None:
                node = Node(node.complete, self._aborted[label], node.inside, node.derived)
            else:
                gone = self._left_out(label)
                self._growth.add([[self._aborted[label], node.left_out]], target=[gone])
                node = Node(node.complete, gone, node.inside | {gone}, node.derived | {gone})
        if around.bound and around.before == self._origin:
            self._labels.append((label, node.complete))
        return node

    def _then(self, x: Filter, parts: tuple[Filter, ...], around: Around) -> Node:
        nodes: list[Node] = []
        for part in parts:
            before = nodes[-1].complete if nodes else around.before
            nodes.append(self._node(part, Around(before, around.alive, around.bound)))
        last = nodes[-1]
        if last.left_out is None:
            inside = frozenset().union(*(node.inside for node in nodes))
            derived = frozenset().union(*(node.derived for node in nodes))
            return Node(last.complete, None, inside, derived)
        # Only the last part can be left out here (`needs_memory`): then the one before it counts.
        before_last = nodes[-2].complete if len(nodes) > 1 else last.complete
        needed = [_present(last.complete, last.left_out), [before_last]]
        return self._joined(x, nodes, needed, can_vanish=len(nodes) == 1)

    def _joined(
        self,
        x: Filter,
        nodes: list[Node],
        enabling: list[list[State]],
        can_vanish: bool = True,
    ) -> Node:
        complete = self._growth.state(print_filter(x))
        self._growth.add(enabling, target=[complete])
        own = {complete}
        left_out = None
        gone = [node.left_out for node in nodes if node.left_out is not None]
        if can_vanish and len(gone) == len(nodes):
            left_out = self._left_out(f"({print_filter(x)})")
            self._growth.add([[state] for state in gone], target=[left_out])
            own.add(left_out)
        inside = frozenset(own).union(*(node.inside for node in nodes))
        derived = frozenset(own).union(*(node.derived for node in nodes))
        return Node(complete, left_out, inside, derived)

    def _left_out(self, name: str) -> State:
        state = self._growth.state(f"{name} left out")
        self._left_out_states.add(state)
        return state

    # --- labels -------------------------------------------------------------------------------

    def _watches(self, x: Filter, around: Around) -> Iterator[tuple[str, Filter, Around]]:
        """Labels below the right side of a `;`, which are watched from the origin on."""

        def walk(
            x: Filter, right: bool, alive: tuple[str, ...]
        ) -> Iterator[tuple[str, Filter, Around]]:
            match x:
                case Labelled(label, body):
                    inner = (*alive, label) if label in self._alive else alive
                    if right:
                        states = tuple(self._alive[each] for each in inner)
                        yield label, body, Around(self._origin, states, bound=False)
                    yield from walk(body, right, inner)
                case Both(parts) | Either(parts):
                    for part in parts:
                        yield from walk(part, right, alive)
                case Then(parts):
                    for number, part in enumerate(parts):
                        yield from walk(part, right or number > 0, alive)

        yield from walk(x, around.before != self._origin, ())

    def _watch(self, body: Filter, around: Around) -> Node:
        node = self._node(body, around)
        for label, alive in self._alive.items():
            if alive in around.alive:
                self._contents[label] |= node.inside
        return node

    def _switches(self) -> Iterator[Switch]:
        """Reviving derives anew what is complete: a state that only follows from others."""
        derived = self._derived()
        for label, alive in self._alive.items():
            aborted = self._aborted[label]
            contents = frozenset(self._contents[label])
            yield Switch(label, "abort", alive, contents | {alive} | derived, frozenset({aborted}))
            yield Switch(label, "revive", aborted, derived | {aborted}, frozenset({alive}))

    def _derived(self) -> frozenset[State]:
        """States that only internal transitions set: they follow from the others."""
        read = {
            state
            for transition in self._growth.transitions
            if transition.input is not None
            for state in transition.target
        }
        followed = {
            state
            for transition in self._growth.transitions
            if transition.input is None
            for state in transition.target
        }
        return frozenset(followed - read)


def _present(complete: State, left_out: State | None) -> list[State]:
    return [complete] if left_out is None else [complete, left_out]


def _left_of_then(x: Filter) -> Iterator[str]:
    """The labels that stand, at whatever depth, in a part of a `;` that is not its last."""
    match x:
        case Labelled(_, body):
            yield from _left_of_then(body)
        case Both(parts) | Either(parts):
            for part in parts:
                yield from _left_of_then(part)
        case Then(parts):
            for part in parts[:-1]:
                yield from _labels(part)
            yield from _left_of_then(parts[-1])


def _labels(x: Filter) -> Iterator[str]:
    match x:
        case Labelled(label, body):
            yield label
            yield from _labels(body)
        case Both(parts) | Either(parts) | Then(parts):
            for part in parts:
                yield from _labels(part)
