"""`ensue run` over logs as programs write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Ensue

RULES = """
eventtype Line { attribute string who; attribute string outcome; };
eventtype Alert { attribute string who; };

Alert correlation Guessed (Line f where outcome = 'no', Line s where outcome = 'yes')
    f{2} ; s
    within 5 min
    by who
{
    case true: push new Alert { who = s.who };
}
"""
ENGINES = ("step", "batch")


@pytest.fixture
def logins(tmp_path: Path) -> Path:
    path = tmp_path / "logins.cor"
    path.write_text(RULES)
    return path


def found(answer: Any) -> list[str]:
    assert answer.code == 0, answer.err
    return [output["data"]["who"] for output in answer.outputs]


def write_objects(path: Path, objects: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in objects))
    return path


ECS = [
    {
        "@timestamp": f"2024-05-06T07:00:0{second}.000Z",
        "ecs": {"version": "8.11.0"},
        "event": {"category": ["authentication"], "outcome": outcome},
        "user": {"name": "ann"},
        "source": {"ip": "10.0.0.1"},
    }
    for second, outcome in enumerate(["no", "no", "yes"])
]
JOURNAL = [
    {
        "__CURSOR": f"s=1;i={second}",
        "__REALTIME_TIMESTAMP": f"171497880{second}000000",
        "_SYSTEMD_UNIT": "ann",
        "MESSAGE": outcome,
    }
    for second, outcome in enumerate(["no", "no", "yes"])
]
TRAIL = [
    {
        "eventTime": f"2024-05-06T07:00:0{second}Z",
        "eventName": "Line",
        "userIdentity": {"userName": "ann", "sessionContext": {"attributes": {"mfa": "false"}}},
        "responseElements": None if outcome == "none" else {"ConsoleLogin": outcome},
    }
    for second, outcome in enumerate(["no", "no", "none", "yes"])
]
CHANGES = [
    {
        "before": None,
        "after": {"user": "ann", "state": outcome},
        "source": {"ts_ms": 1714978800000 + second, "table": "logins"},
        "op": "c",
    }
    for second, outcome in enumerate(["no", "no", "yes"])
]


WINDOWS = [{"Event": {"System": {"TimeCreated": {"SystemTime": "2024-05-06T07:00:00.1234567Z"}}}}]
SURICATA = [{"timestamp": "2024-05-06T07:00:00.123456+0000", "event_type": "alert"}]
DOCKER = [{"log": "no", "stream": "stdout", "time": "2024-05-06T07:00:00.123456789Z"}]
PINO = [{"level": 30, "time": 1714978800000, "msg": "no"}]
OPEN_TELEMETRY = {"timeUnixNano": "1714978800000000000", "body": {"stringValue": "no"}}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("objects", "options"),
    [
        (ECS, ["--type", "Line", "--columns",
               "time=@timestamp,who=user.name,outcome=event.outcome"]),
        (JOURNAL, ["--type", "Line", "--columns",
                   "time=__REALTIME_TIMESTAMP:us,id=__CURSOR,who=_SYSTEMD_UNIT,outcome=MESSAGE"]),
        (TRAIL, ["--columns", "time=eventTime,type=eventName,who=userIdentity.userName,"
                 "outcome=responseElements.ConsoleLogin"]),
        (CHANGES, ["--type", "Line", "--columns",
                   "time=source.ts_ms:ms,who=after.user,outcome=after.state"]),
    ],
)  # fmt: skip
def test_objects_are_read_by_their_members(
    ensue: Ensue, logins: Path, tmp_path: Path, engine: str, objects: Any, options: list[str]
) -> None:
    log = write_objects(tmp_path / "log.json", objects)

    assert found(ensue("run", logins, "-e", log, *options, "--engine", engine)) == ["ann"]


@pytest.mark.parametrize(
    ("objects", "guess"),
    [
        (ECS, "`--columns time=@timestamp`"),
        (JOURNAL, "`--columns time=__REALTIME_TIMESTAMP:us`"),
        (TRAIL, "`--columns time=eventTime`"),
        (CHANGES, "`--columns time=source.ts_ms:ms`"),
        (WINDOWS, "`--columns time=Event.System.TimeCreated.SystemTime`"),
        (SURICATA, "`--columns time=timestamp`"),
        (DOCKER, "`--columns time=time`"),
        (PINO, "`--columns time=time:ms`"),
    ],
)
def test_objects_that_nobody_has_said_anything_of_are_answered_with_what_to_say(
    ensue: Ensue, logins: Path, tmp_path: Path, objects: Any, guess: str
) -> None:
    log = write_objects(tmp_path / "log.json", objects)

    answer = ensue("run", logins, "-e", log)

    assert answer.code == 1
    assert f"as in {guess}; `--type NAME` names the type of all events" in answer.err


@pytest.mark.parametrize(
    ("record", "count", "path"),
    [
        ({"Records": TRAIL}, "4 objects in `Records`", ".Records[]"),
        (
            {"resourceLogs": [{"resource": {}, "scopeLogs": [{"logRecords": [OPEN_TELEMETRY]}]}]},
            "1 object in `resourceLogs`",
            ".resourceLogs[].scopeLogs[].logRecords[]",
        ),
    ],
)
def test_events_inside_of_one_object_are_answered_with_what_takes_them_out(
    ensue: Ensue, logins: Path, tmp_path: Path, record: Any, count: str, path: str
) -> None:
    log = write_objects(tmp_path / "trail.json", [record])

    answer = ensue("run", logins, "-e", log, "--columns", "time=eventTime")

    assert answer.code == 1
    assert f"the first record has {count}" in answer.err
    assert f"`jq -c '{path}'`" in answer.err


ACCESS = """\
10.0.0.1 - ann 2024-05-06T07:00:00+00:00 "POST /login HTTP/1.1" no 512 "-" "curl/8.0"
10.0.0.1 - ann 2024-05-06T07:00:02+00:00 "POST /login HTTP/1.1" no 512 "-" "curl/8.0"
10.0.0.1 - ann 2024-05-06T07:00:03+00:00 "POST /login HTTP/1.1" yes 1024 "-" "Mozilla (X11)"
"""
ACCESS_HEADER = "client,ident,who,time,request,outcome,size,referer,agent"


@pytest.mark.parametrize("engine", ENGINES)
def test_csv_without_a_first_line_for_its_columns_has_them_from_the_command(
    ensue: Ensue, logins: Path, tmp_path: Path, engine: str
) -> None:
    log = tmp_path / "access.log"
    log.write_text(ACCESS)
    options = ["--delimiter", "space", "--header", ACCESS_HEADER, "--type", "Line"]

    answer = ensue("run", logins, "-e", log, *options, "--engine", engine)

    assert found(answer) == ["ann"]
    assert answer.err == "3 events read; 1 output\n"


def test_a_time_as_access_logs_have_it_is_answered_with_how_to_write_it(
    ensue: Ensue, logins: Path, tmp_path: Path
) -> None:
    log = tmp_path / "access.log"
    log.write_text(ACCESS.replace("2024-05-06T07:00:00+00:00", '"06/May/2024:07:00:00 +0000"'))
    options = ["--delimiter", "space", "--header", ACCESS_HEADER, "--type", "Line"]

    answer = ensue("run", logins, "-e", log, *options)

    assert "access.log:1: `time`: `06/May/2024:07:00:00 +0000` is no RFC 3339 time" in answer.err
    assert "time=COLUMN:%d/%b/%Y:%H:%M:%S %z" in answer.err


def test_lines_of_words_are_answered_with_how_to_name_them(
    ensue: Ensue, logins: Path, tmp_path: Path
) -> None:
    log = tmp_path / "access.log"
    log.write_text(ACCESS)

    answer = ensue("run", logins, "-e", log)

    assert answer.code == 1
    assert "`--format csv --delimiter space --header NAME,...`" in answer.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ts^who^outcome\n", "`--delimiter '^'` takes them apart"),
        ("ts who outcome\n", "`--delimiter space` takes them apart"),
        ("# exported\ntime,who\n", "its first line looks like a comment"),
        ("2024-05-06T07:00:00Z,ann,no\n", "its first line looks like a row: `--header"),
    ],
)
def test_a_first_line_that_names_no_columns_is_answered_with_what_it_looks_like(
    ensue: Ensue, logins: Path, tmp_path: Path, text: str, said: str
) -> None:
    log = tmp_path / "log.csv"
    log.write_text(text)

    answer = ensue("run", logins, "-e", log)

    assert answer.code == 2
    assert said in answer.err


@pytest.mark.parametrize("header", ["", "a,,b"])
def test_a_header_names_every_column(
    ensue: Ensue, logins: Path, tmp_path: Path, header: str
) -> None:
    log = tmp_path / "log.csv"
    log.write_text(ACCESS)

    answer = ensue("run", logins, "-e", log, "--header", header)

    assert answer.code == 2
    assert "does not name every column" in answer.err


def test_a_header_is_for_csv(ensue: Ensue, logins: Path, tmp_path: Path) -> None:
    log = write_objects(tmp_path / "log.jsonl", ECS)

    answer = ensue("run", logins, "-e", log, "--header", "a,b")

    assert answer.code == 2
    assert "`--header` is for the cells of CSV, and what is read is jsonl" in answer.err


ZEEK = """\
#separator \\x09
#set_separator	,
#empty_field	(empty)
#unset_field	-
#path	conn
#open	2024-05-06-07-00-00
#fields	ts	uid	id.orig_h	who	outcome	duration	note
#types	time	string	addr	string	string	interval	string
1714978800.123456	C1	10.0.0.1	ann	no	1.5	"quoted" at its start
1714978801.123456	C2	10.0.0.1	ann	no	-	in the "middle"
1714978801.223456	C3	10.0.0.1	-	no	-	(empty)
soon	C4	10.0.0.1	ann	no	-	-
1714978802.123456	C5	10.0.0.1	ann	yes	2.5	#5
#close	2024-05-06-08-00-00
"""
ZEEK_OPTIONS = ["--type", "Line", "--columns", "time=ts:s,id=uid,client=id.orig_h"]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_log_of_zeek_says_itself_how_it_is_read(
    ensue: Ensue, logins: Path, tmp_path: Path, engine: str
) -> None:
    log = tmp_path / "conn.log"
    log.write_text(ZEEK)

    answer = ensue("run", logins, "-e", log, *ZEEK_OPTIONS, "--engine", engine)

    assert found(answer) == ["ann"]
    assert answer.err == (
        f"{log}:12: `time`: `soon` is no number of seconds since 1970\n"
        "4 events read, 1 refused, 1 without a key for `Guessed`; 1 output\n"
    )


def test_a_log_of_zeek_can_be_followed(ensue: Ensue, logins: Path, tmp_path: Path) -> None:
    log = tmp_path / "conn.log"
    log.write_text(ZEEK)

    answer = ensue("run", logins, "-e", log, *ZEEK_OPTIONS, "--live")

    assert found(answer) == ["ann"]
    assert "4 events read, 1 refused" in answer.err


LINES = """\
time,who,outcome
2024-05-06T07:00:00Z,ann,no
2024-05-06T07:00:02Z,ann,no
2024-05-06T07:00:03Z,ann,yes
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (LINES.encode("utf-16"), "is UTF-16, and text is read as UTF-8: convert it"),
        (b"sep=,\n" + LINES.encode(), "`sep=,`, is for Excel and names no columns"),
        (LINES.replace("\n", "\r").encode(), "a carriage return stands outside of quotes"),
    ],
)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_file_that_is_no_csv_as_it_stands_is_answered_with_what_makes_it_some(
    ensue: Ensue, logins: Path, tmp_path: Path, text: bytes, said: str, engine: str
) -> None:
    log = tmp_path / "log.csv"
    log.write_bytes(text)

    answer = ensue("run", logins, "-e", log, "--type", "Line", "--engine", engine)

    assert answer.code == 2
    assert said in answer.err


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (
            "log.csv",
            LINES.replace("ann", "b\u00e4r").encode("cp1252"),
            "`iconv -f CP1252 -t UTF-8`",
        ),
        ("log.csv", LINES.replace("outcome", "result").encode(), "`--columns outcome=COLUMN`"),
        ("log.json", json.dumps([{"time": 1}], indent=1).encode(), "converts this file"),
        ("log.csv", b"time,who,outcome\n1714978800,ann,no\n", "as `time=COLUMN:s`"),
        ("log.csv", b"time,who,outcome\n1714978800123,ann,no\n", "as `time=COLUMN:ms`"),
        ("log.csv", b"time,who,outcome\n1714978800123456789,ann,no\n", "as `time=COLUMN:ns`"),
    ],
)
@pytest.mark.parametrize("engine", ENGINES)
def test_records_that_all_are_refused_are_answered_with_what_to_do(
    ensue: Ensue, logins: Path, tmp_path: Path, name: str, text: bytes, said: str, engine: str
) -> None:
    log = tmp_path / name
    log.write_bytes(text)

    answer = ensue("run", logins, "-e", log, "--type", "Line", "--engine", engine)

    assert answer.code == 1
    assert said in answer.err


@pytest.mark.parametrize("engine", ENGINES)
def test_a_decimal_comma_is_answered_with_a_point(
    ensue: Ensue, tmp_path: Path, engine: str
) -> None:
    rules = tmp_path / "rules.cor"
    rules.write_text(RULES.replace("string outcome;", "string outcome; attribute double cost;"))
    log = tmp_path / "log.csv"
    log.write_text("time;who;outcome;cost\n2024-05-06T07:00:00Z;ann;no;1.234,5\n")

    answer = ensue("run", rules, "-e", log, "--type", "Line", "--engine", engine)

    assert '"1.234,5" was given' in answer.err
    assert "with a point in place of the comma" in answer.err


@pytest.mark.parametrize("engine", ENGINES)
def test_an_empty_file_among_others_says_nothing(
    ensue: Ensue, logins: Path, tmp_path: Path, engine: str
) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "1.csv").write_text(LINES)
    (folder / "2.csv").write_text("")

    answer = ensue("run", logins, "-e", folder, "--type", "Line", "--engine", engine)

    assert found(answer) == ["ann"]
