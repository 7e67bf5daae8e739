"""The file of `ensue stream`: where events come from, where outputs go, and how often.

In comes the text of a TOML file; out goes a `PipelineConfig`, or a `UsageError` that says where in
the file something is wrong. Paths are taken from the folder that the command runs in. Whether the
columns of the source fit the rules is told when the source has been opened, before anything runs.
The module is long because every setting is declared and checked in one place.

    [source]                    # format, and where: `path`, or `servers` and `topics` of Kafka
    format = "parquet"
    path = "events/"            # JSON lines and CSV need no `schema`; CSV may have a `delimiter`
    schema = "id string, type string, time timestamp, Sensor int, Value double"

    [columns]                   # where the names differ: columns, paths, numbers with a unit
    time = "ts:ms"
    user = "actor.name"

    [stream]
    checkpoint = "checkpoint/"
    lateness = "10 s"
    idle = "1 min"              # after so long without events the wall clock moves timers
    max_jump = "1 d"            # an event further ahead of the stream is rejected; or "none"
    key = "${env:STREAM_KEY}"   # signs the state in the checkpoint; or "${file:PATH}"
    trigger = "5 s"             # or "available now": read what is there, and end

    [rules]                     # in place of files: a table with columns `name` and `text`
    format = "delta"
    path = "rules/"
    every = "10 s"              # how often it is looked at

    [parameters]                # values of parameters of the library
    limit = 10

    [sink]
    format = "parquet"
    path = "matches/"

    [late]                      # late events; without it they go to "matches-late/"
    format = "parquet"
    path = "late/"

    [rejected]                  # rows that are no events; without it, to "matches-rejected/"
    format = "parquet"
    path = "rejected/"
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec

from ensue.configuration.toml import MOST_PROBLEMS, STOPPED, parse_toml, read_settings_file
from ensue.engine.timing.jumps import AUTO, NONE
from ensue.errors import EnsueError, UsageError
from ensue.events.mapping import Mapping as UserMapping
from ensue.events.sources.contents import Given
from ensue.lang.diagnostics import did_you_mean
from ensue.library import duration_microseconds
from ensue.spark.streaming.checkpoint.signing import key_by_reference

KAFKA = "kafka"
CONSOLE = "console"
PLAIN_FORMATS = ("parquet", "json", "csv", "orc")
FILE_FORMATS = (*PLAIN_FORMATS, "delta")
LINE_FORMATS = {"json": "jsonl", "jsonl": "jsonl", "csv": "csv"}
"""Formats of text, by what `ensue run` calls them."""
SOURCE_FORMATS = (*FILE_FORMATS, "jsonl", KAFKA)
SINK_FORMATS = (*FILE_FORMATS, KAFKA, CONSOLE)
AVAILABLE_NOW = "available now"

Option = str | int | float | bool


class SourceConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where events come from.

    Files have a `path`; records of Kafka have `servers`, and `topics` or a `pattern` of topics.
    `schema` is in Spark's words, and has Spark read the files; without it a folder of Parquet that
    has files tells its own, and text is read as `ensue run` reads it, CSV with its `delimiter` and
    `header` and texts that stand for a `null`. `type` is the type of all events, `timezone` the
    zone of times without an offset, and `year` the year of times without one at the beginning of a
    file. `start` says where a topic is begun, as long as there is no checkpoint.
    """

    format: str
    path: str | None = None
    type: str | None = None
    timezone: str | None = None
    schema: str | None = None
    delimiter: str | None = None
    header: str | None = None
    null: list[str] | None = None
    year: int | None = None
    servers: str | None = None
    topics: list[str] | None = None
    pattern: str | None = None
    start: Literal["earliest", "latest"] = "earliest"
    options: dict[str, Option] = {}

    @property
    def name(self) -> str:
        """The topics or the path, for messages."""
        if self.format == KAFKA:
            return self.pattern or ", ".join(self.topics or ())
        return self.path or self.format

    @property
    def is_text(self) -> bool:
        """Whether files are read line by line, and not by Spark's own reader."""
        return self.format in LINE_FORMATS and self.schema is None

    @property
    def given(self) -> Given:
        """The options for text files. Raises `UsageError` for options that cannot be."""
        return Given.of(LINE_FORMATS[self.format], self.delimiter, self.header, self.null or ())


class SinkConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where outputs, late events or rejected rows are written.

    `mode` is how events are written to a topic; `servers` default to the servers of the source.

    `partition_by` names the columns by which a folder of files is partitioned; `ensue_date` is the
    day of an output. With `together`, late events and rejected rows that have no sink of their own
    stand among the outputs, told apart by `ensue_kind`.
    """

    format: str
    path: str | None = None
    servers: str | None = None
    topic: str | None = None
    mode: Literal["binary", "structured"] = "structured"
    partition_by: list[str] = []
    together: bool = False
    options: dict[str, Option] = {}


class RulesConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table with columns `name` and `text`, as files or by its name, and how often to look."""

    format: str = "parquet"
    path: str | None = None
    table: str | None = None
    every: str = "10 s"
    options: dict[str, Option] = {}

    @property
    def place(self) -> str:
        return f"`{self.table or self.path}`"


class StreamConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the stream runs: its checkpoint, its times, and how its state is spread."""

    checkpoint: str
    lateness: str = "0 s"
    trigger: str = AVAILABLE_NOW
    buckets: int | None = None
    correlations: list[str] | None = None
    arrival: str | None = None
    idle: str | None = None
    max_jump: str = AUTO
    key: str | None = None

    @property
    def signing_key(self) -> bytes | None:
        """The key that `key` refers to. Raises `UsageError` if it cannot be had."""
        return key_by_reference(self.key)

    @property
    def trigger_milliseconds(self) -> int | None:
        """How often a micro-batch begins; None to read what is there, and end."""
        if self.trigger == AVAILABLE_NOW:
            return None
        return max(1, duration_microseconds(self.trigger) // 1000)


class PipelineConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A pipeline, as its configuration file describes it."""

    source: SourceConfig
    stream: StreamConfig
    sink: SinkConfig
    late: SinkConfig | None = None
    rejected: SinkConfig | None = None
    columns: dict[str, str | dict[str, str]] = {}
    rules: RulesConfig | None = None
    parameters: dict[str, Option] = {}
    spark: dict[str, Option] = {}

    @property
    def mapping(self) -> UserMapping:
        """Which column is what. Raises `UsageError` for a mapping that cannot be meant."""
        source = self.source
        return UserMapping.of(self.columns, source.type, source.timezone, source.year)

    @property
    def sinks(self) -> dict[str, SinkConfig]:
        """The sinks by the name of their table; a folder of outputs has two beside it."""
        named = {"sink": self.sink, "late": self.late, "rejected": self.rejected}
        return {
            name: found
            for name, sink in named.items()
            if (found := sink or self._beside(name)) is not None
        }

    def _beside(self, name: str) -> SinkConfig | None:
        """The folder for what is no output, where it was given none.

        None for a console, and for a table that only its own format can write to.
        """
        sink = self.sink
        if sink.path is None or sink.together or sink.format not in PLAIN_FORMATS:
            return None
        # CSV has no lists, and what is left out has a list of problems.
        format_ = "json" if sink.format == "csv" else sink.format
        return SinkConfig(format_, f"{sink.path.rstrip('/')}-{name}")

    @property
    def uses_kafka(self) -> bool:
        return KAFKA in (self.source.format, *(sink.format for sink in self.sinks.values()))

    def servers_of(self, sink: SinkConfig) -> str | None:
        return sink.servers or self.source.servers


def load_config(path: str | Path) -> PipelineConfig:
    """Raises `UsageError` for a file that is no configuration of a stream."""
    place = Path(path)
    if not place.is_file():
        raise UsageError(f"there is no file `{place}`: give the TOML file of the stream")
    tables = read_settings_file(place, "give the TOML file of the stream").tables
    try:
        return config_of(tables)
    except UsageError as error:
        raise UsageError(f"`{place}`: {error}") from None


TABLES: dict[str, type[msgspec.Struct]] = {
    "source": SourceConfig,
    "stream": StreamConfig,
    "sink": SinkConfig,
    "late": SinkConfig,
    "rejected": SinkConfig,
    "rules": RulesConfig,
}
NEEDED = {
    "source": 'where events come from, as `format = "parquet"` and `path = "events/"`',
    "stream": 'how it runs, as `checkpoint = "checkpoint/"`',
    "sink": 'where outputs go, as `format = "parquet"` and `path = "matches/"`',
}


def parse_config(text: str) -> PipelineConfig:
    return config_of(parse_toml(text))


def config_of(tables: dict[str, Any]) -> PipelineConfig:
    """The configuration that tables give. Raises `UsageError`."""
    try:
        _check_names(tables)
        config = msgspec.convert(tables, PipelineConfig)
    except msgspec.ValidationError as error:
        raise UsageError(_in_words(str(error))) from None
    _check_source(config)
    _ = config.mapping
    for name, sink in config.sinks.items():
        _check_sink(name, sink, config)
    _check_places(config)
    _check_duration("lateness", config.stream.lateness)
    if config.stream.idle is not None:
        _check_duration("idle", config.stream.idle)
    if config.stream.max_jump not in (AUTO, NONE):
        _check_duration("max_jump", config.stream.max_jump, f', `"{AUTO}"` or `"{NONE}"`')
    _ = config.stream.signing_key
    if config.rules is not None:
        _check_rules(config.rules)
    if config.stream.trigger != AVAILABLE_NOW:
        _check_duration("trigger", config.stream.trigger, f', or "{AVAILABLE_NOW}"')
    if config.stream.buckets is not None and config.stream.buckets < 1:
        raise UsageError(
            f"`buckets` in `[stream]` is {config.stream.buckets}: at least 1 is needed"
        )
    return config


def _check_names(tables: dict[str, Any]) -> None:
    """Raises `UsageError` with all missing and unknown names at once."""
    problems = [
        f"the table `[{name}]` is missing: it says {what}"
        for name, what in NEEDED.items()
        if name not in tables
    ]
    for name, given in tables.items():
        if name not in PipelineConfig.__struct_fields__:
            hint = did_you_mean(name, PipelineConfig.__struct_fields__)
            problems.append(f"there is no table `[{name}]`; {hint}")
        elif name in TABLES and isinstance(given, dict):
            names = TABLES[name].__struct_fields__
            problems += [
                f"unknown field `{key}`, in `[{name}]`; {did_you_mean(key, names)}"
                for key in given
                if key not in names
            ]
        if len(problems) >= MOST_PROBLEMS:
            problems = [*problems[:MOST_PROBLEMS], STOPPED]
            break
    if problems:
        raise UsageError("\n".join(problems))


def _check_source(config: PipelineConfig) -> None:
    source = config.source
    _check_format("source", source.format, SOURCE_FORMATS)
    if source.format != KAFKA:
        _refuse("source", source, ("servers", "topics", "pattern"))
        if source.path is None:
            raise UsageError("missing required field `path`, in `[source]`")
        _check_cells(source)
        if not source.is_text:
            _refuse("source", source, ("year",))
        if source.is_text and config.stream.arrival is not None:
            raise UsageError(
                "`arrival` names a column, and lines of files are in order as they stand there:"
                " leave it out"
            )
        return
    _refuse("source", source, ("path", "schema", "type", "timezone", "delimiter", "header"))
    _refuse("source", source, ("null", "year"))
    if not source.servers:
        raise UsageError('`[source]` of format `kafka` needs `servers`, as `servers = "host:9092"`')
    if bool(source.topics) == bool(source.pattern):
        raise UsageError(
            "`[source]` of format `kafka` needs either `topics`, a list of names, or `pattern`, a"
            " regular expression of Java"
        )
    for name, given in (("[columns]", config.columns), ("arrival", config.stream.arrival)):
        if given:
            raise UsageError(
                f"`{name}` is for sources of columns; events of Kafka are CloudEvents, and are in"
                " order by partition and offset: leave it out"
            )


def _check_cells(source: SourceConfig) -> None:
    """Raises `UsageError` for options of CSV where there is none, or that cannot be read."""
    if source.is_text and source.format == "csv":
        _ = source.given
        for name in source.options:
            if name.lower() in ("sep", "delimiter", "header"):
                own = "header" if name.lower() == "header" else "delimiter"
                raise UsageError(
                    f"`{name}` in the `options` of `[source]` is for Spark's reader, which is used"
                    f" with a `schema`: give one, or say `{own}` in `[source]`. A first line that"
                    " names the columns needs nothing"
                )
        return
    for name in ("delimiter", "header", "null"):
        if getattr(source, name) is None:
            continue
        if source.format == "csv":
            option = "sep" if name == "delimiter" else "header"
            raise UsageError(
                f"`{name}` in `[source]` is for CSV without a `schema`: leave out the `schema`, or"
                f" give Spark's reader its own `options`, as `{option}`"
            )
        _refuse("source", source, (name,))


def _check_sink(name: str, sink: SinkConfig, config: PipelineConfig) -> None:
    _check_format(name, sink.format, SINK_FORMATS)
    if sink.format == KAFKA:
        _refuse(name, sink, ("path",))
        if not sink.topic:
            raise UsageError(f"`[{name}]` of format `kafka` needs a `topic`")
        if not config.servers_of(sink):
            raise UsageError(f"`[{name}]` of format `kafka` needs `servers`: the source has none")
        return
    _refuse(name, sink, ("topic", "servers"))
    if sink.format != CONSOLE and sink.path is None:
        raise UsageError(f"`[{name}]` of format `{sink.format}` needs a `path`")


def _check_places(config: PipelineConfig) -> None:
    """Raises `UsageError` if `[sink]` is a topic, and late or rejected events have no sink."""
    if config.sink.format != KAFKA:
        return
    needed = {"late": "late events", "rejected": "records that are no events"}
    for name, what in needed.items():
        if name not in config.sinks:
            raise UsageError(
                f"`[sink]` is a topic of outputs, so that {what} need a place of their own: add"
                f" `[{name}]`"
            )


def _refuse(table: str, given: SourceConfig | SinkConfig, names: tuple[str, ...]) -> None:
    for name in names:
        if getattr(given, name) is not None:
            raise UsageError(
                f"`{name}` in `[{table}]` has no meaning for the format `{given.format}`:"
                " leave it out"
            )


def _check_format(table: str, given: str, allowed: tuple[str, ...]) -> None:
    if given not in allowed:
        hint = did_you_mean(given, allowed)
        raise UsageError(f"`format` in `[{table}]` is `{given}`, which is not known here; {hint}")


def _check_rules(rules: RulesConfig) -> None:
    if (rules.path is None) == (rules.table is None):
        raise UsageError(
            "`[rules]` needs a `path` of files, or the name of a `table`, and one of them only"
        )
    _check_format("rules", rules.format, FILE_FORMATS)
    _check_duration("every", rules.every, table="rules")


def _check_duration(name: str, given: str, besides: str = "", table: str = "stream") -> None:
    try:
        duration_microseconds(given)
    except (EnsueError, ValueError):
        raise UsageError(
            f'`{name}` in `[{table}]` is "{given}": give a duration, as "10 s" or "5 min"{besides}'
        ) from None


def _in_words(problem: str) -> str:
    """`... - at `$.source`` as a place in the file."""
    what, _, place = problem.partition(" - at `$")
    where = place.rstrip("`").removeprefix(".")
    return f"{_lower(what)}, in `[{where}]`" if where else _lower(what)


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
