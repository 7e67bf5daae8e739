"""Whole decimals, as which databases and Spark write 64-bit integers, are integers."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ensue
from ensue.events.event import Event
from ensue.events.records.reading import read_events

LIBRARY = """
eventtype A { attribute unsigned long long n; };
eventtype Out { attribute unsigned long long n; };
Out correlation Large (A a where n > 9007199254740992) a { case true: push new Out { n = a.n }; }
"""
VALUES = [1, 2**53, 2**53 + 1, 2**60, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1]


def table(numbers: pa.Array) -> pa.Table:
    count = len(numbers)
    times = pa.array(range(0, count * 1_000_000, 1_000_000), pa.timestamp("us", "UTC"))
    named = {"id": list(map(str, range(count))), "source": ["s"] * count, "type": ["A"] * count}
    return pa.table({**named, "time": times, "n": numbers})


def decimals(values: list[int], precision: int = 20) -> pa.Array:
    return pa.array(list(map(Decimal, values)), pa.decimal128(precision, 0))


@pytest.mark.parametrize("numbers", [pa.array(VALUES, pa.uint64()), decimals(VALUES)])
@pytest.mark.parametrize("engine", ["batch", "step", "reference"])
def test_every_integer_of_64_bits_is_exact(numbers: pa.Array, engine: str, tmp_path: Path) -> None:
    pq.write_table(table(numbers), tmp_path / "numbers.parquet")
    library = ensue.parse(LIBRARY)

    events = read_events(tmp_path / "numbers.parquet", library.checked.types)
    made = library.run([each for each in events if isinstance(each, Event)], engine=engine)

    assert [each.data["n"] for each in made] == VALUES[2:]


def test_outputs_can_be_read_as_events_again() -> None:
    made = ensue.correlate(table(decimals(VALUES)), ensue.parse(LIBRARY))
    again = LIBRARY.replace("(A a", "(Out a").replace("eventtype A", "eventtype Other")
    twice = ensue.correlate(made, ensue.parse(again))

    assert made.column("n").to_pylist() == twice.column("n").to_pylist() == VALUES[2:]


def test_decimals_below_zero_and_small_ones_are_integers_too() -> None:
    library = ensue.parse(LIBRARY.replace("unsigned ", "").replace("n > 9007199254740992", "n < 5"))
    made = ensue.correlate(table(decimals([-3, 7, 4], 19)), library)

    assert made.column("n").to_pylist() == [-3, 4]
