"""A correlation library as a user holds it: loaded, asked, started.

Text goes in through `load` and `parse`; what comes out is a `Library` in which every name is known,
or a `LibraryError` with every mistake. A library also goes out and in as tables, bytes that bring
its machines along (`ensue.machine.tables`). Running it is the business of `ensue.engine`, which is
imported when a run begins: a library is more often checked, shown or formatted than run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar, overload

from ensue.engine.changing import checked_source
from ensue.errors import UsageError
from ensue.events.event import Event
from ensue.events.types import EventType
from ensue.lang.checked import CheckedLibrary
from ensue.lang.derived.without_ontology import plain_library
from ensue.lang.diagnostics import Diagnostic, did_you_mean
from ensue.lang.durations import parse_duration
from ensue.lang.expanding.parameters import GivenValues, python_value
from ensue.lang.expressions.binding import BindingOntology
from ensue.lang.parsing.parser import read_source
from ensue.lang.printer import print_library
from ensue.lang.source import Source
from ensue.lang.syntax import Correlation, LibraryTree, Parameter

if TYPE_CHECKING:
    from ensue.engine.inputs import EventLike, Instant
    from ensue.engine.run import Run
    from ensue.engine.running.admission import Publications
    from ensue.engine.timing.jumps import JumpLike

TABLES_MAGIC = b"ENSUETAB"
"""How a file of tables begins (`ensue.machine.tables`, which need not be loaded to tell)."""


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
        if isinstance(key, str) and key not in self._by_name:
            raise KeyError(f"there is no `{key}`: {did_you_mean(key, self._by_name)}")
        return self._by_name[key] if isinstance(key, str) else self._items[key]

    def __contains__(self, key: object) -> bool:
        return key in self._by_name if isinstance(key, str) else key in self._items

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"Catalogue({', '.join(self.names)})"


class Library:
    """Event types and correlations, checked. `str(library)` is its text, as it was written.

    Parameters stand there with the values that they have.
    """

    def __init__(self, checked: CheckedLibrary) -> None:
        self._checked = checked
        self.types: Catalogue[EventType] = Catalogue(checked.types)
        self.correlations: Catalogue[Correlation] = Catalogue(checked.correlations)

    @property
    def checked(self) -> CheckedLibrary:
        """What the rooms of Ensue work from."""
        return self._checked

    @property
    def running_text(self) -> str:
        """The text of what runs: parameters are values, and uses are rules.

        It stands alone, in any process.
        """
        return print_library(self._checked.tree)

    @property
    def parameters(self) -> Mapping[str, object]:
        """The parameters with the values that they have here, by name; a duration is its text."""
        return {each.name: python_value(each.value) for each in self._checked.parameters}

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        return self._checked.warnings

    def plain(self) -> Library:
        """The library without its ontology: concept terms are sets of texts, as they stand now.

        A library that is not bound to an ontology is its own. `tables` and Spark are given this.
        """
        return Library(plain_library(self._checked))

    def start(
        self,
        engine: str = "auto",
        lateness: str | timedelta = "0 s",
        explain: bool = False,
        history: Publications | None = None,
        max_jump: JumpLike = None,
    ) -> Run:
        """Begin a run over a live stream: push events into it as they come.

        With `explain` the run goes by the definitions, whatever the engine, remembers its events
        and can be asked `why`; it is slower then, and its memory grows with the stream.

        With a `history` (`ensue.history.History`), predicates may have temporal terms. Each event
        is asked about before it is kept there.

        An event that lies further ahead of those before it than `max_jump` is refused: a duration,
        or `none`. Unless it is given, no timer fires more than a million times for a key in a jump,
        and none is longer than a hundred years.
        """
        from ensue.engine.run import Run
        from ensue.engine.timing import jumps

        allowed = jumps.max_jump(self._checked, max_jump)
        late = duration_microseconds(lateness)
        return Run(self._checked, engine, late, explain, history, allowed)

    def resume(
        self,
        snapshot: bytes,
        engine: str | None = None,
        history: Publications | None = None,
        max_jump: JumpLike = None,
        key: bytes | None = None,
    ) -> Run:
        """Go on from a snapshot of a run of this library.

        It goes on with the engine that the snapshot was taken on, or with the one that is named;
        with its `max_jump` or another one; and, if it is signed, only with the `key` it was taken
        with. Raises `SnapshotError` if the bytes are no such snapshot, or cannot move to that
        engine.
        """
        from ensue.engine.run import Run

        return Run.resume(self._checked, snapshot, engine, history, max_jump, key)

    def run(
        self,
        events: Iterable[EventLike],
        engine: str = "auto",
        lateness: str | timedelta | None = None,
        until: Instant | None = None,
        history: Publications | None = None,
        max_jump: JumpLike = None,
    ) -> Iterator[Event]:
        """Everything that follows from a bounded input.

        The input is read in the order of its times; with a lateness, in the order given, as if it
        were a stream. At the end the clock stands at the last event's time, or at `until`.
        """
        from ensue.engine.inputs import as_event
        from ensue.engine.run import Run, run_bounded
        from ensue.engine.timing import jumps

        allowed = jumps.max_jump(self._checked, max_jump, bounded=lateness is None)
        late = duration_microseconds(lateness or "0 s")
        run = Run(
            self._checked, engine, late, publications=history, max_jump=allowed, is_saved=False
        )
        ready = (as_event(event) for event in events)
        return run_bounded(run, ready, sort=lateness is None, until=until)

    def tables(self) -> bytes:
        """The library with its machines, as bytes that any process can load and run.

        `Library.from_tables` takes them back, and `load` a file of them. Raises `LimitError` if a
        machine is too large.
        """
        from ensue.machine.tables import save

        return save(plain_library(self._checked))

    @classmethod
    def from_tables(cls, data: bytes) -> Library:
        """The library that `tables` has written. Its machines are run as they are, not made again.

        Raises `TableError` for bytes that are damaged, of something else, or of another version.
        """
        from ensue.machine.tables import load

        return cls(load(data).library)

    def __str__(self) -> str:
        # A text that is read again is this library: with the values that were given from outside.
        values = {each.name: each for each in self._checked.parameters}
        written = self._checked.as_written.definitions
        return print_library(
            LibraryTree(
                tuple(
                    values.get(each.name, each) if isinstance(each, Parameter) else each
                    for each in written
                )
            )
        )

    def __repr__(self) -> str:
        return (
            f"Library(types: {len(self.types)}, correlations: {', '.join(self.correlations.names)})"
        )

    def _repr_html_(self) -> str:
        from ensue.lang.colouring import as_html

        drawn = "".join(_drawn(self._checked, each) for each in self.correlations)
        return f"{as_html(str(self))}{drawn}"


LibraryLike = Library | str | PathLike[str]
"""What `as_library` makes a library of."""

DRAWN_TRANSITIONS = 200
"""Up to which size a notebook draws a machine; a larger one is no picture any more."""


def _drawn(library: CheckedLibrary, correlation: Correlation) -> str:
    """The machine of a correlation, folded up."""
    # Only notebooks draw: running a library does not wait for this.
    from ensue.machine.drawing import to_svg
    from ensue.machine.prepared import plan_in

    machine = plan_in(library, correlation).machine
    if machine is None or len(machine.transitions) > DRAWN_TRANSITIONS:
        return ""
    name = escape(correlation.name)
    return f"<details><summary>{name}</summary>{to_svg(machine, correlation.name)}</details>"


def load(
    *paths: str | PathLike[str],
    ontology: BindingOntology | None = None,
    parameters: GivenValues | None = None,
    inside: str | PathLike[str] | None = None,
) -> Library:
    """Load a library from files of text or folders of them, read as one, or from a file of tables.

    What the files import is read too; with `inside`, only from that folder. Its predicates may ask
    the `ontology`, an `ensue.knowledge.Ontology`, by `IS_A` and the like; tables have asked theirs
    when they were made. `parameters` are values for the parameters that the library declares, such
    as `{"limit": 10, "pause": "5 min"}`.

    Raises `LibraryError` for mistakes in a text, concepts that are unknown included, `UsageError`
    for values of parameters that do not fit, and `TableError` for tables that cannot be read.
    """
    for path in paths:
        if _holds_tables(path):
            if len(paths) > 1:
                raise UsageError(
                    f"`{path}` holds the tables of a whole library, and {len(paths)} files were "
                    "given: load it alone, or load the text of all"
                )
            if parameters:
                raise UsageError(
                    f"`{path}` holds tables, in which parameters have their values already:"
                    " load the text, or make the tables with other values"
                )
            return Library.from_tables(Path(path).read_bytes())
    source, problems = read_source(paths, inside=inside)
    return Library(checked_source(source, ontology, parameters, problems))


def parse(
    text: str,
    name: str = "<text>",
    ontology: BindingOntology | None = None,
    parameters: GivenValues | None = None,
) -> Library:
    """Load a library from text, as `load` does from files. Raises `LibraryError`."""
    return Library(checked_source(Source.of(text, name), ontology, parameters))


def as_library(given: LibraryLike) -> Library:
    """A library from what people have at hand: itself, its text, or the path of its file."""
    if isinstance(given, Library):
        return given
    if isinstance(given, str) and ("{" in given or "\n" in given):
        return parse(given)
    if not isinstance(given, str | PathLike):
        raise UsageError(
            f"a library was asked for, and `{type(given).__name__}` was given: "
            "give a `Library`, its text, or the path of its file"
        )
    if not Path(given).exists():
        raise UsageError(f"there is no file `{given}`: give the path of a library, or its text")
    return load(given)


def _holds_tables(path: str | PathLike[str]) -> bool:
    """Whether a file begins as tables do. A file that cannot be read is reported by its reader."""
    try:
        with Path(path).open("rb") as file:
            return file.read(len(TABLES_MAGIC)) == TABLES_MAGIC
    except (OSError, ValueError):
        return False


def duration_microseconds(value: str | timedelta) -> int:
    """A duration as in the language (`10 s`), or as Python has it."""
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    if not isinstance(value, str):
        raise UsageError(f"a duration is text such as `5 s`, or a `timedelta`, not `{value}`")
    return parse_duration(value).microseconds
