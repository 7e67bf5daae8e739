"""`ensue run`: a library over a file of events, or a stream of them.

The events are read by `ensue.events.reading` and the outputs made by an engine; here they meet, and
what could not be read, what came too late and how much there was of everything is told. Without a
lateness the input is read whole and put in the order of its times; with one it streams.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from ensue.cli import hints
from ensue.cli.asides import LateEvents, RefusedRecords, refuse_shared_files
from ensue.cli.libraries import (
    NEEDS_HISTORY,
    LibraryFiles,
    OntologyFiles,
    load_library,
    mention_warnings,
    require_correlation,
)
from ensue.cli.on_spark import (
    SPARK,
    FilesOnSpark,
    is_for_executors,
    run_on_executors,
    start_on_spark,
)
from ensue.cli.progress import Progress, progress_bars
from ensue.cli.reasons import tell_what_is_missing, tell_why
from ensue.cli.terminal import EXIT_FINDINGS, counted, say
from ensue.engine import jumps
from ensue.engine.choosing import ENGINES, choose_bounded_engine
from ensue.engine.jumps import AUTO
from ensue.engine.run import Run
from ensue.errors import EventError, UsageError
from ensue.events.cloudevents import encode
from ensue.events.event import Event, Rejected
from ensue.events.reading import FORMATS, LINES, STDIN, read_events
from ensue.events.times import format_time, parse_time
from ensue.library import Library, duration_microseconds

if TYPE_CHECKING:
    from ensue.history import History

OUTPUTS_AT_ONCE = 1024
"""How many outputs are written at once."""


def run(
    libraries: LibraryFiles,
    events: Annotated[
        str,
        typer.Option(
            "--events", "-e", metavar="FILE|-", help="The events; - is the standard input."
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the outputs here, not to stdout.")
    ] = None,
    correlation: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only the outputs of this correlation.")
    ] = None,
    lateness: Annotated[
        str | None,
        typer.Option(
            metavar="D",
            help="Read the events as a stream, in the order given; they may be out of order by"
            " this much, as 5s or '2 min'. Without it the input is read whole and sorted by time.",
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Let the clock go on to here after the last event, so that timers up to then"
            " fire. RFC 3339, as 2024-05-06T07:08:09Z.",
        ),
    ] = None,
    max_jump: Annotated[
        str,
        typer.Option(
            metavar="D|none",
            help="Refuse an event whose time lies further than this ahead of the events before it:"
            " its clock is wrong. Unless given, timers fire up to a million times for a key in such"
            " a jump, and with --lateness it is at most a hundred years.",
        ),
    ] = AUTO,
    dead_letter: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep records that are refused here.")
    ] = None,
    late: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep events that came too late here.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at the first record that is refused.")
    ] = False,
    format: Annotated[  # noqa: A002 - the name that users know
        str | None,
        typer.Option(
            metavar="jsonl|csv|parquet",
            help="The format of the events, where the name of the file does not tell.",
        ),
    ] = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Tell on stderr why each output came, and at the end what each rule waits for.",
        ),
    ] = False,
    history: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="A history that predicates may ask, as sqlite:events.db; the events are kept"
            " there.",
        ),
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            "--engine", metavar="NAME", help=f"{', '.join(['auto', *ENGINES])} or {SPARK}."
        ),
    ] = "auto",
    ontology: OntologyFiles = None,
) -> None:
    """Run a library over events, and put out what follows.

    Outputs are CloudEvents, one JSON object a line, on the standard output or in --out FILE.

    Events are CloudEvents as JSON lines, CSV or Parquet; the ending of the file's name tells which,
    and the standard input is JSON lines. In CSV and Parquet the columns id, source, type, time and
    subject are those attributes, ce_NAME is the extension NAME, and other columns are the data.

    A record that is no event, or does not fit its type, is named on stderr and the run goes on.
    --dead-letter keeps it: a JSON line as it was; a row of CSV or Parquet as a JSON object with
    its number, the row and the problems.

    \b
    Example:
      ensue run rules.cor --events events.jsonl
      tail -f log.jsonl | ensue run rules.cor --events - --lateness 5s
      ensue run rules.cor -e may.parquet --out found.jsonl --dead-letter bad.jsonl
      ensue run rules.cor -e 'may/*.parquet' --engine spark --out found.parquet

    \b
    Exit codes:
      0  the events were run, whatever was found
      1  --strict, and a record was refused
      2  a library with errors, a file that cannot be read, or a wrong call
    """
    if engine not in (known := ("auto", *ENGINES, SPARK)):
        choices = ", ".join(f"`{each}`" for each in known)
        raise UsageError(f"there is no engine `{engine}`; choose one of {choices}")
    allowed_lateness = _duration("--lateness", lateness)
    end = _time("--until", until)
    if not events:
        raise UsageError("`--events` names nothing: give the path of a file of events, or `-`")
    refuse_shared_files(
        {"--events": events, "--out": out, "--dead-letter": dead_letter, "--late": late},
        libraries,
    )
    library = load_library(libraries, ontology)
    if correlation is not None:
        require_correlation(library, correlation)
    mention_warnings(library, libraries, None if history is None else NEEDS_HISTORY)
    if engine == SPARK and history is not None:
        raise UsageError(
            "`--history` is asked event by event, which Spark does not do: choose the engine `step`"
        )
    allowed_jump = jumps.max_jump(library.checked, max_jump, bounded=allowed_lateness is None)
    if engine == SPARK and is_for_executors(events, format):
        run_on_executors(
            FilesOnSpark(
                library, events, format, out, dead_letter, correlation, end, strict, max_jump
            ),
            [allowed_lateness is not None and "--lateness", explain and "--explain"],
        )
        return
    if allowed_lateness is None and not explain and engine != SPARK:
        engine = choose_bounded_engine(engine, library.checked)
    with ExitStack() as files:
        if engine == SPARK:
            run_of_library = start_on_spark(
                library, correlation, allowed_lateness, explain, allowed_jump
            )
        else:
            publications = None if history is None else files.enter_context(_opened(history))
            run_of_library = Run(
                library.checked, engine, allowed_lateness or 0, explain, publications, allowed_jump
            )
        bars = files.enter_context(progress_bars(outputs_on_screen=out is None))
        records = read_events(events, library.checked.types, format, progress=bars.reading)
        name = "stdin" if events == STDIN else events
        refused = RefusedRecords(name, dead_letter, _is_lines(events, format), files)
        sink: BinaryIO = files.enter_context(out.open("wb")) if out else sys.stdout.buffer
        running = _Running(
            run=run_of_library,
            refused=refused,
            late=LateEvents(late, files),
            sink=sink,
            # Whoever feeds events by hand or by a live pipe wants to see what comes of them.
            is_live=events == STDIN or sink.isatty(),
            only=correlation,
            strict=strict,
            explain=explain,
        )
        stopped = not running.feed(records, in_order=allowed_lateness is not None, bars=bars)
        if not stopped:
            running.finish(end)
        sink.flush()
    running.tell(library, out, end)
    if stopped:
        say("stopped at the first record that was refused, as `--strict` asks", "red")
        raise typer.Exit(EXIT_FINDINGS)


def _opened(url: str) -> History:
    # Databases take their time to load.
    from ensue.history import History

    return History.open(url)


def _is_lines(events: str, format_: str | None) -> bool:
    known = LINES if events == STDIN else FORMATS.get(Path(events).suffix.lower(), LINES)
    return (format_ or known) == LINES


def _duration(option: str, text: str | None) -> int | None:
    try:
        return None if text is None else duration_microseconds(text)
    except ValueError as error:
        raise UsageError(f"`{option}`: {error}") from None


def _time(option: str, text: str | None) -> int | None:
    try:
        return None if text is None else parse_time(text)
    except ValueError as error:
        raise UsageError(f"`{option}`: {error}") from None


class _Running:
    """One run and everything that leaves it."""

    def __init__(
        self,
        run: Run,
        refused: RefusedRecords,
        late: LateEvents,
        sink: BinaryIO,
        is_live: bool,
        only: str | None,
        strict: bool,
        explain: bool,
    ) -> None:
        self.run = run
        self.refused = refused
        self.late = late
        self.written = 0
        self._sink = sink
        self._is_live = is_live
        self._only = only
        self._strict = strict
        self._explain = explain
        self._latest: int | None = None
        self._types: set[str] = set()

    def feed(self, records: Iterator[Event | Rejected], in_order: bool, bars: Progress) -> bool:
        """Read everything; False if a refused record has stopped it."""
        if in_order:
            return self._stream(records)
        events: list[Event] = []
        for record in records:
            if isinstance(record, Event):
                events.append(record)
            else:
                self.refused.take(record)
                if self._strict:
                    return False
        # The sort is stable: events of one time stay in the order given.
        events.sort(key=lambda event: event.time)
        near = self.run.too_far_ahead(events)
        if self.run.reads_many:
            ahead, events = events[near:], events[:near]
            self._latest = events[-1].time if events else None
            self._types = {event.type for event in events}
            self._write_all(self.run.push_all_iter(bars.running(events)))
            return all(self._push(event) for event in ahead)
        return self._stream(bars.running(events))

    def _stream(self, records: Iterator[Event | Rejected]) -> bool:
        for record in records:
            if isinstance(record, Event):
                if not self._push(record):
                    return False
                if self._latest is None or record.time > self._latest:
                    self._latest = record.time
                self._types.add(record.type)
                self.late.take(self.run.late)
            else:
                self.refused.take(record)
                if self._strict:
                    return False
        return True

    def _push(self, event: Event) -> bool:
        """Read an event that may be refused for its time, or by a history; False to stop."""
        try:
            self._write_all(self.run.push_iter(event))
        except EventError as error:
            self.refused.take(Rejected(0, encode(event), error.problems), f"event `{event.id}`")
            return not self._strict
        return True

    def finish(self, until: int | None) -> None:
        self._write_all(self.run.finish_iter(until))

    def _write_all(self, outputs: Iterator[Event]) -> None:
        """Write outputs as they are made: a clock that jumps may fire very many timers."""
        while written := list(islice(outputs, OUTPUTS_AT_ONCE)):
            self._write(written)

    def _write(self, outputs: list[Event]) -> None:
        wanted = [
            output
            for output in outputs
            if self._only is None or output.extensions.get("correlation") == self._only
        ]
        if not wanted:
            return
        self._sink.write(b"".join(encode(output) + b"\n" for output in wanted))
        if self._explain:
            tell_why(self.run, wanted)
        self.written += len(wanted)
        if self._is_live:
            self._sink.flush()

    def tell(self, library: Library, out: Path | None, until: int | None) -> None:
        """How it went, in a line."""
        if until is not None and self._latest is not None and until < self._latest:
            say(
                f"`--until` lies before the last event ({format_time(self._latest)}):"
                " it has changed nothing",
                "yellow",
            )
        if self._explain:
            names = library.correlations.names if self._only is None else [self._only]
            tell_what_is_missing(self.run, names)
        counts = self.run.counts
        self._give_hints(library)
        parts = [f"{counted(counts.events, 'event')} read"]
        parts += [self.refused.summary()] if self.refused.count else []
        parts += [self.late.summary()] if counts.late else []
        parts += [
            f"{counts.without_key[name]:,} without a key for `{name}`"
            for name in library.correlations.names
            if counts.without_key[name]
        ]
        place = f" in `{out}`" if out else ""
        say(f"{', '.join(parts)}; {counted(self.written, 'output')}{place}", "dim")

    def _give_hints(self, library: Library) -> None:
        found = []
        if not self.written:
            found.append(hints.about_types(self._types, library.types.names))
        if self.refused.as_lines:
            read, refused = len(self._types), self.refused
            found.append(hints.about_lines(read, refused.count, refused.objects))
        for hint in found:
            if hint is not None:
                say(hint, "yellow")
