"""Machines of filters.

Every subexpression has a state *complete*. A port becomes complete by its event if the part before
it (left of `;`) was complete when the event came. Operators become complete from their parts, by
internal transitions. Nothing is cleared on the way: a later event may complete a part again, with a
later start or a later binding. A branch that is complete fires, and its states are cleared. Equal
subexpressions in the same surroundings share their states, and a place that an earlier place of its
port covers (`covering`) is left out.

A label is active if all remembered events match its subexpression, not only those of its stretch.
Right of a `;` its subexpression is therefore built a second time, as if it stood at the beginning
of the branch.

A label that some statement aborts has two marks. While it is *alive* its ports read. While it is
*aborted* it counts as complete for `+` and `;`, and as absent for `|`. States that were complete
only because of the abort are derived anew when the label is revived.

A chain keeps every part that is complete, which would be much for a long chain and for `x{n}`.
Where there is no window and no label is aborted, parts behind the latest complete one cannot matter
again: a long chain then hands a token from part to part, and `x{n}` counts its rounds in binary
(`counting`). Their bindings have states of their own beside the chain.

A machine cannot express a label that is aborted left of a `;`: that changes which earlier events
count for the right side, and needs those events back (`labels.needs_memory`).

The module is long because all operators build one machine together, a method each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ensue.lang.derived.parts import changed_labels
from ensue.lang.printer import print_filter
from ensue.lang.syntax import (
    Both,
    Either,
    Filter,
    FilterCorrelation,
    Labelled,
    PortRef,
    Then,
    Timeout,
    Times,
)
from ensue.machine.building.builder import MachineBuilder
from ensue.machine.building.counting import Counter
from ensue.machine.building.covering import Cover
from ensue.machine.limits import DEFAULT_MACHINE_LIMITS, MachineLimits
from ensue.machine.model import Bind, Branch, Fire, Machine, PortAtom, State, Switch

LONG_CHAIN = 8
"""From so many parts on, a chain hands on a token instead of keeping its complete parts."""


def machine_of_filter(
    correlation: FilterCorrelation,
    limits: MachineLimits = DEFAULT_MACHINE_LIMITS,
    long_chain: int = LONG_CHAIN,
) -> Machine:
    return _FilterMachine(correlation, limits, long_chain).machine()


@dataclass(frozen=True, slots=True)
class FilterNode:
    """The states of a subexpression: that it is complete, that it is left out, and all `inside`.

    `left_out` is None if the subexpression contains no label that is aborted. `tokens` are set
    once, when the part before the subexpression is complete.
    """

    complete: State
    left_out: State | None
    inside: frozenset[State]
    tokens: frozenset[State] = frozenset()


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where a subexpression stands: after the state `before`, inside labels that must be alive.

    With `bound`, events are bound to its ports.
    """

    before: State
    alive: tuple[State, ...]
    bound: bool


class _FilterMachine:
    """The machine of one filter while it is built, branch by branch."""

    def __init__(
        self, correlation: FilterCorrelation, limits: MachineLimits, long_chain: int
    ) -> None:
        self._correlation = correlation
        self._long_chain = long_chain
        self._builder = MachineBuilder(limits.states)
        self._origin = self._builder.state("origin")
        self._first = correlation.clauses.bind == "first"
        self._alive = {
            label: self._builder.state(f"{label} alive")
            for label in sorted(changed_labels(correlation))
        }
        self._aborted = {label: self._builder.state(f"{label} aborted") for label in self._alive}
        self._contents: dict[str, set[State]] = {label: set() for label in self._alive}
        self._labels: list[tuple[str, State]] = []
        self._places: list[tuple[int, str, State]] = []
        self._place_count = 0
        self._left_out_states: set[State] = set()
        self._hands_on = correlation.clauses.within is None and not self._alive
        self._nodes: dict[tuple[Filter, Surroundings], FilterNode] = {}
        self._cover: Cover

    def machine(self) -> Machine:
        built = [self._branch(branch) for branch in self._correlation.branches]
        for number, (branch, inside, tokens) in enumerate(built):
            self._builder.add([[branch.root]], clear=inside, target=tokens, effect=Fire(number))
        within = self._correlation.clauses.within
        marks = {*self._alive.values(), *self._aborted.values(), *self._left_out_states}
        return Machine(
            tuple(self._builder.names),
            frozenset({self._origin, *self._alive.values()}.union(*(t for _, _, t in built))),
            tuple(self._builder.transitions),
            tuple(self._builder.atoms),
            tuple(branch for branch, _, _ in built),
            tuple(self._switches()),
            within.microseconds if within else None,
            frozenset({self._origin, *marks}),
        )

    def _branch(self, x: Filter) -> tuple[Branch, frozenset[State], frozenset[State]]:
        """A branch, what it clears when it fires, and the tokens that it starts with."""
        self._labels, self._places, self._nodes = [], [], {}
        outside = Surroundings(self._origin, (), bound=True)
        self._cover = Cover(self._alive, self._origin, x)
        root = self._node(x, outside)
        watched = [
            (label, self._watch(body, around)) for label, body, around in self._watches(x, outside)
        ]
        labels = [*self._labels, *((label, node.complete) for label, node in watched)]
        inside = root.inside.union(*(node.inside for _, node in watched))
        tokens = root.tokens.union(*(node.tokens for _, node in watched))
        return Branch(root.complete, tuple(labels), tuple(self._places)), inside, tokens

    # --- subexpressions -----------------------------------------------------------------------

    def _node(self, x: Filter, around: Surroundings) -> FilterNode:
        """The node of a subexpression; equal subexpressions in the same surroundings share a node.

        A node that binds also serves where nothing is bound: no transition waits for a binding.
        """
        binding = Surroundings(around.before, around.alive, bound=True)
        known = self._nodes.get((x, binding)) or self._nodes.get((x, around))
        if known is None:
            known = self._nodes[x, around] = self._build(x, around)
        return known

    def _build(self, x: Filter, around: Surroundings) -> FilterNode:
        match x:
            case PortRef(name):
                return self._port(name, around)
            case Labelled(label, body):
                return self._labelled(label, body, around)
            case Both(parts):
                nodes = [self._node(part, around) for part in parts]
                each = [_present(node.complete, node.left_out) for node in nodes]
                one = [node.complete for node in nodes]
                # Where nothing can be left out, the last set follows from the others.
                vanishing = any(node.left_out is not None for node in nodes)
                return self._joined(x, nodes, [*each, one] if vanishing else each)
            case Either(parts):
                nodes = [self._node(part, around) for part in parts]
                return self._joined(x, nodes, [[node.complete for node in nodes]])
            case Then(parts):
                if self._hands_on and len(parts) >= self._long_chain:
                    return self._handing_on(parts, around)
                return self._then(x, parts, around)
            case Times(body, count):
                if self._hands_on and count >= self._long_chain:
                    return self._counted(x, body, count, around)
                return self._then(x, (body,) * count, around)
            case Timeout():
                raise ValueError("a filter with `timeout` runs from memory and has no machine")

    def _port(self, name: str, around: Surroundings) -> FilterNode:
        complete = self._builder.state(name)
        effect = None
        if around.bound and not self._cover.has(name, around.before, around.alive):
            effect = Bind(self._place_count, self._first)
            self._places.append((self._place_count, name, complete))
            self._place_count += 1
        self._builder.add(
            [[around.before], *([alive] for alive in around.alive)],
            input=self._builder.atom(PortAtom(name)),
            target=[complete],
            effect=effect,
        )
        return FilterNode(complete, None, frozenset({complete}))

    def _labelled(self, label: str, body: Filter, around: Surroundings) -> FilterNode:
        if label not in self._alive:
            node = self._node(body, around)
        else:
            inner = Surroundings(around.before, (*around.alive, self._alive[label]), around.bound)
            node = self._node(body, inner)
            self._contents[label] |= node.inside
            # A label counts as left out when it is aborted, or when its whole content is left out.
            if node.left_out is None:
                node = FilterNode(node.complete, self._aborted[label], node.inside, node.tokens)
            else:
                gone = self._left_out(label)
                self._builder.add([[self._aborted[label], node.left_out]], target=[gone])
                node = FilterNode(node.complete, gone, node.inside | {gone}, node.tokens)
        if around.bound and around.before == self._origin:
            self._labels.append((label, node.complete))
        return node

    def _then(self, x: Filter, parts: tuple[Filter, ...], around: Surroundings) -> FilterNode:
        nodes: list[FilterNode] = []
        tokens: set[State] = set()
        own: set[State] = set()
        before = around.before
        for number, part in enumerate(parts):
            if number:
                after, before = before, nodes[-1].complete
                if around.bound:
                    self._cover.note(before, self._cover.after(after), part, around.alive)
            node = self._node(part, Surroundings(before, around.alive, around.bound))
            nodes.append(node)
            if number and node.tokens:
                # The part before stays complete, and the tokens must be set only once.
                waiting = self._builder.state(f"{print_filter(part)} not begun")
                self._builder.add([[before], [waiting]], clear=[waiting], target=node.tokens)
                tokens.add(waiting)
                own.add(waiting)
            else:
                tokens |= node.tokens
        last = nodes[-1]
        if last.left_out is None:
            inside = frozenset(own).union(*(node.inside for node in nodes))
            return FilterNode(last.complete, None, inside, frozenset(tokens))
        # Only the last part can be left out (`needs_memory`): then the part before it counts.
        before_last = nodes[-2].complete if len(nodes) > 1 else last.complete
        needed = [_present(last.complete, last.left_out), [before_last]]
        return self._joined(x, nodes, needed, can_vanish=len(nodes) == 1)

    def _joined(
        self,
        x: Filter,
        nodes: list[FilterNode],
        enabling: list[list[State]],
        can_vanish: bool = True,
    ) -> FilterNode:
        complete = self._builder.state(print_filter(x))
        self._builder.add(enabling, target=[complete])
        own = {complete}
        left_out = None
        gone = [node.left_out for node in nodes if node.left_out is not None]
        if can_vanish and len(gone) == len(nodes):
            left_out = self._left_out(f"({print_filter(x)})")
            self._builder.add([[state] for state in gone], target=[left_out])
            own.add(left_out)
        inside = frozenset(own).union(*(node.inside for node in nodes))
        tokens = frozenset().union(*(node.tokens for node in nodes))
        return FilterNode(complete, left_out, inside, tokens)

    def _left_out(self, name: str) -> State:
        state = self._builder.state(f"{name} left out")
        self._left_out_states.add(state)
        return state

    # --- long chains --------------------------------------------------------------------------

    def _handing_on(self, parts: tuple[Filter, ...], around: Surroundings) -> FilterNode:
        """A chain in which a token goes from part to part, and the parts behind it are cleared.

        A part behind the token could only be completed again by a later event, and no match gets
        better by that: without a window it only counts *that* a part is complete, and it stays
        complete until the branch fires. Places are bound in copies of the parts that are not
        cleared (`_marked_places`).
        """
        builder, count = self._builder, len(parts)
        tokens = [builder.state(f"part {n} of {count}") for n in range(1, count + 1)]
        marks, kept = self._marked_places(parts, around) if around.bound else ({}, [])
        nodes = [
            self._node(part, Surroundings(token, around.alive, bound=False))
            for part, token in zip(parts, tokens, strict=True)
        ]
        for number in range(1, count):
            done = nodes[number - 1]
            entered = {tokens[number], *nodes[number].tokens, *marks.get(number, ())}
            builder.add([[done.complete]], clear=done.inside | {tokens[number - 1]}, target=entered)
        inside = frozenset(tokens).union(
            *(node.inside for node in [*nodes, *kept]), *marks.values()
        )
        first = {tokens[0]} | nodes[0].tokens | (kept[0].tokens if kept else frozenset())
        return FilterNode(nodes[-1].complete, None, inside, frozenset(first))

    def _marked_places(
        self, parts: tuple[Filter, ...], around: Surroundings
    ) -> tuple[dict[int, frozenset[State]], list[FilterNode]]:
        """Copies of parts in which ports are bound, and the states that entering a part sets."""
        kept = [self._node(parts[0], around)]
        marks: dict[int, frozenset[State]] = {}
        covered = self._cover.after(around.before)
        placed = {parts[0]}
        for number, part in enumerate(parts[1:], 1):
            covered |= self._cover.reads(parts[number - 1], around.alive)
            ports = {(name, around.alive) for name in _ports(part)}
            # An equal part further left covers all places of this one, since it began earlier.
            if ports <= covered or part in placed:
                continue
            placed.add(part)
            mark = self._builder.state(f"from part {number + 1} of {len(parts)} on")
            self._cover.note(mark, covered, part, around.alive)
            node = self._node(part, Surroundings(mark, around.alive, bound=True))
            marks[number] = node.tokens | {mark}
            kept.append(node)
        return marks, kept

    def _counted(self, x: Filter, body: Filter, count: int, around: Surroundings) -> FilterNode:
        """`x{n}`: rounds are counted, and the places of the first round serve all rounds."""
        builder = self._builder
        kept = [self._node(body, around)] if around.bound else []
        begin = builder.state(f"next {print_filter(body)}")
        counter = Counter(builder, print_filter(x), count)
        node = self._node(body, Surroundings(begin, around.alive, bound=False))
        complete = builder.state(print_filter(x))
        own = node.inside | {begin} | counter.states
        builder.add([[node.complete], *counter.last], clear=own, target=[complete])
        for step in counter.steps:
            builder.add(
                [[node.complete], *step.enabling],
                clear=node.inside | {begin} | step.clear,
                target=node.tokens | {begin} | step.target,
            )
        inside = own.union({complete}, *(each.inside for each in kept))
        tokens = (node.tokens | {begin} | counter.first).union(*(each.tokens for each in kept))
        return FilterNode(complete, None, inside, tokens)

    # --- labels -------------------------------------------------------------------------------

    def _watches(
        self, x: Filter, around: Surroundings
    ) -> Iterator[tuple[str, Filter, Surroundings]]:
        """Labels right of a `;`, with their subexpressions as if these stood at the beginning."""

        def walk(
            x: Filter, right: bool, alive: tuple[str, ...]
        ) -> Iterator[tuple[str, Filter, Surroundings]]:
            match x:
                case Labelled(label, body):
                    inner = (*alive, label) if label in self._alive else alive
                    if right:
                        states = tuple(self._alive[each] for each in inner)
                        yield label, body, Surroundings(self._origin, states, bound=False)
                    yield from walk(body, right, inner)
                case Both(parts) | Either(parts):
                    for part in parts:
                        yield from walk(part, right, alive)
                case Then(parts):
                    for number, part in enumerate(parts):
                        yield from walk(part, right or number > 0, alive)

        yield from walk(x, around.before != self._origin, ())

    def _watch(self, body: Filter, around: Surroundings) -> FilterNode:
        node = self._node(body, around)
        for label, alive in self._alive.items():
            if alive in around.alive:
                self._contents[label] |= node.inside
        return node

    def _switches(self) -> Iterator[Switch]:
        """What `abort` and `revive` of each label do; after both, derived states follow anew."""
        derived = self._derived()
        for label, alive in self._alive.items():
            aborted = self._aborted[label]
            contents = frozenset(self._contents[label])
            yield Switch(label, "abort", alive, contents | {alive} | derived, frozenset({aborted}))
            yield Switch(label, "revive", aborted, derived | {aborted}, frozenset({alive}))

    def _derived(self) -> frozenset[State]:
        """The states that only internal transitions set, and which follow from other states."""
        read = {
            state
            for transition in self._builder.transitions
            if transition.input is not None
            for state in transition.target
        }
        followed = {
            state
            for transition in self._builder.transitions
            if transition.input is None
            for state in transition.target
        }
        return frozenset(followed - read)


def _ports(x: Filter) -> Iterator[str]:
    match x:
        case PortRef(name):
            yield name
        case Labelled(_, body) | Times(body, _):
            yield from _ports(body)
        case Both(parts) | Either(parts) | Then(parts):
            for part in parts:
                yield from _ports(part)


def _present(complete: State, left_out: State | None) -> list[State]:
    return [complete] if left_out is None else [complete, left_out]
