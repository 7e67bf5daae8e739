"""Pipes that are read as they come: nobody waits for a block to be full."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from ensue.events.sources import open_inputs
from ensue.events.sources.arriving import some_of

LINE = b'{"id": "1", "source": "s", "type": "T", "time": "2024-05-06T07:00:00Z"}\n'
FILLED = 1 << 20


@pytest.fixture
def pipe() -> Iterator[tuple[str, int]]:
    """The path of a pipe, and the descriptor that writes to it."""
    reader, writer = os.pipe()
    yield f"/dev/fd/{reader}", writer
    os.close(reader)
    os.close(writer)


def test_a_read_gives_what_has_come(pipe: tuple[str, int]) -> None:
    path, writer = pipe
    os.write(writer, LINE)
    (given,) = open_inputs([path])

    given = given.gathered(FILLED, 0.1)

    assert given.known_size == len(LINE)
    with given.open() as file:
        assert some_of(file, FILLED) == LINE
        os.write(writer, LINE + LINE)
        assert some_of(file, FILLED) == LINE + LINE


def test_so_does_one_whose_progress_is_told(pipe: tuple[str, int]) -> None:
    path, writer = pipe
    os.write(writer, LINE)
    (given,) = open_inputs([path])
    told: list[int] = []

    with given.gathered(FILLED, 0.1).open(told.append) as file:
        assert some_of(file, FILLED) == LINE
    assert told == [len(LINE)]


def test_so_does_a_log_that_is_cleaned(pipe: tuple[str, int]) -> None:
    path, writer = pipe
    os.write(writer, b'07:00 said "no" twice\n')
    (given,) = open_inputs([path], "csv", "space", "time,text...")

    with given.gathered(FILLED, 0.1).open() as file:
        assert some_of(file, FILLED) == b'07:00 "said ""no"" twice"\n'


def test_enough_is_not_waited_for_any_longer(pipe: tuple[str, int]) -> None:
    path, writer = pipe
    os.write(writer, LINE * 10)
    (given,) = open_inputs([path])
    begun = time.monotonic()

    assert given.gathered(len(LINE), 60).known_size >= len(LINE)
    assert time.monotonic() - begun < 30
