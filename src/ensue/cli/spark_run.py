"""`ensue run --engine spark`.

PySpark is loaded only here, when this engine is chosen; if it is missing, the message says what to
install. Executors read files, folders, patterns and remote paths; this process reads the standard
input and files that Spark cannot decompress, and sends their events to Spark. `--lateness` and
`--explain` are refused.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from glob import has_magic
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import msgspec
import typer

from ensue.cli import hints
from ensue.cli.outputs import silent_at_first
from ensue.cli.sampled import Sampled, hints_of_sample
from ensue.cli.side_outputs import Naming, RefusedRecords
from ensue.cli.terminal import EXIT_FINDINGS, counted, listed, say, standard_output
from ensue.engine.run import Run
from ensue.engine.timing.jumps import AUTO, UNBOUNDED
from ensue.errors import UsageError
from ensue.events.files.output.endings import format_of
from ensue.events.files.output.whole_file import WholeFile
from ensue.events.mapping import Mapping
from ensue.events.sources import LINES, STDIN, InputFile, open_inputs
from ensue.events.sources.contents import COMPRESSIONS, Given, check_cells, format_of_ending
from ensue.events.sources.finding import find_files
from ensue.events.sources.inputs import inputs_of
from ensue.events.sources.opening import is_archive, is_url
from ensue.events.sources.tables import is_database, is_delta_table
from ensue.events.times import format_time
from ensue.library import Library

if TYPE_CHECKING:
    from ensue.spark.batch.file_outputs import FileOutputs, OutputForm

SPARK = "spark"
TABLE = "table"
MOST_LOOKED_AT = 1_000
"""Refused records whose causes are told, each cause once."""
_SCHEME = re.compile(r"^[a-z][a-z0-9+.-]+:/")


def missing_for_spark() -> str | None:
    """What is missing for Spark on this machine, and what to install; None if nothing is."""
    if find_spec("pyspark") is None:
        return "PySpark is not installed; `pip install 'ensue[spark]'` brings it, and it needs Java"
    # A remote session has its own Java.
    if "SPARK_REMOTE" in os.environ:
        return None
    home = os.environ.get("JAVA_HOME")
    java = Path(home, "bin", "java").exists() if home else shutil.which("java") is not None
    if java:
        return None
    where = f"there is none in `JAVA_HOME` ({home})" if home else "there is no `java` on the path"
    return f"Spark runs on Java, and {where}; install Java 17 or newer"


def start_on_spark(
    library: Library,
    correlation: str | None,
    lateness: int | None,
    explain: bool,
    max_jump: float = UNBOUNDED,
) -> Run:
    """A run that collects its events, and runs them on Spark when it is finished."""
    _refuse([lateness is not None and "--lateness", explain and "--explain"])
    from ensue.spark.batch.events import SparkRun

    # It has all methods of a `Run` that a bounded input needs.
    return cast(Run, SparkRun(library, correlation, max_jump))


def mention_read_here(inputs: Sequence[InputFile], most_bytes: int = 1 << 28) -> None:
    """Say which files this process reads for Spark. Raises `UsageError` if they are too large.

    Their events are collected in memory before they go to Spark.
    """
    packed = [each for each in inputs if not each.is_stdin]
    if not packed:
        return
    names = listed([each.name for each in packed])
    size = sum(each.size or 0 for each in packed)
    if size > most_bytes:
        raise UsageError(
            f"{names}: Spark cannot read this format or compression, so this process would have to"
            f" read it, and {size / 1e6:,.0f} MB are too many (at most"
            f" {most_bytes / 1e6:,.0f} MB): compress the files with gzip, write them as"
            " Parquet, or choose the engine `batch`"
        )
    say(f"{names}: read by this process, since Spark cannot read the format or compression", "dim")


def _refuse(given: Sequence[str | bool]) -> None:
    """Raise `UsageError` for options that Spark does not support, or if Spark is missing."""
    if "--lateness" in given:
        raise UsageError(
            "`--engine spark` reads a bounded input, sorted by time, and does not allow"
            " `--lateness`: leave it out, or choose another engine"
        )
    if "--explain" in given:
        raise UsageError("`--engine spark` does not allow `--explain`: choose the engine `step`")
    if (lacking := missing_for_spark()) is not None:
        raise UsageError(f"`--engine spark` cannot be used here: {lacking}")


# --- files that executors read ------------------------------------------------------------------


@dataclass(frozen=True)
class FilesOnSpark:
    """The options of `ensue run --engine spark`; `out_name` is `out` as the user has said it.

    With `is_table` the only path is the name of a table in a catalog.
    """

    library: Library
    paths: tuple[str, ...]
    format: str | None
    delimiter: str | None
    mapping: Mapping
    out: Path | None
    dead_letter: Path | None
    correlation: str | None
    until: int | None
    strict: bool
    max_jump: str = AUTO
    header: str | None = None
    nulls: tuple[str, ...] = ()
    verbose: bool = False
    out_name: str | None = None
    is_table: bool = False

    @property
    def given(self) -> Given:
        """The options about the files. Raises `UsageError` for values that are not valid."""
        return Given.of(self.format, self.delimiter, self.header, self.nulls)

    @property
    def writes_folder(self) -> bool:
        return self.out is not None and _is_folder(self.out)

    @property
    def form(self) -> OutputForm:
        """The form of the outputs, by the ending of `--out`."""
        if self.writes_folder:
            return "folder"
        return "lines" if self.out is None or format_of(self.out) is None else "tables"

    @property
    def events(self) -> str:
        """The paths, as messages name them."""
        more = f" and {len(self.paths) - 1} more" if len(self.paths) > 1 else ""
        return f"{self.paths[0]}{more}"

    @property
    def is_one_file(self) -> bool:
        return len(self.paths) == 1 and Path(self.paths[0]).is_file()


def is_for_executors(paths: Sequence[str], format_: str | None = None) -> bool:
    """Whether executors can read the events: files of formats and compressions that Spark reads."""
    return all(_is_for_executors(each, format_) for each in paths)


def _is_for_executors(events: str, format_: str | None) -> bool:
    if events == STDIN:
        return False
    place = Path(events)
    if is_archive(place) or is_delta_table(place) or is_database(place):
        return False
    if is_url(events) and _is_read_by_python(events):
        return False
    if not Path(events).is_file():
        # A folder, a pattern, or a path that only Spark can resolve.
        return not any(_is_unreadable(each) for each in _files_here(events, format_))
    (file,) = open_inputs([events], format_)
    # Spark decompresses by the ending of the name, and Zstandard only if Hadoop was built with it.
    is_unpacked = file.compression is None or (
        file.compression == "gzip" and Path(events).suffix.lower() == ".gz"
    )
    return is_unpacked and file.size is not None and file.format != "arrow"


def _is_read_by_python(url: str) -> bool:
    """Whether a URL is of a kind that Spark does not know."""
    return url.partition(":")[0].lower() in ("http", "https", "memory", "zip")


def _files_here(events: str, format_: str | None) -> Sequence[str]:
    """The local files of a folder or a pattern; none for remote paths."""
    # Spark's patterns may name alternatives in braces, which only Spark can list.
    is_elsewhere = _SCHEME.match(events) or not has_magic(events) or "{" in events
    if not Path(events).is_dir() and is_elsewhere:
        return ()
    return find_files([events], format_)


def _order(paths: Sequence[str], format_: str | None) -> tuple[str, ...]:
    """The files of several local paths in the order given; none if only Spark can list them.

    Raises `UsageError` for a file that is named twice.
    """
    is_here = all(Path(each).is_file() or _files_here(each, format_) for each in paths)
    if len(paths) == 1 or not is_here:
        return ()
    return tuple(map(os.path.abspath, find_files(paths, format_)))


def _are_here(paths: Sequence[str]) -> bool:
    """Whether workers of a local session can open all files as they are."""
    files = [each for path in paths for each in _files_here(path, None) or [path]]
    return all(Path(each).is_file() and Path(each).suffix.lower() != ".gz" for each in files)


def _is_unreadable(file: str) -> bool:
    """Whether Spark cannot read a file, by the ending of its name."""
    compression = COMPRESSIONS.get(Path(file).suffix.lower())
    return compression not in (None, "gzip") or format_of_ending(file) == "arrow"


def _is_folder(out: Path) -> bool:
    return out.suffix.lower() == ".parquet" or out.is_dir()


def run_on_executors(asked: FilesOnSpark, given: Sequence[str | bool]) -> None:
    """Run a library over files that executors read, and report the result.

    `given` has those of the given options that Spark does not support.
    """
    _refuse(given)
    from ensue.spark.failures import as_job_error

    # At Ctrl-C, the connection to Java logs a traceback; without a handler it goes to the terminal.
    logging.getLogger().addHandler(logging.NullHandler())
    with as_job_error(f"the run over `{asked.events}`"):
        _run_on_executors(asked)


def _run_on_executors(asked: FilesOnSpark) -> None:
    from ensue.spark.session import SHORT_LIVED, session_beside

    files = asked.given
    format_ = TABLE if asked.is_table else asked.format or _common_format(asked.paths, files)
    check_cells(files, [format_])
    if asked.out is not None and asked.writes_folder and asked.out.exists():
        from ensue.spark.batch.file_outputs import taken

        raise taken(str(asked.out))
    # If workers open the files themselves, Java has little to do.
    with session_beside(SHORT_LIVED if _are_here(asked.paths) else None) as spark:
        from ensue.spark.batch.files import FileRun
        from ensue.spark.batch.inputs import FileReading
    given = spark.result(), asked.library, asked.paths, format_, asked.until, asked.correlation
    reading = FileReading(
        asked.mapping,
        files.delimiter,
        header=files.header,
        order=_order(asked.paths, asked.format),
        nulls=files.nulls,
        names=_names(asked),
    )
    run = FileRun.of(*given, reading=reading, jump=asked.max_jump)
    if asked.is_table:
        say(f"reading the table `{asked.events}` on Spark", "dim")
    elif not asked.is_one_file:
        say(f"reading {counted(run.files, 'file')} of `{asked.events}` on Spark", "dim")
    outputs = run.outputs(asked.form)
    while (other := outputs.another_reading(reading)) is not None:
        outputs.close()
        reading = other
        again = FileRun.of(*given, reading=reading, jump=asked.max_jump)
        outputs = again.outputs(asked.form)
    try:
        _write(asked, outputs, format_)
    finally:
        outputs.close()


def _write(asked: FilesOnSpark, outputs: FileOutputs, format_: str) -> None:
    """Write the outputs and the refused records, and report their numbers."""
    silent = silent_at_first(asked.library.checked)
    if asked.correlation is not None:
        silent &= {asked.correlation}
    with ExitStack() as files:
        naming: Naming = "each" if asked.verbose else "at the end"
        aside = RefusedRecords(asked.events, None, format_ == LINES, files, naming=naming)
        _name_refused(asked, outputs, aside)
        if outputs.rejected_count and asked.strict:
            say("stopped at the first refused record, because of `--strict`", "red")
            raise typer.Exit(EXIT_FINDINGS)
        if asked.writes_folder:
            outputs.write(asked.out_name or str(asked.out))
            silent -= outputs.rules_of_folder()
        elif asked.out is not None and asked.form == "tables":
            _write_table(asked, asked.out, outputs, silent)
        else:
            sink: BinaryIO = (
                files.enter_context(WholeFile(asked.out)).file if asked.out else standard_output()
            )
            for block in outputs.lines():
                sink.write(block)
                silent -= {name for name in silent if _name_in_line(name) in block}
            sink.flush()
    _tell(asked, outputs, aside, silent)


def _name_in_line(rule: str) -> bytes:
    """A rule as the lines of its outputs name it."""
    return f'"correlation":"{rule}"'.encode()


def _write_table(asked: FilesOnSpark, out: Path, outputs: FileOutputs, silent: set[str]) -> None:
    """Write a file of outputs, and take from `silent` the rules that have some."""
    import pyarrow as pa

    from ensue.engine.batch.output.schema import output_schema
    from ensue.events.files.output.tables import TableFile

    checked = asked.library.checked
    chosen = [each for each in checked.correlations if asked.correlation in (None, each.name)]
    columns = output_schema(checked.types, chosen).schema
    found = TableFile(out, columns)
    known = set(columns.names)
    for table in outputs.tables():
        # Spark returns times in the time zone of its session.
        fields = [columns.field(each.name) if each.name in known else each for each in table.schema]
        found.add(table.cast(pa.schema(fields)))
        silent.difference_update(table.column("correlation").unique().to_pylist())
    with WholeFile(out) as whole:
        found.write_to(whole.file)


def _name_refused(asked: FilesOnSpark, outputs: FileOutputs, aside: RefusedRecords) -> None:
    """Name the causes of refused records, and write all of them to `--dead-letter`."""
    path, count = asked.dead_letter, outputs.rejected_count
    named = count if aside.names_each else MOST_LOOKED_AT
    named = 1 if asked.strict else named
    if count and path is not None:
        outputs.keep_rejected()
    if count:
        from ensue.spark.worker.files.line_places import local_path

        names = _names(asked)
        for file, record in outputs.rejected.sample(named):
            place = names.get(local_path(file or "") or "", file or asked.events)
            place = asked.events if asked.is_one_file else place
            aside.take(msgspec.structs.replace(record, file=place))
    aside.tell()
    if count > aside.count and not asked.strict:
        rest = f"all are in `{path}`" if path else "`--dead-letter FOLDER` keeps them"
        say(f"{asked.events}: more records are refused; {rest}", "red")
    aside.count, aside.path = count, path
    aside.without_offset = max(aside.without_offset, outputs.without_offset)
    if path is None:
        return
    if path.suffix:
        with WholeFile(path) as letters:
            for block in outputs.rejected.dead_letters(count) if count else ():
                letters.file.write(block)
    elif count:
        from ensue.spark.batch.inputs import folder_for_java

        spark = outputs.rejected.rows.sparkSession
        outputs.rejected.write_folder(folder_for_java(spark, str(path)))


def _names(asked: FilesOnSpark) -> dict[str, str]:
    """The names that other engines give to local files, by their absolute paths."""
    files = [each for path in asked.paths for each in _files_here(path, asked.format) or [path]]
    return {os.path.abspath(each): each for each in files}


def _tell(
    asked: FilesOnSpark, outputs: FileOutputs, aside: RefusedRecords, silent: Collection[str]
) -> None:
    counts = outputs.counts
    if asked.until is not None:
        latest = outputs.latest_time()
        if latest is not None and asked.until < latest:
            say(
                f"`--until` lies before the last event ({format_time(latest)}), so it had no"
                " effect",
                "yellow",
            )
    found = aside.hints(counts.events)
    if counts.events and not counts.outputs:
        hint = hints.about_types(outputs.event_types(), asked.library.checked, False)
        found += [] if hint is None else [hint]
    elif outputs.unread[0]:
        found.append(hints.about_unread(*outputs.unread))
    if silent:
        sampled = Sampled(asked.paths, asked.given, asked.mapping)
        found += hints_of_sample(asked.library.checked, sampled, silent)
    for each in found:
        say(each, "yellow")
    parts = [f"{counted(counts.events, 'event')} read"]
    parts += [aside.summary()] if aside.count else []
    parts += [
        f"{counts.without_key[name]:,} without a key for `{name}`"
        for name in asked.library.correlations.names
        if counts.without_key[name]
    ]
    place = f" in `{asked.out_name or asked.out}`" if asked.out else ""
    say(f"{', '.join(parts)}; {counted(counts.outputs, 'output')}{place}", "dim")
    if aside.count and not counts.events:
        raise typer.Exit(EXIT_FINDINGS)


def _common_format(paths: Sequence[str], given: Given) -> str:
    found = {_format_of(each, given): each for each in paths}
    if len(found) > 1:
        names = ", ".join(f"`{path}` is {name}" for name, path in sorted(found.items()))
        raise UsageError(
            f"Spark reads files of one format at a time, and {names}: run each format by itself"
        )
    return next(iter(found))


def _format_of(events: str, given: Given) -> str:
    """The format of the files of a path; for remote paths, by the ending of the path."""
    if Path(events).is_file():
        return _format_inside(events, given)
    files = _files_here(events, given.format)
    if not files:
        return format_of_ending(events) or ("csv" if given.is_csv else "parquet")
    # All files of a folder have one format: that of the first name with a known ending.
    told = (found for each in files if (found := format_of_ending(each)) is not None)
    return next(told, None) or _format_inside(files[0], given)


def _format_inside(file: str, given: Given) -> str:
    (found,) = inputs_of([file], given)
    return found.format
