"""`ensue run`: a library over files of events, or over a stream of events.

The options are checked here. Large bounded files then go to `column_run`, files for Spark to
`spark_run`, and everything else, event by event, to `event_run`. A summary at the end counts
events, refused records, late events and outputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from zoneinfo import ZoneInfo

import typer

from ensue.cli.column_run import ColumnRun, enough_for_columns, gathered, is_for_columns
from ensue.cli.event_run import EventRun, RunReport
from ensue.cli.followed.grown_file import GrownFile, can_grow
from ensue.cli.followed.grown_outputs import GrownOutputs
from ensue.cli.followed.journal import Journal, made_by
from ensue.cli.libraries import (
    NEEDS_HISTORY,
    ColumnsOption,
    LibraryFiles,
    NullOption,
    OntologyFiles,
    SetOption,
    TimezoneOption,
    TypeOption,
    YearOption,
    load_library,
    mention_warnings,
    require_outputs,
)
from ensue.cli.outputs import Destination, OutputWriter, refuse_other_formats
from ensue.cli.progress import progress_bars
from ensue.cli.side_outputs import (
    LateEvents,
    Naming,
    RefusedRecords,
    file_of_history,
    refuse_shared_files,
)
from ensue.cli.signals import noted_signals
from ensue.cli.spark_run import (
    SPARK,
    FilesOnSpark,
    is_for_executors,
    mention_read_here,
    run_on_executors,
    start_on_spark,
)
from ensue.cli.start.process import load_pyarrow
from ensue.cli.terminal import EXIT_FINDINGS, say
from ensue.engine.choosing import ENGINES, choose_engine
from ensue.engine.run import Run
from ensue.engine.timing import jumps
from ensue.engine.timing.jumps import AUTO
from ensue.errors import UsageError
from ensue.events.event import Event, Rejected
from ensue.events.last_record import LastRecord
from ensue.events.mapping import Mapping, refuse_derived
from ensue.events.records.following import ComingBlock, Follower, Reading
from ensue.events.records.reading import read_events
from ensue.events.sources import LINES, InputFile, open_inputs
from ensue.events.sources.contents import Given
from ensue.events.times import parse_time
from ensue.library import duration_microseconds

if TYPE_CHECKING:
    from ensue.history import History


def run(
    libraries: LibraryFiles,
    events: Annotated[
        list[str] | None,
        typer.Option(
            "--events",
            "-e",
            metavar="FILE|-",
            help="The events: a file, a folder, a pattern as 'may/*.csv', or - for the standard"
            " input. The option can be repeated; all events are read in the order of their times.",
        ),
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="A table that Spark knows, as catalog.schema.events, instead of --events; with"
            " --engine spark.",
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write the outputs to a file or a URL, not to stdout."),
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
            help="After the last event, let the clock go on to this time, so that timers up to then"
            " fire. RFC 3339, as 2024-05-06T07:08:09Z.",
        ),
    ] = None,
    max_jump: Annotated[
        str,
        typer.Option(
            metavar="D|none",
            help="Refuse an event whose time lies further than this ahead of the events before it,"
            " since its clock is probably wrong. By default, a jump may fire each timer of a key up"
            " to a million times and, with --lateness, span at most a hundred years.",
        ),
    ] = AUTO,
    dead_letter: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write refused records to a file.")
    ] = None,
    late: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write late events to a file.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at the first refused record.")
    ] = False,
    format: Annotated[  # noqa: A002 - the name that users know
        str | None,
        typer.Option(
            metavar="jsonl|csv|parquet|arrow",
            help="The format of the events, if neither their first bytes nor the name tell.",
        ),
    ] = None,
    delimiter: Annotated[
        str | None,
        typer.Option(
            metavar="CHAR",
            help="The delimiter of CSV, as ';' or tab. By default the first line of a file tells.",
        ),
    ] = None,
    header: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help="The names of the columns, for CSV files without a header line. If the last name"
            " ends in ..., its column takes the rest of each line.",
        ),
    ] = None,
    null: NullOption = None,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow",
            "-f",
            help="After the end of a file, go on with what is appended to it (also after a"
            " rotation) and with new files of folders and patterns, until Ctrl-C or SIGTERM.",
        ),
    ] = False,
    live: Annotated[
        bool,
        typer.Option(
            "--live",
            help="While no event comes, let the clock of this machine fire timers, so that absence"
            " is detected. Events that come later than --lateness allows are late.",
        ),
    ] = False,
    columns: ColumnsOption = None,
    type: TypeOption = None,  # noqa: A002
    timezone: TimezoneOption = None,
    year: YearOption = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Print on stderr why each output came, and at the end what each rule waits for.",
        ),
    ] = False,
    history: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="A history for temporal predicates, as sqlite:events.db; the events are added to"
            " it.",
        ),
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            "--engine", metavar="NAME", help=f"{', '.join(['auto', *ENGINES])} or {SPARK}."
        ),
    ] = "auto",
    ontology: OntologyFiles = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Name each refused record, not each cause once.")
    ] = False,
    settings: SetOption = None,
) -> None:
    """Run a library over events, and write its outputs.

    Outputs are CloudEvents, one JSON object a line, on the standard output or in --out FILE; a
    name that ends in .parquet, .csv or .arrow chooses that format.

    Events are CloudEvents as JSON lines, CSV, Parquet or Arrow; the format is found from the first
    bytes and the ending of the name, and the standard input is JSON lines. In tables the columns
    id, source, type, time and subject are those attributes, ce_NAME is the extension NAME, and
    other columns are the data. With --columns or --type a JSON line may be any object, and its
    members are the columns.

    A record that is no event, or does not fit its type, is named on stderr, and the run goes on.
    --dead-letter keeps it: a JSON line unchanged; a row of CSV or Parquet as a JSON object with
    its number, the row and the problems.

    \b
    Example:
      ensue run rules.cor --events events.jsonl
      ensue run rules.cor --events log.jsonl --follow --live --lateness 5s
      ensue run rules.cor -e may.parquet --out found.jsonl --dead-letter bad.jsonl
      ensue run rules.cor -e 'may/*.parquet' --engine spark --out found.parquet

    \b
    Exit codes:
      0  the events were run, with or without outputs
      1  no record could be read; or --strict, and a record was refused
      2  a library with errors, a file that cannot be read, or a wrong call
    """
    if table is not None:
        if events or engine != SPARK:
            raise UsageError(
                "`--table` names a table that Spark reads: give `--engine spark` and no `--events`;"
                " a table of DuckDB or Delta is a path after `--events`"
            )
        events = [table]
    if not events:
        raise UsageError(_without_events(libraries))
    if engine not in (known := ("auto", *ENGINES, SPARK)):
        choices = ", ".join(f"`{each}`" for each in known)
        raise UsageError(f"there is no engine `{engine}`; choose one of {choices}")
    allowed_lateness = _duration("--lateness", lateness)
    mapping = Mapping.parse(",".join(columns or ()), type, timezone, year)
    end = _time("--until", until, mapping.zone)
    by_spark = table is not None or (engine == SPARK and is_for_executors(events, format))
    # Spark writes a folder by itself, wherever that is.
    is_folder = by_spark and out is not None and out.rstrip("/").endswith(".parquet")
    destination = Destination(None if is_folder else out)
    if destination.is_url and (follow or live):
        raise UsageError(
            f"`--out` is the URL `{out}`, and nothing can be appended to what is there: give a file"
            " to a run that follows, or leave out `--follow` and `--live`"
        )
    out_path = Path(out) if is_folder and out is not None else destination.path
    written = {"--out": out_path, "--dead-letter": dead_letter, "--late": late}
    refuse_other_formats(out_path)
    paths = () if table is not None else events
    read = [("--history", file_of_history(history)), *(("--events", each) for each in paths)]
    refuse_shared_files([*read, *written.items()], libraries)
    library = load_library(libraries, ontology, settings)
    refuse_derived(mapping.columns, library.checked.types)
    if correlation is not None:
        require_outputs(library, correlation)
    mention_warnings(library, libraries, None if history is None else NEEDS_HISTORY)
    if engine == SPARK and history is not None:
        raise UsageError(
            "`--history` needs an engine that reads event by event, and `spark` does not: choose"
            " the engine `step`"
        )
    streams = allowed_lateness is not None or follow or live
    allowed_jump = jumps.max_jump(library.checked, max_jump, bounded=not streams)
    if follow or live:
        _check_streaming(engine, "--follow" if follow else "--live")
    if by_spark:
        run_on_executors(
            FilesOnSpark(
                library,
                tuple(events),
                format,
                delimiter,
                mapping,
                out_path,
                dead_letter,
                correlation,
                end,
                strict,
                max_jump,
                header,
                tuple(null or ()),
                verbose,
                out,
                table is not None,
            ),
            [allowed_lateness is not None and "--lateness", explain and "--explain"],
        )
        destination.finish()
        return
    types = library.checked.types
    with ExitStack() as files:
        bars = files.enter_context(progress_bars(outputs_on_screen=out is None))
        inputs = open_inputs(events, format, delimiter, header, null or ())
        if any(each.needs_pyarrow for each in inputs):
            load_pyarrow()
        refuse_shared_files([*(("--events", each.path) for each in inputs), *written.items()], [])
        as_lines = all(each.format == LINES for each in inputs)
        journal: Journal | None = None
        opened = None
        outputs: OutputWriter | GrownOutputs
        if out_path is not None and (follow or live) and can_grow(out_path):
            if follow and not explain and history is None and all(e.is_file for e in inputs):
                given = {
                    "--columns": ",".join(columns or ()),
                    "--type": type,
                    "--timezone": timezone,
                    "--year": year,
                    "--lateness": lateness,
                    "--correlation": correlation,
                    "--max-jump": None if max_jump == AUTO else max_jump,
                }
                journal = Journal(out_path, made_by(str(library), given))
                files.callback(journal.close)
                opened = journal.grown_file
                parts = None if journal.state is None else journal.state.parts
                outputs = GrownOutputs(out_path, library.checked, correlation, opened, parts)
            else:
                opened = GrownFile
                outputs = GrownOutputs(out_path, library.checked, correlation, opened, alone=True)
        else:
            outputs = OutputWriter(
                out_path, library.checked, correlation, files, grows=follow or live
            )
        naming: Naming = "at once" if strict or follow or live else "at the end"
        naming = "each" if verbose else naming
        refused = RefusedRecords(_named(inputs), dead_letter, as_lines, files, opened, naming)
        is_bounded = not streams and not explain and history is None and engine != SPARK
        is_stream = not (is_bounded or follow or live or explain) and history is None
        if (is_bounded and engine == "auto") or (is_stream and engine in ("auto", "batch")):
            inputs = gathered(inputs, is_stream)
        late_events = LateEvents(late, files, opened)
        running: EventRun | ColumnRun
        if (is_bounded or is_stream) and (
            engine == "batch" or (engine == "auto" and is_for_columns(inputs))
        ):
            assert isinstance(outputs, OutputWriter)
            running = ColumnRun(
                library.checked,
                inputs,
                mapping,
                outputs,
                refused,
                late_events,
                None if is_bounded else allowed_lateness or 0,
                strict,
                bars,
                allowed_jump,
                is_stream and any(each.size is None for each in inputs),
            )
            stopped = not running.read()
        else:
            if is_bounded:
                engine = choose_engine(engine)
            if engine == SPARK:
                mention_read_here(inputs)
                run_of_library = start_on_spark(
                    library, correlation, allowed_lateness, explain, allowed_jump
                )
            else:
                publications = None if history is None else files.enter_context(_opened(history))
                if journal is not None and journal.state is not None:
                    state = journal.state.engine
                    run_of_library = Run.resume(library.checked, state)
                    run_of_library.counts.clear()
                else:
                    run_of_library = Run(
                        library.checked,
                        engine,
                        allowed_lateness or 0,
                        explain,
                        publications,
                        allowed_jump,
                        is_saved=follow or live,
                    )
            records: Iterator[ComingBlock | Event | Rejected | None]
            last = LastRecord()
            follower: Follower | None = None
            if follow or live:
                stops = files.enter_context(noted_signals())
                reading = Reading(
                    types, mapping, last, Given.of(format, delimiter, header, null or ())
                )
                places = None if journal is None else journal.places
                follower = Follower(events, inputs, reading, journal, places)
                records = follower.records(grow=follow, stops=stops)
                if journal is None:
                    records = chain(records, follower.rest())
            else:
                records = read_events(
                    inputs, types, progress=bars.reading, mapping=mapping, last=last
                )
            can_leave_step = engine == "auto" and not explain and history is None
            running = EventRun(
                run=run_of_library,
                last=last,
                refused=refused,
                late=late_events,
                outputs=outputs,
                # Outputs of events from a keyboard or a live pipe are written at once.
                is_live=follow or any(each.size is None for each in inputs) or outputs.is_terminal,
                by_wall_clock=live,
                strict=strict,
                explain=explain,
                library=library.checked,
                journal=journal,
                columns_from=enough_for_columns() if can_leave_step else None,
            )
            if journal is not None:
                assert follower is not None
                assert isinstance(outputs, GrownOutputs)
                journal.bind(running.snapshot, follower, outputs)
                running.again(journal, follower)
            stopped = not running.feed(records, in_order=streams, bars=bars)
        if stopped:
            outputs.abandon()
        else:
            running.finish(end)
            destination.finish()
    report = RunReport(
        library=library,
        counts=running.counts,
        seen=running.seen,
        latest=running.latest,
        refused=refused,
        outputs=outputs,
        late=late_events,
        explained=running.run if explain and isinstance(running, EventRun) else None,
        only=correlation,
        due=running.due,
        unit=mapping.unit("time"),
    )
    report.tell(None if stopped else out, end)
    if stopped:
        say("stopped at the first refused record, because of `--strict`", "red")
    if stopped or report.could_read_nothing:
        raise typer.Exit(EXIT_FINDINGS)


def _without_events(libraries: Sequence[Path]) -> str:
    """The message for a call without `--events`; the events may be among the library files."""
    named = [str(each) for each in libraries if each.suffix == ".cor"] or ["rules.cor"]
    others = [str(each) for each in libraries if each.suffix != ".cor"] or ["events.jsonl"]
    given = " ".join(f"--events {each}" for each in others)
    return (
        f"`run` needs `--events`, and none are given: write `ensue run {' '.join(named)} {given}`"
    )


def _check_streaming(engine: str, option: str) -> None:
    """Raise `UsageError` for an engine that does not read event by event."""
    if engine not in ("auto", "step", "reference"):
        raise UsageError(
            f"`{option}` needs an engine that reads event by event, and `{engine}` does not: choose"
            " the engine `step`"
        )


def _opened(url: str) -> History:
    # Database drivers take a while to import.
    from ensue.history import History

    return History.open(url)


def _named(inputs: Sequence[InputFile]) -> str:
    """The inputs, as messages name them."""
    first = inputs[0].name if inputs[0].is_stdin else inputs[0].path
    return first if len(inputs) == 1 else f"{first} and {len(inputs) - 1} more"


def _duration(option: str, text: str | None) -> int | None:
    try:
        return None if text is None else duration_microseconds(text)
    except ValueError as error:
        raise UsageError(f"`{option}`: {error}") from None


def _time(option: str, text: str | None, zone: ZoneInfo | None) -> int | None:
    try:
        return None if text is None else parse_time(text, zone)
    except ValueError as error:
        raise UsageError(f"`{option}`: {error}") from None
