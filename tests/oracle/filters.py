"""Filters by the letter: the remembered events are a list, and every question is asked of it.

In comes what one correlation and key read, an event (or the firing of a timer) at a time; out go
the triggers of its branches, each with its active labels and bound events. Nothing is kept but the
lists, the aborted labels and, for each revived label, the index of the event that revived it:
matching tries all splits, a window is a cut of the list, an abort rebuilds the tree. The
transformer, the clock and the outputs are the business of `oracle`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ensue.events.event import Event
from ensue.lang.syntax import Both, Either, Filter, Labelled, PortRef, Then, Timeout, Times


@dataclass(frozen=True)
class Firing:
    """A timer port that fired: it has a time, and is neither an event of the stream nor a cause."""

    time: int


@dataclass(frozen=True)
class Remembered:
    """What was read, under which ports, as the how manyth of its memory."""

    index: int
    what: Event | Firing
    ports: frozenset[str]


@dataclass(frozen=True, eq=False)
class Place:
    """A port, where it stands in the reduced tree."""

    port: str


@dataclass(frozen=True, eq=False)
class Chain:
    """`+`, `|` or `;` over two or more parts."""

    sign: str
    parts: tuple[Reduced, ...]


@dataclass(frozen=True, eq=False)
class Marked:
    """A labelled part that counts only events after the one with index `floor`."""

    label: str
    floor: int
    body: Reduced


Reduced = Place | Chain | Marked


@dataclass(frozen=True)
class Trigger:
    """A branch that triggered: what was active and what was bound at that moment."""

    active: frozenset[str]
    bound: dict[str, Remembered]

    @property
    def causes(self) -> str:
        events = {each.index: each.what for each in self.bound.values()}
        ordered = [events[index] for index in sorted(events)]
        ids = [each.id for each in ordered if isinstance(each, Event)]
        # What `push a` sends on keeps its id, so two bound events can have one id between them.
        return ",".join(dict.fromkeys(ids))


NEVER_REVIVED = -1
MOST_REMEMBERED = 120


class TooManyError(Exception):
    """A branch remembers more than can be tried in all splits: the scenario is none for here."""


class Filters:
    """The branches of one correlation and key."""

    def __init__(self, branches: Sequence[Filter], within: int | None, bind: str) -> None:
        self.branches = branches
        self.within = within
        self.bind = bind
        self.memories: list[list[Remembered]] = [[] for _ in branches]
        self.aborted: set[str] = set()
        self.floors: dict[str, int] = {}
        self.last_index = -1

    def change(self, kind: str, label: str) -> None:
        """Abort, revive or toggle a label. What is revived counts from the next event on."""
        if kind == "toggle":
            kind = "revive" if label in self.aborted else "abort"
        if kind == "abort":
            self.aborted.add(label)
        elif label in self.aborted:
            self.aborted.remove(label)
            self.floors[label] = self.last_index

    def remember(self, what: Event | Firing, ports: frozenset[str]) -> None:
        """Every branch reads the event."""
        self.last_index += 1
        for memory in self.memories:
            memory.append(Remembered(self.last_index, what, ports))

    def triggers(self, now: int) -> list[Trigger]:
        """The branches that trigger now, from left to right; they forget what they remembered."""
        found = []
        for number, branch in enumerate(self.branches):
            tree = self.reduce(branch)
            if tree is None:
                continue
            events = self.memories[number]
            if self.within is not None:
                events = [each for each in events if each.what.time >= now - self.within]
            # What no place of the branch asks for can neither match nor be bound.
            asked = {place.port for place in places(tree)}
            events = [each for each in events if asked & each.ports]
            if len(events) > MOST_REMEMBERED:
                raise TooManyError(f"{len(events)} events are remembered")
            sequence = Sequenced(events)
            if sequence.matches(tree, 0, len(events)):
                active = frozenset(
                    mark.label
                    for mark, floor in marks(tree)
                    if sequence.matches(mark, sequence.after(floor, 0), len(events))
                )
                found.append(Trigger(active, self.bindings(tree, sequence)))
                self.memories[number] = []
        return found

    def reduce(self, node: Filter) -> Reduced | None:
        """The tree without its aborted parts, or None where nothing is left."""
        if isinstance(node, PortRef):
            return Place(node.name)
        if isinstance(node, Labelled):
            body = None if node.label in self.aborted else self.reduce(node.body)
            floor = self.floors.get(node.label, NEVER_REVIVED)
            return None if body is None else Marked(node.label, floor, body)
        if isinstance(node, Times):
            return chain(";", [self.reduce(node.body) for _ in range(node.count)])
        assert not isinstance(node, Timeout), "rules with timeouts are for the oracle of values"
        sign = {Both: "+", Either: "|", Then: ";"}[type(node)]
        return chain(sign, [self.reduce(part) for part in node.parts])

    def bindings(self, tree: Reduced, sequence: Sequenced) -> dict[str, Remembered]:
        """For each port the first or last event that it matches in any of its stretches."""
        candidates: dict[str, list[Remembered]] = {}
        for place, start in sequence.stretches(tree, 0):
            for each in sequence.events[start:]:
                if place.port in each.ports:
                    candidates.setdefault(place.port, []).append(each)
        choose = min if self.bind == "first" else max
        return {
            port: choose(events, key=lambda each: each.index) for port, events in candidates.items()
        }


def chain(sign: str, parts: Sequence[Reduced | None]) -> Reduced | None:
    left = tuple(part for part in parts if part is not None)
    if not left:
        return None
    return left[0] if len(left) == 1 else Chain(sign, left)


def places(tree: Reduced) -> Iterator[Place]:
    if isinstance(tree, Place):
        yield tree
    else:
        for part in tree.parts if isinstance(tree, Chain) else (tree.body,):
            yield from places(part)


def marks(tree: Reduced, floor: int = NEVER_REVIVED) -> Iterator[tuple[Marked, int]]:
    """The labelled parts, each with the index up to which a label around it reads nothing."""
    if isinstance(tree, Marked):
        yield tree, floor
        yield from marks(tree.body, max(floor, tree.floor))
    elif isinstance(tree, Chain):
        for part in tree.parts:
            yield from marks(part, floor)


class Sequenced:
    """A finite sequence of events, and what it matches."""

    def __init__(self, events: Sequence[Remembered]) -> None:
        self.events = events
        self.known: dict[tuple[Reduced, int, int, int], bool] = {}

    def matches(self, node: Reduced, start: int, end: int, skip: int = 0) -> bool:
        """Whether events[start:end] match the node (a chain without its first `skip` parts)."""
        question = (node, start, end, skip)
        if question not in self.known:
            self.known[question] = self.decide(node, start, end, skip)
        return self.known[question]

    def decide(self, node: Reduced, start: int, end: int, skip: int) -> bool:
        if isinstance(node, Place):
            return any(node.port in each.ports for each in self.events[start:end])
        if isinstance(node, Marked):
            return self.matches(node.body, min(self.after(node.floor, start), end), end)
        if node.sign == "+":
            return all(self.matches(part, start, end) for part in node.parts)
        if node.sign == "|":
            return any(self.matches(part, start, end) for part in node.parts)
        if skip == len(node.parts) - 1:
            return self.matches(node.parts[skip], start, end)
        # What a stretch matches, all of it matches: no need to try splits where a part is missing.
        if not all(self.matches(part, start, end) for part in node.parts[skip:]):
            return False
        return any(
            self.matches(node.parts[skip], start, cut) and self.matches(node, cut, end, skip + 1)
            for cut in range(start, end + 1)
        )

    def after(self, floor: int, start: int) -> int:
        """The first place, from `start` on, of an event that came after the one at `floor`."""
        later = (i for i in range(start, len(self.events)) if self.events[i].index > floor)
        return next(later, len(self.events))

    def stretches(self, node: Reduced, start: int) -> Iterator[tuple[Place, int]]:
        """Every place of a port, with where its stretch starts; it ends at the trigger."""
        if isinstance(node, Place):
            yield node, start
        elif isinstance(node, Marked):
            yield from self.stretches(node.body, self.after(node.floor, start))
        elif node.sign != ";":
            for part in node.parts:
                yield from self.stretches(part, start)
        else:
            for number, part in enumerate(node.parts):
                left = chain(";", node.parts[:number])
                complete = start if left is None else self.completed(left, start)
                if complete is None:
                    return
                yield from self.stretches(part, complete)

    def completed(self, left: Reduced, start: int) -> int | None:
        """The first place at which the events from `start` on match the left side of a `;`."""
        ends = range(start, len(self.events) + 1)
        return next((end for end in ends if self.matches(left, start, end)), None)
