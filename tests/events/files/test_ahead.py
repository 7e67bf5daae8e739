"""Work done ahead: the same items in the same order, and an end that leaves nothing behind."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from ensue.events.files.ahead import ahead


def test_items_come_in_order() -> None:
    assert list(ahead(iter(range(1000)))) == list(range(1000))


def test_what_is_raised_comes_after_the_items_before_it() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("no more")

    found = ahead(items())
    assert next(found) == 1
    with pytest.raises(ValueError, match="no more"):
        next(found)


def test_an_early_end_closes_the_work() -> None:
    closed = threading.Event()

    def items() -> Iterator[int]:
        try:
            yield from range(1_000_000)
        finally:
            closed.set()

    before = threading.active_count()
    found = ahead(items())
    assert next(found) == 0
    found.close()
    assert closed.is_set()
    assert threading.active_count() == before


def test_no_more_waits_than_is_allowed() -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for number in range(100):
            taken.append(number)
            yield number

    found = ahead(items(), depth=2)
    next(found)
    threading.Event().wait(0.3)
    assert len(taken) <= 5
    found.close()
