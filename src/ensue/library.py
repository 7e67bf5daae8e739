"""A correlation library as a user holds it: loaded, asked, started.

Text goes in through `load` and `parse`; what comes out is a `Library` in which every name is known,
or a `LibraryError` with every mistake. Running it is the business of `ensue.engine`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from html import escape
from os import PathLike
from typing import Generic, Protocol, TypeVar, overload

from ensue.engine.changing import checked_source
from ensue.engine.run import EventLike, Run, as_event, choose_bounded_engine, run_bounded
from ensue.errors import LibraryError
from ensue.events.event import Event, microseconds_of
from ensue.events.times import parse_time
from ensue.events.types import EventType
from ensue.lang.checked import CheckedLibrary
from ensue.lang.diagnostics import Diagnostic
from ensue.lang.durations import parse_duration
from ensue.lang.parser import read_source
from ensue.lang.printer import print_library
from ensue.lang.source import Source
from ensue.lang.syntax import Correlation


class Named(Protocol):
    @property
    def name(self) -> str: ...


Item = TypeVar("Item", bound=Named)


class Catalogue(Sequence[Item], Generic[Item]):
    """Things with names, in their order; found by place or by name."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._items = tuple(items)
        self._by_name = {item.name: item for item in self._items}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(item.name for item in self._items)

    @overload
    def __getitem__(self, key: int | str) -> Item: ...
    @overload
    def __getitem__(self, key: slice) -> Sequence[Item]: ...
    def __getitem__(self, key: int | str | slice) -> Item | Sequence[Item]:
        return self._by_name[key] if isinstance(key, str) else self._items[key]

    def __contains__(self, key: object) -> bool:
        return key in self._by_name if isinstance(key, str) else key in self._items

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"Catalogue({', '.join(self.names)})"


class Library:
    """Event types and correlations, checked. `str(library)` is its text."""

    def __init__(self, checked: CheckedLibrary) -> None:
        self._checked = checked
        self.types: Catalogue[EventType] = Catalogue(checked.types)
        self.correlations: Catalogue[Correlation] = Catalogue(checked.correlations)

    @property
    def checked(self) -> CheckedLibrary:
        """What the rooms of Ensue work from."""
        return self._checked

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        return self._checked.warnings

    def start(
        self, engine: str = "auto", lateness: str | timedelta = "0 s", explain: bool = False
    ) -> Run:
        """Begin a run over a live stream: push events into it as they come.

        With `explain` the run goes by the definitions, whatever the engine, remembers its events
        and can be asked `why`; it is slower then, and its memory grows with the stream.
        """
        return Run(self._checked, engine, duration_microseconds(lateness), explain)

    def resume(self, snapshot: bytes) -> Run:
        """Go on from a snapshot of a run of this library, on the engine that it was taken on."""
        return Run.resume(self._checked, snapshot)

    def run(
        self,
        events: Iterable[EventLike],
        engine: str = "auto",
        lateness: str | timedelta | None = None,
        until: str | datetime | None = None,
    ) -> Iterator[Event]:
        """Everything that follows from a bounded input.

        The input is read in the order of its times; with a lateness, in the order given, as if it
        were a stream. At the end the clock stands at the last event's time, or at `until`.
        """
        if lateness is None:
            engine = choose_bounded_engine(engine, self._checked)
        run = self.start(engine, lateness or "0 s")
        end = None if until is None else time_microseconds(until)
        ready = (as_event(event) for event in events)
        return run_bounded(run, ready, sort=lateness is None, until=end)

    def __str__(self) -> str:
        return print_library(self._checked.tree)

    def __repr__(self) -> str:
        return (
            f"Library(types: {len(self.types)}, correlations: {', '.join(self.correlations.names)})"
        )

    def _repr_html_(self) -> str:
        drawn = "".join(_drawn(each) for each in self.correlations)
        return f"<pre>{escape(str(self))}</pre>{drawn}"


DRAWN_TRANSITIONS = 200
"""Up to which size a notebook draws a machine; a larger one is no picture any more."""


def _drawn(correlation: Correlation) -> str:
    """The machine of a correlation, folded up."""
    # Only notebooks draw: whoever runs a library does not wait for this.
    from ensue.machine.drawing import to_svg
    from ensue.machine.plan import plan

    machine = plan(correlation).machine
    if machine is None or len(machine.transitions) > DRAWN_TRANSITIONS:
        return ""
    name = escape(correlation.name)
    return f"<details><summary>{name}</summary>{to_svg(machine, correlation.name)}</details>"


def load(*paths: str | PathLike[str]) -> Library:
    """Load a library from one or more files, read as one. Raises `LibraryError`."""
    source, problems = read_source(paths)
    if problems:
        raise LibraryError(problems)
    return _library(source)


def parse(text: str, name: str = "<text>") -> Library:
    """Load a library from text. Raises `LibraryError`."""
    return _library(Source.of(text, name))


def _library(source: Source) -> Library:
    return Library(checked_source(source))


def duration_microseconds(value: str | timedelta) -> int:
    """A duration as in the language (`10 s`), or as Python has it."""
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    return parse_duration(value).microseconds


def time_microseconds(value: str | datetime) -> int:
    return parse_time(value) if isinstance(value, str) else microseconds_of(value)
