"""Files that grow, are rotated or cut short, and pipes: every line once, whole, in time."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ensue.errors import UsageError
from ensue.events.event import Event, Rejected
from ensue.events.records.following import follow
from ensue.events.sources import open_inputs
from tests.events.vocabulary import types_from

TYPES = types_from(T={})


def line(number: int) -> str:
    return f'{{"id":"{number}","source":"s","type":"T","time":"2024-05-06T07:00:{number:02}Z"}}\n'


class Following:
    """What comes of some paths; `do` is called one after the other when nothing comes."""

    def __init__(self, *paths: object, grow: bool = True) -> None:
        self._paths = [str(path) for path in paths]
        self._grow = grow

    def through(self, *do: Callable[[], object]) -> list[str]:
        waiting = list(do)
        idle = 0

        def stops() -> bool:
            return not waiting and idle > 2

        found: list[str] = []
        inputs = open_inputs(self._paths)
        for record in follow(
            self._paths, inputs, TYPES, grow=self._grow, stops=stops, moment=0.05, between_looks=0
        ):
            if isinstance(record, Event):
                found.append(record.id)
            elif isinstance(record, Rejected):
                found.append(f"{Path(record.file or '-').name}:{record.number}")
            elif waiting:
                waiting.pop(0)()
                idle = 0
            else:
                idle += 1
        return found


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "app.log"
    path.write_text(line(1))
    return path


def append(path: Path, text: str) -> Callable[[], object]:
    def write() -> None:
        with path.open("a") as file:
            file.write(text)

    return write


def test_what_is_appended_is_read(log: Path) -> None:
    assert Following(log).through(append(log, line(2)), append(log, line(3))) == ["1", "2", "3"]


def test_a_line_is_read_when_it_is_whole(log: Path) -> None:
    whole = line(2)

    found = Following(log).through(append(log, whole[:20]), append(log, whole[20:] + line(3)))

    assert found == ["1", "2", "3"]


def test_a_last_line_without_an_ending_is_read_at_the_end(log: Path) -> None:
    assert Following(log).through(append(log, line(2).rstrip())) == ["1", "2"]


def test_a_file_that_was_rotated_is_read_to_its_end_and_then_the_new_one(log: Path) -> None:
    def rotate() -> None:
        append(log, line(2))()
        log.rename(log.with_name("app.log.1"))

    found = Following(log).through(rotate, lambda: log.write_text(line(3)), append(log, line(4)))

    assert found == ["1", "2", "3", "4"]


def test_a_file_that_was_cut_short_is_read_anew(log: Path) -> None:
    append(log, line(2))()

    found = Following(log).through(lambda: log.write_text(line(3)), append(log, line(4)))

    assert found == ["1", "2", "3", "4"]


def test_numbers_of_lines_begin_anew_with_a_new_file(log: Path) -> None:
    found = Following(log).through(
        append(log, "bad\n"),
        lambda: log.rename(log.with_name("old")),
        lambda: log.write_text("bad\n"),
    )

    assert found == ["1", "app.log:2", "app.log:1"]


def test_new_files_of_a_folder_are_read_and_rotated_ones_not_again(log: Path) -> None:
    def rotate() -> None:
        log.rename(log.with_name("app.log.1"))
        log.write_text(line(2))

    found = Following(log.parent).through(
        rotate, append(log.with_name("other.log"), line(3)), append(log, line(4)), lambda: None
    )

    assert sorted(found) == ["1", "2", "3", "4"]


def test_rows_of_csv_are_read_when_their_quotes_are_closed(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("time;type;text\n")

    found = Following(path).through(
        append(path, '2024-05-06T07:00:01Z;T;"one\n'),
        append(path, 'two"\n2024-05-06T07:00:02Z;T;x\n'),
        append(path, "never;T;x\n"),
    )

    assert found == ["log.csv:2", "log.csv:4", "log.csv:5"]


def test_files_are_merged_by_time_as_they_are_at_the_beginning(tmp_path: Path) -> None:
    for name, numbers in (("a", (1, 4, 5)), ("b", (2, 3, 6))):
        (tmp_path / f"{name}.jsonl").write_text("".join(map(line, numbers)))

    found = Following(tmp_path / "a.jsonl", tmp_path / "b.jsonl", grow=False).through()

    assert found == ["1", "2", "3", "4", "5", "6"]


def test_a_pipe_is_read_until_nobody_writes_to_it(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = os.open(path, os.O_RDWR)
    os.write(writer, line(1).encode() + line(2)[:10].encode())

    found = Following(path, grow=False).through(
        lambda: os.write(writer, line(2)[10:].encode() + b"bad"), lambda: os.close(writer)
    )

    assert found == ["1", "2", "pipe:3"]


@pytest.mark.parametrize("name", ["a.parquet", "a.jsonl.gz"])
def test_what_is_whole_when_it_is_written_is_not_followed(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"PAR1" if name.endswith("parquet") else b"\x1f\x8b")

    with pytest.raises(UsageError, match="only lines of JSON or CSV"):
        Following(path).through()
