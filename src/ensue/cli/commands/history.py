"""`ensue history`: keep events in a history, find them, and replay them through rules.

A history has a URL (`ensue.history.stores.opening`), and `ensue.history` does the keeping, finding
and replaying. This module names and counts refused records, and runs a replay on Spark with
`--engine spark`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from ensue.cli.libraries import (
    NEEDS_HISTORY,
    OntologyFiles,
    SetOption,
    load_library,
    load_ontology,
    mention_warnings,
    require_outputs,
)
from ensue.cli.side_outputs import RefusedRecords, file_of_history, refuse_shared_files
from ensue.cli.spark_run import SPARK, missing_for_spark
from ensue.cli.terminal import EXIT_FINDINGS, counted, say, standard_output
from ensue.engine.choosing import ENGINES
from ensue.engine.inputs import EventLike
from ensue.errors import EventError, UsageError
from ensue.events.cloudevents import encode
from ensue.events.event import Event, Rejected
from ensue.events.files.output.whole_file import WholeFile
from ensue.events.records.reading import read_events
from ensue.events.sources import FORMATS, LINES, STDIN
from ensue.events.times import parse_time
from ensue.events.types import TypeSystem
from ensue.library import Library

if TYPE_CHECKING:
    from ensue.knowledge import Ontology

app = typer.Typer(
    name="history",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Keep events in a history, find them, and replay them through rules.",
)

Url = Annotated[
    str,
    typer.Argument(
        metavar="URL",
        help="memory:, sqlite:FILE, postgresql://..., mysql://... or parquet:FOLDER.",
    ),
]
Since = Annotated[
    str | None, typer.Option(metavar="TIME", help="Only events from this time on, RFC 3339.")
]
Until = Annotated[str | None, typer.Option(metavar="TIME", help="Only events before this time.")]
Out = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write the events to a file, not to stdout.")
]


@app.command("add")
def add(
    url: Url,
    events: Annotated[
        str,
        typer.Option(
            "--events", "-e", metavar="FILE|-", help="The events; - is the standard input."
        ),
    ],
    format: Annotated[  # noqa: A002 - the name that users know
        str | None,
        typer.Option(
            metavar="jsonl|csv|parquet",
            help="The format of the events, if the name of the file does not tell.",
        ),
    ] = None,
    max_age: Annotated[
        str | None,
        typer.Option(metavar="D", help="Delete events that ended this long before the latest."),
    ] = None,
    max_count: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Keep only this many events, those that came last."),
    ] = None,
    dead_letter: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write refused records to a file.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at the first refused record.")
    ] = False,
) -> None:
    """Keep events in a history.

    The events that the last line counts are on disk.

    \b
    Example:
      ensue history add sqlite:events.db --events may.jsonl

    \b
    Exit codes:
      0  the events are kept; records that are no events were named
      1  --strict, and a record was refused
      2  a history or a file that cannot be used, or a wrong call
    """
    from ensue.history import History

    name = "stdin" if events == STDIN else events
    known = LINES if events == STDIN else FORMATS.get(Path(events).suffix.lower(), LINES)
    with History.open(url, max_age=max_age, max_count=max_count) as history, ExitStack() as files:
        refused = RefusedRecords(name, dead_letter, (format or known) == LINES, files)

        def on_refused(event: EventLike, error: EventError) -> None:
            assert isinstance(event, Event)
            refused.take(Rejected(0, encode(event), error.problems), f"{name}, `{event.id}`")

        records = read_events(events, TypeSystem({}), format)
        kept = history.add_all(_events(records, refused, strict), on_refused)
    parts = [f"{counted(kept, 'event')} kept in `{url}`"]
    parts += [refused.summary()] if refused.count else []
    say("; ".join(parts), "dim")
    if strict and refused.count:
        say("stopped at the first refused record, because of `--strict`", "red")
        raise typer.Exit(EXIT_FINDINGS)


def _events(
    records: Iterable[Event | Rejected], refused: RefusedRecords, strict: bool
) -> Iterator[Event]:
    for record in records:
        if isinstance(record, Event):
            yield record
        else:
            refused.take(record)
        if strict and refused.count:
            return


@app.command("find")
def find(
    url: Url,
    filter: Annotated[  # noqa: A002 - the name that users know
        str, typer.Argument(metavar="[FILTER]", help="A filter; without one, all events.")
    ] = "TRUE",
    since: Since = None,
    until: Until = None,
    limit: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="At most this many events.")
    ] = None,
    out: Out = None,
    ontology: OntologyFiles = None,
) -> None:
    """Print the events that match a filter, as JSON lines, by start and then by arrival.

    \b
    Example:
      ensue history find sqlite:events.db "level = 'error' AND start AFTER(10 s) (type = 'Deploy')"

    \b
    Exit codes:
      0  good, with or without events
      2  a filter with mistakes, a history that cannot be used, or a wrong call
    """
    from itertools import islice

    from ensue.history import History

    begin, stop = _time("--since", since), _time("--until", until)
    refuse_shared_files([("URL", file_of_history(url)), ("--out", out)], [])
    known = _known(filter, ontology)
    _require_kept(url)
    with History.open(url, ontology=known) as history:
        written = _write(islice(history.scan(filter, begin, stop), limit), out)
    say(f"{counted(written, 'event')} found", "dim")


@app.command("replay")
def replay(
    url: Url,
    libraries: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[LIB]...", help="The library to run; or give --filter."),
    ] = None,
    filter: Annotated[  # noqa: A002
        str | None,
        typer.Option("--filter", metavar="FILTER", help="A filter to try instead of a library."),
    ] = None,
    since: Since = None,
    until: Until = None,
    correlation: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only the outputs of this correlation.")
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            "--engine", metavar="NAME", help=f"{', '.join(['auto', *ENGINES])} or {SPARK}."
        ),
    ] = "auto",
    out: Out = None,
    ontology: OntologyFiles = None,
    settings: SetOption = None,
) -> None:
    """Run a library, or try a filter, over a span of a history.

    The result is that of a live run: events come in the order of their times, and temporal
    operators see only earlier events. With --engine spark, Spark reads the folder of a parquet:
    history.

    \b
    Example:
      ensue history replay sqlite:events.db rules.cor --since 2024-05-01T00:00:00Z
      ensue history replay sqlite:events.db --filter "start AFTER(2 s) (level = 'error')"
      ensue history replay parquet:events rules.cor --engine spark

    \b
    Exit codes:
      0  good, with or without outputs
      2  a library or a filter with mistakes, a history that cannot be used, or a wrong call
    """
    from ensue.history import History
    from ensue.history.replaying import replay_library

    if (filter is None) == (not libraries):
        raise UsageError("a replay needs either the files of a library or `--filter`: give one")
    begin, stop = _time("--since", since), _time("--until", until)
    refuse_shared_files([("URL", file_of_history(url)), ("--out", out)], libraries or [])
    if filter is not None:
        known = _known(filter, ontology)
        _require_kept(url)
        with History.open(url, ontology=known) as history:
            written = _write(history.backtest(filter, begin, stop), out)
        say(f"{counted(written, 'event')} would have matched", "dim")
        return
    library = load_library(libraries or [], ontology, settings)
    if correlation is not None:
        require_outputs(library, correlation)
    mention_warnings(library, libraries or [], NEEDS_HISTORY)
    refused: list[str] = []

    def on_refused(event: Event, error: EventError) -> None:
        refused.append(event.id)
        say(f"`{event.id}`: {error}", "red")

    if engine == SPARK:
        outputs = _on_spark(url, library, begin, stop)
        written = _write(_only(outputs, correlation), out)
    else:
        _require_kept(url)
        with History.open(url) as history:
            outputs = replay_library(history, library, begin, stop, engine, on_refused)
            written = _write(_only(outputs, correlation), out)
    parts = [f"{counted(written, 'output')}"]
    parts += [f"{len(refused):,} refused"] if refused else []
    say("; ".join(parts), "dim")


def _on_spark(url: str, library: Library, since: int | None, until: int | None) -> Iterator[Event]:
    scheme, _, folder = url.partition(":")
    if scheme != "parquet":
        raise UsageError(
            f"`--engine {SPARK}` needs a `parquet:` history; given is `{scheme}:`. Copy it with"
            " `ensue history find` and `ensue history add`, or choose another engine"
        )
    if (lacking := missing_for_spark()) is not None:
        raise UsageError(f"`--engine {SPARK}` cannot be used here: {lacking}")
    from ensue.spark.failures import as_job_error
    from ensue.spark.history import replayed

    with as_job_error(f"the replay of `{url}`"):
        yield from replayed(folder, library, since, until)


def _only(outputs: Iterable[Event], correlation: str | None) -> Iterator[Event]:
    for output in outputs:
        if correlation is None or output.extensions.get("correlation") == correlation:
            yield output


def _write(events: Iterable[Event], out: Path | None) -> int:
    written = 0
    with ExitStack() as files:
        sink: BinaryIO = files.enter_context(WholeFile(out)).file if out else standard_output()
        for event in events:
            sink.write(encode(event) + b"\n")
            written += 1
        sink.flush()
    return written


def _known(text: str, files: Sequence[Path] | None) -> Ontology | None:
    """The ontology, if any. Raises `UsageError` if a filter needs a missing one or concept."""
    from ensue.history import History
    from ensue.subscriptions import Filter, Index
    from ensue.subscriptions.concepts import concepts_in, terms_in

    filter_ = Filter.parse(text)
    known = load_ontology(files)
    if known is None and any(concepts_in(term) for term in terms_in(filter_.expression)):
        raise UsageError(f"`{filter_}` needs an ontology: give its files by `--ontology FILE`")
    with History.open("memory:") as empty:
        Index(history=empty, ontology=known).add("filter", filter_)
    return known


def _time(option: str, text: str | None) -> int | None:
    try:
        return None if text is None else parse_time(text)
    except ValueError as error:
        raise UsageError(f"`{option}`: {error}") from None


def _require_kept(url: str) -> None:
    """Raise `UsageError` for a missing file or folder, so that a typo is noticed."""
    kind, _, path = url.partition(":")
    if kind in ("sqlite", "parquet") and path and not Path(path).exists():
        raise UsageError(
            f"there is no history `{url}`: check the path for a typo, or add events first, by"
            f" `ensue history add {url} --events FILE`"
        )
