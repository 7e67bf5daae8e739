"""`ensue stream` over text files gives what `ensue run` gives: outputs and refusals."""

from __future__ import annotations

import gzip
import json
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import ensue
from ensue.cli import app
from ensue.errors import UsageError
from ensue.spark.streaming import pipeline
from ensue.spark.streaming.config import parse_config
from ensue.spark.streaming.lines import WHOLE_FILES

from .cutting import collected

RULES = """
eventtype Login { attribute string user; attribute long code; };
eventtype Alarm { attribute string user; attribute long code; };
Alarm correlation Twice (Login a where code > 3, Login b where code > 3) a ; b by user
{ case true: push new Alarm { user = b.user, code = b.code }; }
"""
ZEEK = """\
#separator \\x09
#fields\tts\tuid\tid.orig_h\tcode\tnote
#types\ttime\tstring\taddr\tcount\tstring
"""


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """The session, in which the settings are afterwards as they were."""
    yield spark
    for name in WHOLE_FILES:
        spark.conf.unset(name)


def logins(count: int = 12) -> list[dict[str, Any]]:
    return [{"ts": 1714978800 + n, "user": f"u{n % 2}", "code": n % 7} for n in range(count)]


def json_lines() -> str:
    lines = [
        json.dumps({"at": row["ts"], "who": row["user"], "n": row["code"]}) for row in logins()
    ]
    lines.insert(2, '{"at": "never"}')
    lines.insert(4, "{")
    lines.insert(5, "")
    return "\n".join(lines)


def cells(delimiter: str = ";") -> list[str]:
    lines = [delimiter.join(map(str, row.values())) for row in logins()]
    lines.insert(3, delimiter.join(["1714978802", '"u\n1"', "5"]))
    lines.insert(6, delimiter.join(["soon", "u1", "5"]))
    lines.insert(8, "1714978802")
    return lines


TEXTS = {
    "jsonl": (json_lines(), "", "time=at:s,user=who,code=n"),
    "csv": ("\ufeff" + "\r\n".join(["ts;user;code", *cells()]), "", "time=ts:s"),
    "headless": ("\n".join(cells("|")), 'header = "ts,user,code"\ndelimiter = "|"', "time=ts:s"),
    "zeek": (
        ZEEK
        + "".join(f'{row["ts"]}.5\tC\t{row["user"]}\t{row["code"]}\t"said"\n' for row in logins())
        + "never\tC\tu1\t4\t-\n#close\t2024\n",
        "",
        "time=ts:s,user=id.orig_h",
    ),
}


def config_of(folder: Path, name: str, mapping: str, said: str = "") -> Any:
    pairs = (each.split("=") for each in mapping.split(","))
    columns = "\n".join(f'{key} = "{value}"' for key, value in pairs)
    return parse_config(f"""
        [source]
        format = "{"jsonl" if name == "jsonl" else "csv"}"
        path = "{folder}"
        type = "Login"
        {said}
        [columns]
        {columns}
        [stream]
        checkpoint = "{folder}-checkpoint"
        buckets = 2
        [sink]
        format = "parquet"
        path = "{folder}-sink"
    """)


def run_here(folder: Path, file: Path, mapping: str, said: str) -> tuple[list[Any], list[Any]]:
    """What `ensue run` puts out and refuses of a file."""
    (folder / "rules.cor").write_text(RULES)
    options = dict(line.split(" = ") for line in said.splitlines())
    given = [each for key, value in options.items() for each in (f"--{key}", json.loads(value))]
    given += ["--format", "jsonl"] if ".jsonl" in file.name else ["--format", "csv"]
    letters = folder / "letters.jsonl"
    answer = CliRunner().invoke(
        app,
        ["run", str(folder / "rules.cor"), "-e", str(file), "--type", "Login", "--engine", "step",
         "--columns", mapping, "--dead-letter", str(letters), *given],
    )  # fmt: skip
    outputs = [json.loads(line) for line in answer.stdout.splitlines()]
    numbers = [
        (line.split(": ")[0].rpartition(":")[2])
        for line in answer.stderr.splitlines()
        if file.name in line
    ]
    return [(each["causes"], each["data"]) for each in outputs], numbers


@pytest.mark.parametrize("name", list(TEXTS))
@pytest.mark.parametrize("packed", [False, True])
def test_a_stream_reads_text_as_a_run_does(
    session: SparkSession, tmp_path: Path, name: str, packed: bool
) -> None:
    if packed and name != "csv":
        pytest.skip("one format of text is enough, since Spark unpacks it")
    text, said, mapping = TEXTS[name]
    folder = tmp_path / "events"
    folder.mkdir()
    ending = "jsonl" if name == "jsonl" else "csv"
    file = folder / (f"events.{ending}" + ".gz" * packed)
    file.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    config = config_of(folder, name, mapping, said)

    made = pipeline.plan(session, ensue.parse(RULES), config)
    rows = collected(made, tmp_path / "checkpoint")

    outputs, numbers = run_here(tmp_path, file, mapping, said)
    found = [row for row in rows if row["ensue_kind"] == "output"]
    refused = [row for row in rows if row["ensue_kind"] == "rejected"]
    assert outputs
    assert sorted((row["causes"], {"user": row["user"], "code": row["code"]}) for row in found) == (
        sorted(outputs)
    )
    told = [json.loads(row["ensue_left_out"]) for row in refused]
    assert numbers
    assert sorted(str(each["number"]) for each in told) == sorted(numbers)
    assert {each["file"] for each in told} == {str(file)}
    assert all(row["ensue_problems"] for row in refused)


def test_each_file_has_its_own_columns_and_an_unusable_one_is_rejected_as_a_whole(
    session: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "events"
    (folder / "below").mkdir(parents=True)
    (folder / "one.csv").write_text("ts;user;code\n1714978800;u1;5\n")
    (folder / "below" / "two.csv").write_text("code,user,note,ts\n6,u1,,1714978802\n")
    (folder / "three.csv").write_text("when,user\n1714978803,u1\n")
    (folder / "four.csv.xz").write_bytes(lzma.compress(b"ts,user,code\n1714978803,u1,5\n"))

    made = pipeline.plan(session, ensue.parse(RULES), config_of(folder, "csv", "time=ts:s"))
    rows = collected(made, tmp_path / "checkpoint")

    assert len([row for row in rows if row["ensue_kind"] == "output"]) == 1
    refused = {
        json.loads(row["ensue_left_out"])["file"].rpartition("/")[2]: row["ensue_problems"][0]
        for row in rows
        if row["ensue_kind"] == "rejected"
    }
    assert refused.keys() == {"three.csv", "four.csv.xz"}
    assert "`ts`" in refused["three.csv"]
    assert "is packed with xz" in refused["four.csv.xz"]


def test_bytes_that_are_no_text_are_kept_in_a_rejected_row(
    session: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "events"
    folder.mkdir()
    (folder / "one.csv").write_bytes(b"ts,user,code\n1714978800,\xff,5\n")

    made = pipeline.plan(session, ensue.parse(RULES), config_of(folder, "csv", "time=ts:s"))
    (refused,) = collected(made, tmp_path / "checkpoint")

    assert json.loads(refused["ensue_left_out"])["row_base64"]
    assert "not UTF-8" in refused["ensue_problems"][0]


SOURCE = """
[source]
format = "{format}"
path = "events"
{more}
[stream]
checkpoint = "checkpoint"
{stream}
[sink]
format = "parquet"
path = "found"
"""


@pytest.mark.parametrize(
    ("format_", "more", "stream", "said"),
    [
        ("csv", "options = { header = true }", "", "say `header` in `[source]`"),
        ("csv", 'options = { sep = ";" }', "", "say `delimiter` in `[source]`"),
        ("csv", 'schema = "id string"\ndelimiter = ";"', "", "as `sep`"),
        ("csv", 'delimiter = ";;"', "", "is no delimiter"),
        ("csv", 'header = "a,,b"', "", "does not name every column"),
        ("jsonl", 'header = "a,b"', "", "no meaning for the format `jsonl`"),
        ("parquet", 'delimiter = ";"', "", "no meaning for the format `parquet`"),
        ("jsonl", "", 'arrival = "offset"', "leave it out"),
    ],
)
def test_what_cannot_be_meant_of_text_is_refused(
    format_: str, more: str, stream: str, said: str
) -> None:
    with pytest.raises(UsageError) as error:
        parse_config(SOURCE.format(format=format_, more=more, stream=stream))

    assert said in str(error.value)
