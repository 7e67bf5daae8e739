"""Matches by the letter of the definitions (section 10, items 1, 5 and 6, on top of section 3).

In comes a finite sequence of what one branch remembers; out goes which part of a filter a stretch
of it matches, whether its last event takes part, the latest match, and where the stretch of each
port begins. Every question is asked of the whole sequence, by trying all splits; nothing is carried
from one event to the next. What is remembered and forgotten is the business of `reading`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .model import Label, Moment, Node, Pair, Place, Timeout


@dataclass(frozen=True)
class Read:
    """What was read: an event, the firing of a timer port, or (no ports) that of a timeout."""

    index: int
    time: int
    ports: frozenset[str]
    event: Moment | None = None

    @property
    def is_timeout(self) -> bool:
        return not self.ports and self.event is None


@dataclass(frozen=True)
class Match:
    """A match: where it starts, where it ends, and the last place of each port in it."""

    start: int
    last: int
    bound: dict[str, int]

    def joined(self, other: Match) -> Match:
        ports = {*self.bound, *other.bound}
        return Match(
            min(self.start, other.start),
            max(self.last, other.last),
            {port: max(self.bound.get(port, -1), other.bound.get(port, -1)) for port in ports},
        )


def later(left: Match | None, right: Match | None) -> Match | None:
    """The match that starts later, then the one whose last event is later, then the left one."""
    if left is None or right is None:
        return right if left is None else left
    return right if (right.start, right.last) > (left.start, left.last) else left


class Stretch:
    """What a branch remembers, oldest first. Ends are exclusive: `[start, end)`."""

    def __init__(self, reads: Sequence[Read]) -> None:
        self.reads = reads
        self.known: dict[tuple[str, Node, int, int], bool] = {}

    # --- sections 3.1 and 10.1 --------------------------------------------------------------------

    def matches(self, node: Node, start: int, end: int) -> bool:
        """Whether the reads of `[start, end)` match the node."""
        return self.ask("matches", node, start, end)

    def takes_part(self, node: Node, start: int, end: int) -> bool:
        """Whether the last read of `[start, end)` takes part in a match of the node by them."""
        return start < end and self.ask("takes part", node, start, end)

    def ask(self, question: str, node: Node, start: int, end: int) -> bool:
        asked = (question, node, start, end)
        if asked not in self.known:
            decide = self.decide_match if question == "matches" else self.decide_part
            self.known[asked] = decide(node, start, end)
        return self.known[asked]

    def decide_match(self, node: Node, start: int, end: int) -> bool:
        if isinstance(node, Place):
            return any(node.port in each.ports for each in self.reads[start:end])
        if isinstance(node, Label):
            return self.matches(node.body, start, end)
        assert isinstance(node, Pair)
        if isinstance(node.right, Timeout):
            return any(self.takes_part(node, start, stop + 1) for stop in range(start, end))
        if node.sign == ";":
            return any(
                self.matches(node.left, start, cut) and self.matches(node.right, cut, end)
                for cut in range(start, end + 1)
            )
        both = [self.matches(each, start, end) for each in (node.left, node.right)]
        return all(both) if node.sign == "+" else any(both)

    def decide_part(self, node: Node, start: int, end: int) -> bool:
        if isinstance(node, Place):
            return node.port in self.reads[end - 1].ports
        if isinstance(node, Label):
            return self.takes_part(node.body, start, end)
        assert isinstance(node, Pair)
        left, right = node.left, node.right
        if isinstance(right, Timeout):
            return any(True for _ in self.waited_for(left, right, start, end))
        if node.sign == ";":
            return any(
                self.matches(left, start, cut) and self.takes_part(right, cut, end)
                for cut in range(start, end)
            )
        if node.sign == "|":
            return self.takes_part(left, start, end) or self.takes_part(right, start, end)
        return (self.takes_part(left, start, end) and self.matches(right, start, end)) or (
            self.matches(left, start, end) and self.takes_part(right, start, end)
        )

    def waited_for(self, left: Node, timeout: Timeout, start: int, end: int) -> Iterator[int]:
        """Section 10.5: the reads that took part in `left`, and D after which the last read fired.

        The last read of `[start, end)` is the moment at which the clock reached D.
        """
        firing = self.reads[end - 1]
        if firing.is_timeout:
            for place in range(start, end - 1):
                on_time = self.reads[place].time + timeout.duration == firing.time
                if on_time and self.takes_part(left, start, place + 1):
                    yield place

    # --- section 10.6 -----------------------------------------------------------------------------

    def latest(self, node: Node, start: int, end: int) -> Match | None:
        """The latest match of the node by the reads of `[start, end)`."""
        if isinstance(node, Place):
            places = [at for at in range(start, end) if node.port in self.reads[at].ports]
            return Match(places[-1], places[-1], {node.port: places[-1]}) if places else None
        if isinstance(node, Label):
            return self.latest(node.body, start, end)
        assert isinstance(node, Pair)
        left, right = node.left, node.right
        if isinstance(right, Timeout):
            found: Match | None = None
            for stop in range(start, end):
                found = later(found, self.latest_waited(left, right, start, stop + 1))
            return found
        if node.sign == "|":
            return later(self.latest(left, start, end), self.latest(right, start, end))
        after = self.latest(right, start, end)
        if after is None:
            return None
        before = self.latest(left, start, after.start if node.sign == ";" else end)
        # No match of the right side starts later, so none has more before it.
        assert (before is not None) == self.matches(node, start, end)
        return None if before is None else before.joined(after)

    def latest_with(self, node: Node, start: int, end: int) -> Match | None:
        """The latest match of the node in which the last read of `[start, end)` takes part."""
        if not self.takes_part(node, start, end):
            return None
        if isinstance(node, Place):
            return Match(end - 1, end - 1, {node.port: end - 1})
        if isinstance(node, Label):
            return self.latest_with(node.body, start, end)
        assert isinstance(node, Pair)
        left, right = node.left, node.right
        if isinstance(right, Timeout):
            return self.latest_waited(left, right, start, end)
        if node.sign == "|":
            return later(self.latest_with(left, start, end), self.latest_with(right, start, end))
        if node.sign == "+":
            return self.latest_of_both(left, right, start, end)
        # Only a match with one of the left side before it counts.
        complete = next(e for e in range(start, end) if self.matches(left, start, e))
        after = self.latest_with(right, complete, end)
        assert after is not None
        before = self.latest(left, start, after.start)
        assert before is not None
        return before.joined(after)

    def latest_of_both(self, left: Node, right: Node, start: int, end: int) -> Match | None:
        """The latest of each side of `+`: where the read takes part, the latest in which it does.

        So of `x | y` inside of a side only those count in which it takes part, as the text asks,
        also where the other side of `+` would be enough for the read to take part.
        """
        sides = [self.latest_with(each, start, end) for each in (left, right)]
        if sides[0] is None:
            sides[0] = self.latest(left, start, end)
        if sides[1] is None:
            sides[1] = self.latest(right, start, end)
        assert sides[0] is not None
        assert sides[1] is not None
        return sides[0].joined(sides[1])

    def latest_waited(self, left: Node, timeout: Timeout, start: int, end: int) -> Match | None:
        """Of the matches of `left` whose time is up at the last read, the one that starts later."""
        found: Match | None = None
        for place in self.waited_for(left, timeout, start, end):
            found = later(found, self.latest_with(left, start, place + 1))
        return None if found is None else Match(found.start, end - 1, found.bound)

    # --- section 3.6 ------------------------------------------------------------------------------

    def stretches(self, node: Node | Timeout, start: int) -> Iterator[tuple[str, int]]:
        """Every place of a port, with where its stretch starts; all end with the sequence."""
        if isinstance(node, Place):
            yield node.port, start
        elif isinstance(node, Label):
            yield from self.stretches(node.body, start)
        elif isinstance(node, Pair):
            yield from self.stretches(node.left, start)
            after: int | None = start
            if node.sign == ";":
                ends = range(start, len(self.reads) + 1)
                after = next((e for e in ends if self.matches(node.left, start, e)), None)
            if after is not None:
                yield from self.stretches(node.right, after)
