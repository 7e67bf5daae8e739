"""`ensue run --engine spark` over files as people have them gives what the other engines give."""

from __future__ import annotations

import gzip
import json
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import pytest
import zstandard
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from ensue.cli import app
from ensue.cli.spark_run import mention_read_here
from ensue.errors import UsageError
from ensue.events.sources import open_inputs

RULES = """
eventtype Login { attribute string user; attribute long code; };
eventtype Alarm { attribute string user; };
Alarm correlation Twice (Login a where code > 3, Login b where code > 3) l:(a ; b) by user {
    case l: push new Alarm { user = b.user };
}
"""
START = datetime(2024, 5, 6, 9, 0, 0)


def rows(seed: int, count: int = 40) -> list[dict[str, Any]]:
    random = Random(seed)
    return [
        {"at": START + timedelta(seconds=seed * 100 + n), "who": f"u{random.randint(1, 3)}", "n": n}
        for n in range(count)
    ]


def csv_text(given: list[dict[str, Any]]) -> str:
    lines = ["at;actor;code", *(f"{row['at']};{row['who']};{row['n'] % 9}" for row in given)]
    lines.insert(5, "never;u1;4")
    lines.insert(9, "")
    return "\n".join(lines) + "\n"


def json_text(given: list[dict[str, Any]]) -> str:
    lines = [
        json.dumps({"at": str(row["at"]), "actor": {"name": row["who"]}, "code": row["n"] % 9})
        for row in given
    ]
    lines.insert(7, '{"at": 5}')
    return "\n".join(lines) + "\n"


def run(folder: Path, *arguments: object) -> Result:
    (folder / "rules.cor").write_text(RULES)
    given = ["run", folder / "rules.cor", *arguments]
    return CliRunner().invoke(app, [str(each) for each in given])


def compare(folder: Path, *arguments: object) -> Result:
    """What Spark says, which is what one process says."""
    here = run(folder, *arguments, "--engine", "reference")
    there = run(folder, *arguments, "--engine", "spark")
    told = there.stderr.splitlines()
    said = [each for each in told if not each.startswith("reading ") and "read by this" not in each]

    assert here.stdout, here.stderr
    assert there.stdout == here.stdout, there.stderr
    assert said[-1] == here.stderr.splitlines()[-1]
    assert sorted(said) == sorted(here.stderr.splitlines())
    return there


ZONED = ("--type", "Login", "--timezone", "Europe/Berlin")


def test_csv_of_any_delimiter_without_ids_by_a_mapping(spark: SparkSession, tmp_path: Path) -> None:
    for seed in (1, 2):
        (tmp_path / f"{seed}.csv").write_text(csv_text(rows(seed)))
    (tmp_path / "3.csv.gz").write_bytes(gzip.compress(csv_text(rows(3)).encode()))
    files = [each for n in ("1.csv", "2.csv", "3.csv.gz") for each in ("-e", tmp_path / n)]

    answer = compare(tmp_path, *files, *ZONED, "--columns", "time=at,user=actor")

    assert "120 events read, 3 refused" in answer.stderr


def test_plain_json_objects_without_ids_by_a_mapping(spark: SparkSession, tmp_path: Path) -> None:
    for seed in (1, 2):
        (tmp_path / f"{seed}.jsonl").write_text(json_text(rows(seed)))

    answer = compare(
        tmp_path, "-e", f"{tmp_path}/*.jsonl", *ZONED, "--columns", "time=at,user=actor.name"
    )

    assert "80 events read, 2 refused" in answer.stderr


def test_csv_whose_columns_are_named_by_an_option(spark: SparkSession, tmp_path: Path) -> None:
    for seed in (1, 2):
        _, *lines = csv_text(rows(seed)).splitlines()
        (tmp_path / f"{seed}.log").write_text("\n".join(lines) + "\n")

    answer = compare(
        tmp_path, "-e", f"{tmp_path}/*.log", *ZONED, "--header", "at,user,code",
        "--delimiter", ";", "--columns", "time=at",
    )  # fmt: skip

    assert "80 events read, 2 refused" in answer.stderr


def test_cells_with_line_breaks_under_given_names(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text(
        "".join(f'2024-05-06 09:00:0{n},"u\n1",{n},"{n}"\n' for n in range(4, 9))
        + 'never,"u",1,2\n'
    )

    answer = compare(
        tmp_path, "-e", path, *ZONED, "--header", "at,user,code,note", "--columns", "time=at"
    )

    assert "5 events read, 1 refused" in answer.stderr


ZEEK = """\
#separator \\x09
#set_separator\t,
#empty_field\t(empty)
#unset_field\t-
#path\tauth
#open\t2024-05-06-09-00-00
#fields\tts\tuid\tid.orig_h\tcode\tnote
#types\ttime\tstring\taddr\tcount\tstring
"""


def zeek_log(first: int, count: int = 30) -> str:
    lines = [
        f'17149788{second}.5\tC{second}\tu{second % 3}\t{second % 9}\t"said" {second}'
        for second in range(first, first + count)
    ]
    lines[3] = "never\tC0\tu1\t4\t(empty)"
    lines[5] = "1714978815.5\tC5\tu1\t-\t-"
    return ZEEK + "\n".join(lines) + "\n#close\t2024-05-06-10-00-00\n"


@pytest.mark.parametrize("mapping", ["time=ts:s,user=id.orig_h", "time=ts:s,user=id.orig_h,id=uid"])
def test_logs_of_zeek(spark: SparkSession, tmp_path: Path, mapping: str) -> None:
    (tmp_path / "auth.09.log").write_text(zeek_log(10))
    (tmp_path / "auth.10.log").write_text(zeek_log(50))

    answer = compare(tmp_path, "-e", f"{tmp_path}/*.log", "--type", "Login", "--columns", mapping)

    assert "58 events read, 2 refused" in answer.stderr


def test_logs_of_zeek_of_different_columns_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "auth.log").write_text(zeek_log(10))
    (tmp_path / "conn.log").write_text(zeek_log(50).replace("\tnote\n", "\tremark\n"))

    answer = run(
        tmp_path, "-e", f"{tmp_path}/*.log", "--type", "Login", "--engine", "spark",
        "--columns", "time=ts:s,user=id.orig_h,id=uid",
    )  # fmt: skip

    assert answer.exit_code == 2
    assert "run logs of different columns apart" in " ".join(answer.stderr.split())


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("at;user;code\n", 0, "0 events read; 0 outputs"),
        ("at;user;code\nnever;u1;4\n", 1, "0 events read, 1 refused; 0 outputs"),
    ],
)
def test_csv_without_any_event(
    spark: SparkSession, tmp_path: Path, text: str, code: int, said: str
) -> None:
    (tmp_path / "events.csv").write_text(text)

    answer = run(
        tmp_path, "-e", tmp_path / "events.csv", *ZONED, "--columns", "time=at", "--engine", "spark"
    )

    assert answer.exit_code == code
    assert answer.stderr.splitlines()[-1] == said


def test_a_delimiter_for_files_without_cells_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "events.jsonl").write_text(json_text(rows(1)))

    answer = run(tmp_path, "-e", tmp_path / "events.jsonl", "--delimiter", ";", "--engine", "spark")

    assert answer.exit_code == 2
    assert "`--delimiter` is for the cells of CSV" in " ".join(answer.stderr.split())


def test_what_spark_cannot_unpack_is_read_here(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl.zst"
    path.write_bytes(zstandard.compress(json_text(rows(1)).encode()))

    there = compare(tmp_path, "-e", path, *ZONED, "--columns", "time=at,user=actor.name")

    assert "`events.jsonl.zst`: read by this process" in there.stderr


def test_more_than_can_be_read_here_for_spark_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl.zst"
    path.write_bytes(zstandard.compress(json_text(rows(1)).encode()))

    with pytest.raises(UsageError, match="compress the files with gzip, write them as Parquet"):
        mention_read_here(open_inputs([str(path)]), most_bytes=100)


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_parquet_of_pandas_in_nanoseconds_without_ids(
    spark: SparkSession, tmp_path: Path, zone: str | None
) -> None:
    for seed in (1, 2):
        frame = pd.DataFrame(rows(seed))
        frame["at"] = frame["at"].astype("datetime64[ns]").dt.tz_localize(zone)
        frame.to_parquet(tmp_path / f"{seed}.parquet")
    columns = "time=at,user=who,code=n"

    compare(tmp_path, "-e", tmp_path / "1.parquet", *ZONED, "--columns", columns)
    compare(tmp_path, "-e", f"{tmp_path}/*.parquet", *ZONED, "--columns", columns)


def test_some_records_without_ids_have_their_numbers(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "some.csv"
    lines = ["id,type,time,user,code"]
    lines += [
        f"{'' if n % 3 else n},Login,{row['at'].isoformat()}Z,{row['who']},{row['n'] % 9}"
        for n, row in enumerate(rows(1), 1)
    ]
    path.write_text("\n".join(lines))

    compare(tmp_path, "-e", path)


def test_an_extension_that_goes_before_the_data_is_seen(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "clash.jsonl"
    events = [
        {
            "id": str(n),
            "source": "s",
            "type": "Login",
            "time": f"{row['at'].isoformat()}Z",
            "data": {"user": row["who"], "code": row["n"] % 9},
        }
        for n, row in enumerate(rows(1))
    ]
    events[7]["user"] = "u9"
    path.write_text("\n".join(map(json.dumps, events)))

    compare(tmp_path, "-e", path)
