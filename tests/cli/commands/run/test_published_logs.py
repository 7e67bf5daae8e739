"""`ensue run` over logs as their programs write them: patterns, years, and the rest of a line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Ensue

LINES = """
eventtype Line { attribute string Content; };
Line correlation Every (Line l)
    l
{
    case true: push l;
}
"""
OPENSSH = (
    "Dec 10 06:55:46 LabSZ sshd[24200]: Invalid user webmaster from 173.234.31.186\n"
    "Dec 10 06:55:48 LabSZ sshd[24200]: Failed password for invalid user webmaster from"
    " 173.234.31.186 port 38926 ssh2\n"
    'Dec 31 23:59:58 LabSZ sshd[24206]: message repeated 2 times: [ said "no" ]\n'
    "Jan  1 00:00:02 LabSZ sshd[24206]: Connection closed by 52.80.34.196 [preauth]\n"
    "Dec 31 23:59:59 LabSZ sshd[24207]: Connection closed by 52.80.34.197 [preauth]\n"
)
APACHE = (
    "[Sun Dec 04 04:47:44 2005] [notice] workerEnv.init() ok /etc/httpd/conf/workers2.properties\n"
    "[Sun Dec 04 04:51:08 2005] [error] mod_jk child workerEnv in error state 6\n"
)
HDFS = (
    "081109 203615 148 INFO dfs.DataNode$PacketResponder: PacketResponder 1 for block"
    " blk_38865049064139660 terminating\n"
    "081109 203807 222 INFO dfs.DataNode$PacketResponder: PacketResponder 0 for block"
    " blk_-6952295868487656571 terminating\n"
)
OPENSTACK = (
    "nova-api.log.1.2017-05-16_13:53:08 2017-05-16 00:00:00.008 25746 INFO"
    " nova.osapi_compute.wsgi.server [req-38101a0b-2096-447d-96ea-a692162415ae - - -] 10.11.10.1"
    ' "GET /v2/54fadb412c4e40cdbaed9335e4c35a9e/servers/detail HTTP/1.1" status: 200 len: 1893\n'
)
SPACE = ("--delimiter", "space", "--type", "Line")
READINGS: dict[str, tuple[str, list[str], list[str]]] = {
    "OpenSSH.log": (
        OPENSSH,
        [
            *("--header", "Month,Day,Clock,Host,Process,Content...", "--year", "2015"),
            *("--columns", "time=Month+Day+Clock:%b %d %H:%M:%S"),
        ],
        [
            "2015-12-10T06:55:46Z",
            "2015-12-10T06:55:48Z",
            "2015-12-31T23:59:58Z",
            "2015-12-31T23:59:59Z",
            "2016-01-01T00:00:02Z",
        ],
    ),
    "Apache.log": (
        APACHE,
        [
            *("--header", "Weekday,Month,Day,Clock,Year,Level,Content..."),
            *("--columns", "time=Month+Day+Clock+Year:%b %d %H:%M:%S %Y]"),
        ],
        ["2005-12-04T04:47:44Z", "2005-12-04T04:51:08Z"],
    ),
    "HDFS.log": (
        HDFS,
        [
            *("--header", "Date,Time,Pid,Level,Component,Content..."),
            *("--columns", "time=Date+Time:%y%m%d %H%M%S"),
        ],
        ["2008-11-09T20:36:15Z", "2008-11-09T20:38:07Z"],
    ),
    "OpenStack.log": (
        OPENSTACK,
        [
            *("--header", "Logrecord,Date,Time,Pid,Level,Component,Content..."),
            *("--columns", "time=Date+Time", "--timezone", "UTC"),
        ],
        ["2017-05-16T00:00:00.008Z"],
    ),
}


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "lines.cor"
    path.write_text(LINES)
    return path


def outputs(ensue: Ensue, *arguments: Any) -> list[dict[str, Any]]:
    answer = ensue("run", *arguments)
    assert answer.code == 0, answer.err
    return list(answer.outputs)


@pytest.mark.parametrize("engine", ["step", "batch", "reference"])
@pytest.mark.parametrize("name", READINGS)
def test_a_published_log_is_read_as_it_is(
    ensue: Ensue, lines: Path, tmp_path: Path, name: str, engine: str
) -> None:
    text, options, times = READINGS[name]
    log = tmp_path / name
    log.write_text(text)

    found = outputs(ensue, lines, "-e", log, *SPACE, *options, "--engine", engine)

    assert [each["time"] for each in found] == times
    # Each id leads back to its line, whose end is the message.
    given = text.splitlines()
    for each in found:
        file, _, line = each["id"].rpartition(":")
        assert file == name
        assert given[int(line) - 1].endswith(each["data"]["Content"])


def test_a_line_that_is_none_of_the_log_is_refused_by_itself(
    ensue: Ensue, lines: Path, tmp_path: Path
) -> None:
    _, options, _ = READINGS["HDFS.log"]
    log, dead = tmp_path / "HDFS.log", tmp_path / "dead.jsonl"
    log.write_text(HDFS + 'java.io.IOException: "broken\n\tat x\n' + HDFS)

    answer = ensue("run", lines, "-e", log, *SPACE, *options, "--dead-letter", dead)

    assert [each["id"] for each in answer.outputs] == [f"HDFS.log:{n}" for n in (1, 5, 2, 6)]
    assert [json.loads(each)["number"] for each in dead.read_text().splitlines()] == [3, 4]


@pytest.mark.parametrize("engine", ["step", "batch"])
def test_a_year_moves_on_in_each_file_by_itself(
    ensue: Ensue, lines: Path, tmp_path: Path, engine: str
) -> None:
    (tmp_path / "a").mkdir()
    for name in ("a/auth.log", "auth.log"):
        (tmp_path / name).write_text("Dec 31 23:00:00;x\nFeb 29 01:00:00;y\nDec 30 01:00:00;z\n")
    header = ["--header", "When,Content", "--delimiter", ";", "--type", "Line", "--year", "2015"]

    found = outputs(
        ensue,
        *(lines, "-e", tmp_path / "a", "-e", tmp_path / "auth.log", *header),
        *("--columns", "time=When:%b %d %H:%M:%S", "--engine", engine),
    )

    times = ["2015-12-31T23:00:00Z", "2016-02-29T01:00:00Z", "2016-12-30T01:00:00Z"]
    assert [each["time"] for each in found] == sorted(times * 2)
    # Equal names are told apart by their folders, as they were given.
    assert [each["id"] for each in found][:2] == [
        f"{tmp_path}/{n}:1" for n in ("a/auth.log", "auth.log")
    ]


@pytest.mark.parametrize("engine", ["step", "batch"])
def test_texts_that_stand_for_no_value_are_null(ensue: Ensue, tmp_path: Path, engine: str) -> None:
    library = tmp_path / "delays.cor"
    library.write_text(
        "eventtype Flight { attribute double delay; attribute string tail; };\n"
        "Flight correlation Known (Flight f where delay > 1) f { case true: push f; }\n"
    )
    log = tmp_path / "flights.csv"
    log.write_text('YEAR,MONTH,DAY,delay,tail\n2015,1,2,NA,-\n2015,1,3,4.5,-\n2015,1,4,9,"NA"\n')
    options = ["--null", "NA", "--null", "-", "--type", "Flight", "--engine", engine]

    found = outputs(
        ensue, library, "-e", log, "--columns", "time=YEAR+MONTH+DAY:%Y %m %d", *options
    )

    assert [(each["time"], each["data"]) for each in found] == [
        ("2015-01-03T00:00:00Z", {"delay": 4.5, "tail": None}),
        ("2015-01-04T00:00:00Z", {"delay": 9.0, "tail": None}),
    ]


@pytest.mark.parametrize("engine", ["step", "batch"])
@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_types_and_ids_that_are_numbers_are_their_texts(
    ensue: Ensue, tmp_path: Path, kind: str, engine: str
) -> None:
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    library = tmp_path / "logons.cor"
    library.write_text(
        'eventtype Logon = "4624" { attribute string who; };\n'
        "Logon correlation Every (Logon l) l { case true: push l; }\n"
    )
    rows = pa.table({"at": [1, 2], "EventID": [4624, 4624], "n": [70, 71], "who": ["ann", "bob"]})
    log = tmp_path / f"log.{kind}"
    if kind == "jsonl":
        log.write_text("".join(json.dumps(row) + "\n" for row in rows.to_pylist()))
    else:
        write = pq.write_table if kind == "parquet" else pyarrow.csv.write_csv
        write(rows, log)

    found = outputs(
        ensue,
        *(library, "-e", log, "--columns", "time=at:s,type=EventID,id=n", "--engine", engine),
    )

    assert [(each["type"], each["id"]) for each in found] == [("4624", "70"), ("4624", "71")]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--columns", "time=When:%b %d"], "the pattern `%b %d` of `time` has no year"),
        (["--columns", "time=When:%b %d", "--year", "0"], "`0` is no year"),
        (["--columns", "time=When:%Q"], "`%Q` is no directive of a time pattern"),
        (["--columns", "time=Date+", "--type", "Line"], "`Date+` joins columns, and one"),
        (["--columns", "source=When:%Y"], "`source` is no time: leave out the pattern `%Y`"),
        (["--columns", "time=When", "--year", "2015"], "a year is given, and no time has a"),
        (["--header", "A...,B"], "only the last column takes the rest of the line"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_what_to_do(
    ensue: Ensue, lines: Path, tmp_path: Path, options: list[str], said: str
) -> None:
    log = tmp_path / "x.csv"
    log.write_text("When\nDec 10\n")

    answer = ensue("run", lines, "-e", log, *options)

    assert answer.code == 2
    assert said in answer.err
