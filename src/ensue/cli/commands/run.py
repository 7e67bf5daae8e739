"""`ensue run`: a library over a file of events, or a stream of them.

The events are read by `ensue.events.reading` and the outputs made by an engine; here they meet, and
what could not be read, what came too late and how much there was of everything is told. Without a
lateness the input is read whole and put in the order of its times; with one it streams.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
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
from ensue.cli.stopping import noted_signals
from ensue.cli.terminal import EXIT_FINDINGS, counted, say
from ensue.engine import jumps
from ensue.engine.choosing import ENGINES, choose_bounded_engine
from ensue.engine.jumps import AUTO
from ensue.engine.run import Run
from ensue.errors import EventError, UsageError
from ensue.events.cloudevents import encode
from ensue.events.event import Event, Rejected
from ensue.events.following import follow as follow_inputs
from ensue.events.reading import read_events
from ensue.events.sources import LINES, Input, open_inputs
from ensue.events.times import format_time, parse_time
from ensue.library import Library, duration_microseconds

if TYPE_CHECKING:
    from ensue.history import History

OUTPUTS_AT_ONCE = 1024
"""How many outputs are written at once."""
MOST_TIMERS_AT_ONCE = 1000
"""So many timers fire before it is looked again whether an event has come, or the end."""


def run(
    libraries: LibraryFiles,
    events: Annotated[
        list[str],
        typer.Option(
            "--events",
            "-e",
            metavar="FILE|-",
            help="The events: a file, a folder, a pattern as 'may/*.csv', or - for the standard"
            " input. It can be given several times; all are read, in the order of their times.",
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
            metavar="jsonl|csv|parquet|arrow",
            help="The format of the events, where neither their first bytes nor the name tell.",
        ),
    ] = None,
    delimiter: Annotated[
        str | None,
        typer.Option(
            metavar="CHAR",
            help="What stands between the cells of CSV, as ';' or tab; without it the first line"
            " of a file tells.",
        ),
    ] = None,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow",
            "-f",
            help="Go on when a file has been read, and read what is written to it, also after it"
            " was rotated, and new files of folders and patterns; until Ctrl-C or SIGTERM.",
        ),
    ] = False,
    live: Annotated[
        bool,
        typer.Option(
            "--live",
            help="While nothing comes, let the clock of this machine move timers, so that silence"
            " is noticed. Events that come later than --lateness allows are late.",
        ),
    ] = False,
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
      ensue run rules.cor --events log.jsonl --follow --live --lateness 5s
      ensue run rules.cor -e may.parquet --out found.jsonl --dead-letter bad.jsonl
      ensue run rules.cor -e 'may/*.parquet' --engine spark --out found.parquet

    \b
    Exit codes:
      0  the events were run, whatever was found
      1  not one record could be read; or --strict, and a record was refused
      2  a library with errors, a file that cannot be read, or a wrong call
    """
    if engine not in (known := ("auto", *ENGINES, SPARK)):
        choices = ", ".join(f"`{each}`" for each in known)
        raise UsageError(f"there is no engine `{engine}`; choose one of {choices}")
    allowed_lateness = _duration("--lateness", lateness)
    end = _time("--until", until)
    written = {"--out": out, "--dead-letter": dead_letter, "--late": late}
    refuse_shared_files([*(("--events", each) for each in events), *written.items()], libraries)
    library = load_library(libraries, ontology)
    if correlation is not None:
        require_correlation(library, correlation)
    mention_warnings(library, libraries, None if history is None else NEEDS_HISTORY)
    if engine == SPARK and history is not None:
        raise UsageError(
            "`--history` is asked event by event, which Spark does not do: choose the engine `step`"
        )
    streams = allowed_lateness is not None or follow or live
    allowed_jump = jumps.max_jump(library.checked, max_jump, bounded=not streams)
    if follow or live:
        _check_streaming(engine, "--follow" if follow else "--live")
    if engine == SPARK and is_for_executors(events, format):
        run_on_executors(
            FilesOnSpark(
                library,
                tuple(events),
                format,
                out,
                dead_letter,
                correlation,
                end,
                strict,
                max_jump,
            ),
            [allowed_lateness is not None and "--lateness", explain and "--explain"],
        )
        return
    if not streams and not explain and engine != SPARK:
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
        inputs = open_inputs(events, format, delimiter)
        refuse_shared_files([*(("--events", each.path) for each in inputs), *written.items()], [])
        records: Iterator[Event | Rejected | None]
        if follow or live:
            stops = files.enter_context(noted_signals())
            types = library.checked.types
            records = follow_inputs(events, inputs, types, grow=follow, stops=stops)
        else:
            records = read_events(inputs, library.checked.types, progress=bars.reading)
        as_lines = all(each.format == LINES for each in inputs)
        refused = RefusedRecords(_named(inputs), dead_letter, as_lines, files)
        sink: BinaryIO = files.enter_context(out.open("wb")) if out else sys.stdout.buffer
        running = _Running(
            run=run_of_library,
            refused=refused,
            late=LateEvents(late, files),
            sink=sink,
            # Whoever feeds events by hand or by a live pipe wants to see what comes of them.
            is_live=follow or any(each.size is None for each in inputs) or sink.isatty(),
            by_wall_clock=live,
            only=correlation,
            strict=strict,
            explain=explain,
        )
        stopped = not running.feed(records, in_order=streams, bars=bars)
        if not stopped:
            running.finish(end)
        sink.flush()
    running.tell(library, out, end)
    if stopped:
        say("stopped at the first record that was refused, as `--strict` asks", "red")
    if stopped or running.could_read_nothing:
        raise typer.Exit(EXIT_FINDINGS)


def _check_streaming(engine: str, option: str) -> None:
    """Raises `UsageError` for an engine that does not read event by event."""
    if engine not in ("auto", "step", "reference"):
        raise UsageError(
            f"`{option}` reads event by event, and the engine `{engine}` does not: choose `step`"
        )


def _opened(url: str) -> History:
    # Databases take their time to load.
    from ensue.history import History

    return History.open(url)


def _named(inputs: Sequence[Input]) -> str:
    """What stands for all inputs in a message."""
    first = inputs[0].name if inputs[0].is_stdin else inputs[0].path
    return first if len(inputs) == 1 else f"{first} and {len(inputs) - 1} more"


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
        by_wall_clock: bool,
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
        self._by_wall_clock = by_wall_clock
        self._only = only
        self._strict = strict
        self._explain = explain
        self._latest: int | None = None
        self._seen = hints.SeenEvents()

    def feed(
        self, records: Iterator[Event | Rejected | None], in_order: bool, bars: Progress
    ) -> bool:
        """Read everything; False if a refused record has stopped it."""
        if in_order:
            return self._stream(records)
        events: list[Event] = []
        for record in records:
            if isinstance(record, Event):
                events.append(record)
            elif record is not None:
                self.refused.take(record)
                if self._strict:
                    return False
        # The sort is stable: events of one time stay in the order given.
        events.sort(key=lambda event: event.time)
        near = self.run.too_far_ahead(events)
        if self.run.reads_many:
            ahead, events = events[near:], events[:near]
            self._latest = events[-1].time if events else None
            self._seen.take_all(events)
            self._write_all(self.run.push_all_iter(bars.running(events)))
            return all(self._push(event) for event in ahead)
        return self._stream(bars.running(events))

    def _stream(self, records: Iterator[Event | Rejected | None]) -> bool:
        for record in records:
            if record is None:
                self._wait()
            if isinstance(record, Event):
                if not self._push(record):
                    return False
                if self._latest is None or record.time > self._latest:
                    self._latest = record.time
                self._seen.take(record)
                self.late.take(self.run.late)
            if isinstance(record, Rejected):
                self.refused.take(record)
                if self._strict:
                    return False
        return True

    def _push(self, event: Event) -> bool:
        """Read an event that may be refused for its time, or by a history; False to stop."""
        try:
            if self._by_wall_clock:
                jumps.check_ahead_of_now(event.time, time.time_ns() // 1000, self.run.max_jump)
            self._write_all(self.run.push_iter(event))
        except EventError as error:
            self.refused.take(Rejected(0, encode(event), error.problems), f"event `{event.id}`")
            return not self._strict
        return True

    def _wait(self) -> None:
        """Nothing has come: timers that are due by the clock of this machine fire.

        The clock of the run goes to the moments at which something is due, and not to now: an event
        that was on its way in between is not late for that.
        """
        if self._by_wall_clock:
            now = time.time_ns() // 1000
            for _ in range(MOST_TIMERS_AT_ONCE):
                due = self.run.next_due()
                if due is None or due > now:
                    break
                self._write_all(self.run.advance_iter(due))

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
        checked, counts = library.checked, self.run.counts
        found = self.refused.hints(counts.events)
        about_types = hints.about_types(self._seen.types, checked, bool(self.written))
        found += [] if about_types is None else [about_types]
        found += hints.about_keys(counts.without_key, self._seen.examples, checked)
        for hint in found:
            say(hint, "yellow")

    @property
    def could_read_nothing(self) -> bool:
        return bool(self.refused.count) and not self.run.counts.events
