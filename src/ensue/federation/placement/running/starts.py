"""The latest start from which a filter is matched, event by event, and the events that show it.

In come events of one site with their places; out goes the latest place from which on they match
what is needed of the site. The algebra is that of windows: a port starts at its event, `+` takes
the smaller start, `|` the larger, and under `x ; y` each event starts `y` with the start that `x`
had before it. Whether a match lies behind the last trigger and inside the window is then one
comparison, so that no site has to be told of a trigger before it goes on.

With each start go the events that it stands on (its *witnesses*). For rules that bind the last or
the latest events, the witnesses of all parts are all that a later match can ask for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Collection, Iterator, Sequence

from ensue.engine.core.saved_rules import damaged, item_at
from ensue.federation.placement.places import Place
from ensue.federation.placement.snapshots.saved import SavedStarts
from ensue.lang.syntax import Both, Either, Filter, PortRef, Then, Times


class Start:
    """A start, with the event that was added and the starts that it was added to."""

    __slots__ = ("at", "before", "place")

    def __init__(self, place: Place, at: Place | None, before: Sequence[Start] = ()) -> None:
        self.place = place
        self.at = at
        self.before = before


class Starts:
    """The starts of a filter and of all its parts, at one key."""

    __slots__ = ("_top",)

    def __init__(self, needed: Filter) -> None:
        self._top = _follow(needed)

    def take(self, place: Place, ports: Collection[str]) -> None:
        """Read the event at a place, which matches these ports."""
        self._top.take(place, ports, Start(place, None))

    @property
    def latest(self) -> Place | None:
        """The latest place from which on all that was read matches; None if it does not."""
        return None if self._top.start is None else self._top.start.place

    def forget_before(self, place: Place) -> None:
        """Let no start count that lies before a place."""
        self._top.forget_before(place)

    def witnesses(self) -> set[Place]:
        """The places of the events on which a part stands that is complete."""
        found: set[Place] = set()
        seen: set[int] = set()
        waiting = list(self._top.starts())
        while waiting:
            start = waiting.pop()
            if id(start) not in seen:
                seen.add(id(start))
                waiting.extend(start.before)
                if start.at is not None:
                    found.add(start.at)
        return found

    def saved(self) -> SavedStarts:
        """The starts of ports alone: the starts of all other parts follow from these."""
        numbers: dict[int, int] = {}
        table: list[tuple[Place, Place | None, list[int]]] = []

        def number(start: Start) -> int:
            if id(start) not in numbers:
                before = [number(each) for each in start.before]
                numbers[id(start)] = len(table)
                table.append((start.place, start.at, before))
            return numbers[id(start)]

        ports = [[number(each) for each in port.kept] for port in self._top.ports()]
        return SavedStarts(table, ports)

    def restore(self, saved: SavedStarts) -> None:
        """Raises `SnapshotError` if they are of another filter."""
        table: list[Start] = []
        for place, at, before in saved.table:
            if any(not 0 <= each < len(table) for each in before):
                raise damaged("a start stands on none")
            table.append(Start(place, at, [table[each] for each in before]))
        ports = list(self._top.ports())
        if len(ports) != len(saved.ports):
            raise damaged("a site holds back for another filter")
        for port, kept in zip(ports, saved.ports, strict=True):
            port.kept = [item_at(table, each) for each in kept]
        self._top.work_out()

    def is_blank(self, oldest: int) -> bool:
        """Whether nothing is under way that starts at or after a time."""
        return all(start.place[0] < oldest for start in self._top.starts())


class _Part(ABC):
    __slots__ = ("start",)

    def __init__(self) -> None:
        self.start: Start | None = None

    @abstractmethod
    def take(self, place: Place, ports: Collection[str], entry: Start | None) -> None:
        """Read an event; what begins with it starts at `entry`, or not at all."""

    def parts(self) -> Sequence[_Part]:
        return ()

    def ports(self) -> Iterator[_Port | _PortTimes]:
        """The ports of the filter, in its order."""
        for part in self.parts():
            yield from part.ports()

    def work_out(self) -> None:
        """Compute the starts of all parts, inner ones first, and then the start of this one."""
        for part in self.parts():
            part.work_out()

    def starts(self) -> Iterator[Start]:
        if self.start is not None:
            yield self.start
        for part in self.parts():
            yield from part.starts()

    def forget_before(self, place: Place) -> None:
        if self.start is not None and self.start.place < place:
            self.start = None
        for part in self.parts():
            part.forget_before(place)


class _Port(_Part):
    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def take(self, place: Place, ports: Collection[str], entry: Start | None) -> None:
        # Entries never grow smaller, so the last event has the latest start.
        if entry is not None and self._name in ports:
            self.start = Start(entry.place, place, (entry,))

    def ports(self) -> Iterator[_Port | _PortTimes]:
        yield self

    @property
    def kept(self) -> Sequence[Start]:
        """The starts from which all others follow."""
        return () if self.start is None else (self.start,)

    @kept.setter
    def kept(self, kept: Sequence[Start]) -> None:
        self.start = kept[-1] if kept else None


class _PortTimes(_Part):
    """`a{n}`: the entries at the last n events, of which the first is the start."""

    __slots__ = ("_count", "_last", "_name")

    def __init__(self, name: str, count: int) -> None:
        super().__init__()
        self._name = name
        self._count = count
        self._last: deque[Start] = deque(maxlen=count)

    def take(self, place: Place, ports: Collection[str], entry: Start | None) -> None:
        if entry is not None and self._name in ports:
            self._last.append(Start(entry.place, place, (entry,)))
            self._set_start()

    def ports(self) -> Iterator[_Port | _PortTimes]:
        yield self

    @property
    def kept(self) -> Sequence[Start]:
        return self._last

    @kept.setter
    def kept(self, kept: Sequence[Start]) -> None:
        self._last.clear()
        self._last.extend(kept)
        self._set_start()

    def starts(self) -> Iterator[Start]:
        yield from self._last

    def forget_before(self, place: Place) -> None:
        while self._last and self._last[0].place < place:
            self._last.popleft()
        self._set_start()

    def _set_start(self) -> None:
        full = len(self._last) == self._count
        self.start = Start(self._last[0].place, None, tuple(self._last)) if full else None


class _Many(_Part):
    __slots__ = ("_parts",)

    def __init__(self, parts: Sequence[_Part]) -> None:
        super().__init__()
        self._parts = parts

    def parts(self) -> Sequence[_Part]:
        return self._parts

    def take(self, place: Place, ports: Collection[str], entry: Start | None) -> None:
        for part in self._parts:
            part.take(place, ports, entry)
        self._set_start()

    def forget_before(self, place: Place) -> None:
        super().forget_before(place)
        self._set_start()

    def work_out(self) -> None:
        super().work_out()
        self._set_start()

    @abstractmethod
    def _set_start(self) -> None:
        """Compute the start of this subexpression from the starts of its parts."""


class _Both(_Many):
    __slots__ = ()

    def _set_start(self) -> None:
        starts = [part.start for part in self._parts if part.start is not None]
        if len(starts) < len(self._parts):
            self.start = None
        else:
            self.start = Start(min(each.place for each in starts), None, starts)


class _Either(_Many):
    __slots__ = ()

    def _set_start(self) -> None:
        starts = [part.start for part in self._parts if part.start is not None]
        self.start = max(starts, key=lambda each: each.place, default=None)


class _Then(_Many):
    __slots__ = ()

    def take(self, place: Place, ports: Collection[str], entry: Start | None) -> None:
        # Every part begins with the start that the part before it had before this event.
        entries = [entry, *(part.start for part in self._parts[:-1])]
        for part, start in zip(self._parts, entries, strict=True):
            part.take(place, ports, start)
        self._set_start()

    def _set_start(self) -> None:
        self.start = self._parts[-1].start


def _follow(x: Filter) -> _Part:
    match x:
        case PortRef(name):
            return _Port(name)
        case Times(PortRef(name), count):
            return _PortTimes(name, count)
        case Times(body, count):
            return _Then([_follow(body) for _ in range(count)])
        case Both(parts):
            return _Both([_follow(part) for part in parts])
        case Either(parts):
            return _Either([_follow(part) for part in parts])
        case Then(parts):
            return _Then([_follow(part) for part in parts])
        case _:
            raise AssertionError("what is needed has neither labels nor timeouts")
