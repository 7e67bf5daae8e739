"""The TOML file of a stream: what is wrong with it is said before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from ensue.errors import UsageError
from ensue.spark.streaming.config import load_config, parse_config

GOOD = """
[source]
format = "parquet"
path = "events"
options = { maxFilesPerTrigger = 1 }
[stream]
checkpoint = "checkpoint"
lateness = "10 s"
trigger = "5 s"
[sink]
format = "parquet"
path = "matches"
"""


def test_a_configuration_says_source_sink_and_how_often() -> None:
    config = parse_config(GOOD)

    assert config.source.options == {"maxFilesPerTrigger": 1}
    assert config.stream.trigger_milliseconds == 5000
    assert config.late is None


def test_every_missing_table_and_unknown_name_is_told_at_once() -> None:
    with pytest.raises(UsageError) as told:
        parse_config('[source]\nfromat = "parquet"\n[snik]\n')

    lines = str(told.value).splitlines()
    assert [line.split(":")[0] for line in lines[:2]] == [
        "the table `[stream]` is missing",
        "the table `[sink]` is missing",
    ]
    assert lines[2] == "unknown field `fromat`, in `[source]`; did you mean `format`?"
    assert lines[3] == "there is no table `[snik]`; did you mean `sink`?"


def test_without_a_trigger_what_is_there_is_read() -> None:
    config = parse_config(GOOD.replace('trigger = "5 s"', ""))

    assert config.stream.trigger_milliseconds is None


@pytest.mark.parametrize(
    ("part", "instead", "told"),
    [
        ('path = "events"', "", r"missing required field `path`, in `\[source\]`"),
        ("lateness", "latenes", r"unknown field `latenes`, in `\[stream\]`"),
        ('lateness = "10 s"', 'lateness = "soon"', '`lateness`.*"soon": give a duration'),
        ('trigger = "5 s"', 'trigger = "often"', 'or "available now"'),
        ('"parquet"\npath = "events"', '"parket"\npath = "events"', "`parket`.*`parquet`"),
        ('path = "matches"', "", r"`\[sink\]` of format `parquet` needs a `path`"),
        ("[sink]", "[sink", "no TOML"),
        ("[stream]", "[stream]\nbuckets = 0", "at least 1"),
    ],
)
def test_a_mistake_is_told_with_its_place(part: str, instead: str, told: str) -> None:
    assert part in GOOD

    with pytest.raises(UsageError, match=told):
        parse_config(GOOD.replace(part, instead, 1))


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no file"):
        load_config(tmp_path / "stream.toml")


def test_what_is_no_output_goes_beside_the_outputs_unless_it_is_said_otherwise() -> None:
    config = parse_config(TEXT_WITH_A_FOLDER)

    assert {name: sink.path for name, sink in config.sinks.items()} == {
        "sink": "matches/",
        "late": "matches-late",
        "rejected": "matches-rejected",
    }
    assert list(parse_config(TEXT_WITH_A_FOLDER + "together = true").sinks) == ["sink"]
    csv = parse_config(TEXT_WITH_A_FOLDER.replace("parquet", "csv"))
    assert csv.sinks["late"].format == "json"


def test_columns_are_mapped_as_everywhere() -> None:
    mapped = '[columns]\ntime = "ts:ms"\nuser = { column = "a:s", unit = "s" }\n'
    config = parse_config(mapped + TEXT_WITH_A_FOLDER)

    assert config.columns["time"] == "ts:ms"
    with pytest.raises(UsageError, match="there is no time zone `Mars`"):
        parse_config(TEXT_WITH_A_FOLDER.replace('path = "e/', "timezone = 'Mars'\npath = \"e/"))
    with pytest.raises(UsageError, match="`days` is no unit of `time`"):
        parse_config('[columns]\ntime = { column = "x", unit = "days" }\n' + TEXT_WITH_A_FOLDER)


TEXT_WITH_A_FOLDER = """
[source]
format = "csv"
path = "e/"
schema = "id string"

[stream]
checkpoint = "c/"

[sink]
format = "parquet"
path = "matches/"
"""
