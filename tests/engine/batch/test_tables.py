"""Arrow tables in: which columns make events, what is refused, what comes late, what goes out."""

from __future__ import annotations

import warnings
from typing import Any

import pyarrow as pa
import pytest

import ensue
from ensue.engine.batch import BatchEngine
from ensue.errors import UsageError

LIBRARY = ensue.parse("""
eventtype Reading { attribute short site; attribute float level; };
eventtype High { attribute short site; attribute float level; };
eventtype Alarm { attribute short site; attribute double first; attribute double last; };
Alarm correlation Rising (Reading a where level > 1.0, High b)
    a ; b by site
{ case true: push new Alarm { site = a.site, first = a.level, last = b.level }; }
""")
START = 1_700_000_000_000_000


def table(rows: list[tuple[str, int, Any, Any]], **extra: Any) -> pa.Table:
    """Rows of (type, seconds, site, level)."""
    types, seconds, sites, levels = (list(each) for each in zip(*rows, strict=True))
    return pa.table(
        {
            "type": types,
            "time": pa.array([START + each * 1_000_000 for each in seconds]).cast(
                pa.timestamp("us", "UTC")
            ),
            "site": sites,
            "level": levels,
            **extra,
        }
    )


ROWS: list[tuple[str, int, Any, Any]] = [
    ("Reading", 0, 1, 2.0),
    ("Reading", 1, 2, 0.5),
    ("High", 2, 1, 3.0),
    ("High", 3, 2, 3.0),
    ("Other", 4, None, None),
]


def found(out: pa.Table) -> list[tuple[Any, ...]]:
    return [(each["site"], each["first"], each["last"]) for each in out.to_pylist()]


def test_a_table_goes_in_and_a_table_comes_out() -> None:
    """The columns of the output are attributes, provenance and what every event has."""
    out = ensue.correlate(table(ROWS), LIBRARY)

    assert found(out) == [(1, 2.0, 3.0)]
    row = out.to_pylist()[0]
    assert row["id"] == f"Rising:3@{START + 2_000_000}:1:1"
    assert (row["type"], row["source"]) == ("Alarm", "ensue/Rising")
    assert (row["trigger"], row["causes"], row["partitionkey"]) == ("3", "1,3", "1")


def test_rows_are_read_in_the_order_of_their_times() -> None:
    assert found(ensue.correlate(table(ROWS[::-1]), LIBRARY)) == [(1, 2.0, 3.0)]


def test_a_reader_of_batches_is_as_good_as_a_table() -> None:
    """Anything with `__arrow_c_stream__` will do; anything else is refused by name."""
    stream = pa.RecordBatchReader.from_batches(
        table(ROWS).schema, table(ROWS).to_batches(max_chunksize=2)
    )

    assert found(ensue.correlate(stream, LIBRARY)) == [(1, 2.0, 3.0)]
    with pytest.raises(UsageError, match="`list` gives no Arrow stream"):
        ensue.correlate([1, 2], LIBRARY)


def test_columns_of_other_arrow_types_read_the_same() -> None:
    """Dictionaries, wider integers, whole numbers as reals, other units of time."""
    plain = table(ROWS)
    other = plain.set_column(0, "type", plain["type"].combine_chunks().dictionary_encode())
    other = other.set_column(1, "time", plain["time"].cast(pa.timestamp("ns", "UTC")))
    other = other.set_column(2, "site", plain["site"].cast(pa.float64()))

    assert ensue.correlate(other, LIBRARY).equals(ensue.correlate(plain, LIBRARY))


def test_a_column_of_data_is_read_row_by_row_with_the_same_outcome() -> None:
    """`data` as JSON text holds what has no column of its own."""
    rows = table(ROWS).drop_columns(["site", "level"])
    data = [f'{{"site": {s}, "level": {v}}}'.replace("None", "null") for _, _, s, v in ROWS]

    assert found(ensue.correlate(rows.append_column("data", pa.array(data)), LIBRARY)) == [
        (1, 2.0, 3.0)
    ]


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (("Reading", 1, 70_000, 2.0), "site"),
        (("Reading", 1, 1, float("nan")), "level"),
        (("Reading", 1, 1, 1e39), "level"),
        ((None, 1, 1, 2.0), "type"),
        (("", 1, 1, 2.0), "type"),
    ],
)
def test_a_row_that_does_not_fit_is_reported_and_left_out(
    bad: tuple[str, int, Any, Any], problem: str
) -> None:
    engine = BatchEngine(LIBRARY.checked)
    out = engine.push_batch(table([bad, *ROWS]))

    assert found(out) == [(1, 2.0, 3.0)]
    assert [record.number for record in engine.rejected] == [1]
    assert problem in str(engine.rejected[0].problems)
    assert engine.counts.events == len(ROWS)


def test_correlate_warns_of_rows_that_were_left_out() -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        ensue.correlate(table([("Reading", 1, 70_000, 2.0), *ROWS]), LIBRARY)

    assert "1 row is no event of this library and was left out; it is row 1" in str(told[0].message)


def test_a_type_that_lacks_a_column_refuses_its_rows() -> None:
    engine = BatchEngine(LIBRARY.checked)
    engine.push_batch(table(ROWS).drop_columns(["level"]))

    assert len(engine.rejected) == 4


def test_rows_from_before_an_earlier_batch_are_late() -> None:
    """They are kept and counted, and read by nobody."""
    engine = BatchEngine(LIBRARY.checked)
    engine.push_batch(table(ROWS[1:]))
    out = engine.push_batch(table([ROWS[0], ("High", 9, 1, 3.0)]))

    assert len(out) == 0
    assert [event.time for event in engine.late] == [START]
    assert engine.counts.late == 1


@pytest.mark.usefixtures("everything_small")
def test_what_is_bound_lasts_from_batch_to_batch() -> None:
    """Ids and values of earlier batches are still there when a later one completes the match."""
    engine = BatchEngine(LIBRARY.checked)
    engine.push_batch(table(ROWS[:1]))
    out = engine.push_batch(table(ROWS[2:3]))

    assert found(out) == [(1, 2.0, 3.0)]
    assert out.to_pylist()[0]["causes"] == "1,2"


def test_no_outputs_are_an_empty_table_with_the_columns_of_outputs() -> None:
    out = ensue.correlate(table(ROWS[:1]), LIBRARY)

    assert len(out) == 0
    assert out.schema.names == [*COMMON, "site", "first", "last"]


COMMON = [
    *("id", "source", "type", "time"),
    *("correlation", "trigger", "labels", "causes", "partitionkey"),
]
TWO_TYPES = """
eventtype Reading { attribute short site; attribute float level; attribute string labels; };
eventtype Low { attribute string site; attribute short step; };
eventtype High { attribute short site; attribute long step; attribute string trigger; };
Low correlation Falling (Reading a where level < 1.0) a
{ case true: push new Low { site = 'x', step = 1 }; }
High correlation Rising (Reading a where level > 2.0) a
{ case true: push new High { site = a.site, step = 70000, trigger = 'level' }; }
Reading correlation Odd (Reading a where level = 1.5) a { case true: push a; }
"""


def test_the_columns_of_outputs_follow_from_the_library_and_not_from_what_came() -> None:
    names = [*COMMON, "level", "step", "Reading", "Low", "High"]

    for level in (0.5, 2.5, 1.5, 1.8):
        out = ensue.correlate(table([("Reading", 0, 1, level)], labels=["p"]), TWO_TYPES)
        assert out.schema.names == names


def test_attributes_that_no_column_holds_stand_in_a_struct_of_their_type() -> None:
    """`site` is a text and a number, and every output has `labels` and `trigger`."""
    rows = [("Reading", 0, 1, 0.5), ("Reading", 1, 2, 2.5), ("Reading", 2, 3, 1.5)]
    given = table(rows, labels=["p", "q", "r"])

    low, high, sent = ensue.correlate(given, TWO_TYPES).to_pylist()

    assert (low["Low"], low["High"], low["step"]) == ({"site": "x"}, None, 1)
    assert (high["High"], high["step"]) == ({"site": 2, "trigger": "level"}, 70000)
    assert (sent["Reading"], sent["level"]) == ({"site": 3, "labels": "r"}, 1.5)
    assert [each["trigger"] for each in (low, high, sent)] == ["1", "2", "3"]


def test_what_an_event_brings_beyond_its_type_stands_after_the_columns_of_all() -> None:
    given = table(
        [("Reading", 0, 3, 1.5)], labels=["p"], hue=["red"], subject=["door"], ce_hops=[2]
    )

    out = ensue.correlate(given, TWO_TYPES)

    assert out.schema.names[-3:] == ["data", "subject", "ce_hops"]
    assert out.select(["data", "subject", "ce_hops"]).to_pylist() == [
        {"data": '{"hue":"red"}', "subject": "door", "ce_hops": 2}
    ]


def test_events_without_a_key_are_counted() -> None:
    engine = BatchEngine(LIBRARY.checked)
    engine.push_batch(table([("Reading", 0, None, 2.0), ("Other", 0, None, None)]))

    assert engine.counts.without_key["Rising"] == 1
