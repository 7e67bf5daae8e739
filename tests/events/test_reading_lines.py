"""Files of JSON lines, and what holds for files of every format."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from ensue.errors import UsageError
from ensue.events.event import Event, Rejected
from ensue.events.records.reading import read_events

from .vocabulary import NOTIFY

GOOD = (
    b'{"id":"1","source":"s","type":"Notify","time":"1970-01-01T00:00:00Z","data":{"SourceID":3}}'
)


def read(content: bytes, **options: Any) -> list[Event | Rejected]:
    return list(read_events(io.BytesIO(content), NOTIFY, **options))


def numbers_of_rejected(records: list[Event | Rejected]) -> list[int]:
    return [each.number for each in records if isinstance(each, Rejected)]


def test_every_line_is_an_event_in_the_order_of_the_file() -> None:
    content = b"\n".join(GOOD.replace(b'"1"', b'"%d"' % n) for n in range(50))
    assert [each.id for each in read(content) if isinstance(each, Event)] == [
        str(n) for n in range(50)
    ]


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n", b"\n\n \t\n"])
def test_blank_lines_and_the_kind_of_line_break_do_not_matter(end: bytes) -> None:
    assert len(read(b"\n" + GOOD + end)) == 1


def test_a_byte_order_mark_at_the_start_is_no_part_of_the_first_line() -> None:
    assert isinstance(read(b"\xef\xbb\xbf" + GOOD)[0], Event)


def test_a_bad_line_is_kept_with_its_number_and_the_next_one_is_read() -> None:
    records = read(GOOD + b"\n\n{oops\r\n" + GOOD)
    assert [type(each) for each in records] == [Event, Rejected, Event]
    assert records[1] == Rejected(3, b"{oops", ("no JSON: object keys must be strings at byte 2",))


def test_a_line_that_is_not_utf8_spoils_only_itself() -> None:
    records = read(GOOD + b"\n" + GOOD.replace(b'"s"', b'"\xff"') + b"\n" + GOOD)
    assert numbers_of_rejected(records) == [2]


def test_an_event_that_does_not_fit_its_type_is_rejected_with_all_reasons() -> None:
    (rejected,) = read(GOOD.replace(b'"Notify"', b'"DataNotify"').replace(b"3}", b"70000}"))
    assert isinstance(rejected, Rejected)
    assert len(rejected.problems) == 2


def test_a_line_of_many_megabytes_is_read() -> None:
    long = GOOD.replace(b'"s"', b'"' + b"s" * 20_000_000 + b'"')
    first, second = read(long + b"\n" + GOOD)
    assert isinstance(first, Event)
    assert isinstance(second, Event)


def test_a_file_without_lines_holds_no_events() -> None:
    assert read(b"") == []


@pytest.mark.parametrize("ending", [".jsonl", ".ndjson", ".json", ".JSONL"])
def test_the_ending_of_a_name_says_the_format(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"events{ending}"
    path.write_bytes(GOOD)
    assert len(list(read_events(path, NOTIFY))) == 1


def test_a_named_format_goes_before_the_ending(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_bytes(GOOD)
    assert len(list(read_events(path, NOTIFY, "jsonl"))) == 1


def test_a_file_whose_name_says_nothing_holds_json_lines(tmp_path: Path) -> None:
    """As do `/dev/stdin` and what a shell hands over in place of a file."""
    path = tmp_path / "events.log"
    path.write_bytes(GOOD)

    assert len(list(read_events(path, NOTIFY))) == 1


def test_an_unknown_format_names_those_there_are() -> None:
    with pytest.raises(UsageError, match="choose one of `jsonl`, `csv`, `parquet`"):
        read(b"", format="xml")


def test_a_file_that_is_not_there_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no file"):
        read_events(tmp_path / "none.jsonl", NOTIFY)


def test_a_directory_is_read_file_by_file(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.jsonl"):
        (tmp_path / name).write_bytes(GOOD + b"\nno event\n")

    records = list(read_events(tmp_path, NOTIFY))

    assert [(e.number, e.file) for e in records if isinstance(e, Rejected)] == [
        (2, str(tmp_path / "a.jsonl")),
        (2, str(tmp_path / "b.jsonl")),
    ]


def test_a_dash_stands_for_the_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(GOOD)))
    assert len(list(read_events("-", NOTIFY))) == 1


def test_progress_counts_the_bytes_up_to_the_size_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes((GOOD + b"\n") * 10_000)
    told: list[tuple[int, int | None]] = []
    list(read_events(path, NOTIFY, progress=lambda done, total: told.append((done, total))))
    size = path.stat().st_size
    assert len(told) > 2
    assert told == sorted(told)
    assert told[-1] == (size, size)


def test_progress_of_a_stream_does_not_know_the_end() -> None:
    told: list[tuple[int, int | None]] = []
    read(GOOD, progress=lambda done, total: told.append((done, total)))
    assert told == [(len(GOOD), None)]


def test_lines_are_read_one_by_one_and_not_ahead() -> None:
    """The first event is there although the stream fails right after it."""

    class Failing(io.BytesIO):
        def readline(self, size: int | None = -1) -> bytes:
            if self.tell() > 0:
                raise OSError(5, "Input/output error")
            return super().readline(size)

    records = read_events(Failing(GOOD + b"\n" + GOOD), NOTIFY)
    assert isinstance(next(records), Event)
    with pytest.raises(UsageError, match="cannot be read: input/output error"):
        next(records)


def test_a_rejected_line_can_be_mended_and_read_again() -> None:
    (rejected,) = read(GOOD.replace(b"3}", b'"3"}'))
    assert isinstance(rejected, Rejected)
    mended = json.loads(rejected.raw)
    mended["data"]["SourceID"] = 3
    assert isinstance(read(json.dumps(mended).encode())[0], Event)
