"""The file of `ensue stream`: where events come from, where outputs go, and how often.

In comes the text of a TOML file; out goes a `PipelineConfig`, or a `UsageError` that says where in
the file something is wrong. Paths are taken from the folder that the command runs in. Whether the
columns of the source fit the rules is told when the source has been opened, before anything runs.

    [source]                    # format, and where: `path`, or options of the format
    format = "parquet"
    path = "events/"
    schema = "id string, type string, time timestamp, Sensor int, Value double"

    [columns]                   # where the names differ
    type = "event_name"

    [stream]
    checkpoint = "checkpoint/"
    lateness = "10 s"
    trigger = "5 s"             # or "available now": read what is there, and end

    [sink]
    format = "parquet"
    path = "matches/"

    [late]                      # without it, late events are among the rows of the sink
    format = "parquet"
    path = "late/"
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec

from ensue.errors import EnsueError, UsageError
from ensue.lang.diagnostics import did_you_mean
from ensue.library import duration_microseconds

FILE_FORMATS = ("parquet", "json", "csv", "orc", "delta")
SINK_FORMATS = (*FILE_FORMATS, "console")
AVAILABLE_NOW = "available now"

Option = str | int | float | bool


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`schema` is in Spark's words; a folder of Parquet that has files tells its own."""

    format: str
    path: str
    schema: str | None = None
    options: dict[str, Option] = {}


class Sink(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: str
    path: str | None = None
    options: dict[str, Option] = {}


class Stream(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    checkpoint: str
    lateness: str = "0 s"
    trigger: str = AVAILABLE_NOW
    buckets: int | None = None
    correlations: list[str] | None = None
    arrival: str | None = None

    @property
    def trigger_milliseconds(self) -> int | None:
        """How often a micro-batch begins; None to read what is there, and end."""
        if self.trigger == AVAILABLE_NOW:
            return None
        return max(1, duration_microseconds(self.trigger) // 1000)


class PipelineConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    source: Source
    stream: Stream
    sink: Sink
    late: Sink | None = None
    columns: dict[str, str] = {}
    spark: dict[str, Option] = {}


def load_config(path: str | Path) -> PipelineConfig:
    """Raises `UsageError` for a file that is no configuration of a stream."""
    place = Path(path)
    if not place.is_file():
        raise UsageError(f"there is no file `{place}`: give the TOML file of the stream")
    try:
        return parse_config(place.read_text())
    except UnicodeDecodeError:
        raise UsageError(f"`{place}` is no text: give the TOML file of the stream") from None
    except UsageError as error:
        raise UsageError(f"`{place}`: {error}") from None


def parse_config(text: str) -> PipelineConfig:
    try:
        config = msgspec.convert(tomllib.loads(text), PipelineConfig)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"this is no TOML: {_lower(str(error))}") from None
    except msgspec.ValidationError as error:
        raise UsageError(_in_words(str(error))) from None
    _check_format("source", config.source.format, FILE_FORMATS)
    for name, sink in (("sink", config.sink), ("late", config.late)):
        if sink is not None:
            _check_format(name, sink.format, SINK_FORMATS)
            if sink.format != "console" and sink.path is None:
                raise UsageError(f"`[{name}]` of format `{sink.format}` needs a `path`")
    _check_duration("lateness", config.stream.lateness)
    if config.stream.trigger != AVAILABLE_NOW:
        _check_duration("trigger", config.stream.trigger, f', or "{AVAILABLE_NOW}"')
    if config.stream.buckets is not None and config.stream.buckets < 1:
        raise UsageError(
            f"`buckets` in `[stream]` is {config.stream.buckets}: at least 1 is needed"
        )
    return config


def _check_format(table: str, given: str, allowed: tuple[str, ...]) -> None:
    if given not in allowed:
        hint = did_you_mean(given, allowed)
        raise UsageError(f"`format` in `[{table}]` is `{given}`, which is not known here; {hint}")


def _check_duration(name: str, given: str, besides: str = "") -> None:
    try:
        duration_microseconds(given)
    except (EnsueError, ValueError):
        raise UsageError(
            f'`{name}` in `[stream]` is "{given}": give a duration, as "10 s" or "5 min"{besides}'
        ) from None


def _in_words(problem: str) -> str:
    """`... - at `$.source`` as a place in the file."""
    what, _, place = problem.partition(" - at `$")
    where = place.rstrip("`").removeprefix(".")
    return f"{_lower(what)}, in `[{where}]`" if where else _lower(what)


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
