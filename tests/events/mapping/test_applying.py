"""A mapping over records and over tables: logs as they are, and one meaning for both ways."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.errors import EventError, UsageError
from ensue.events.cloudevents import event_of
from ensue.events.conformance import conform
from ensue.events.event import Event
from ensue.events.mapping import Mapping, apply_row
from ensue.events.mapping.instants import instants_in
from ensue.events.mapping.tables import apply_table
from ensue.events.mapping.values import mapped_instant
from ensue.events.times import parse_time
from ensue.events.types import TypeSystem
from tests.events.vocabulary import types_from

AT = parse_time("2024-05-06T07:08:09.123Z")


def read(mapping: Mapping, members: dict[str, Any], types: TypeSystem) -> Event:
    made = apply_row(mapping, members, types, identity="7", source="log")
    return conform(event_of(made), types)


def test_a_log_in_ecs_form() -> None:
    types = types_from(Failed={"user.name": "string", "source.ip": "string"})
    line = json.loads(
        '{"@timestamp": "2024-05-06T07:08:09.123Z", "log.level": "warn", "message": "failed login",'
        ' "event": {"action": "Failed", "id": "e1"}, "user": {"name": "ann"},'
        ' "source": {"ip": "10.1.2.3", "port": 22}, "host.name": "web1"}'
    )
    event = read(Mapping.parse("time=@timestamp,type=event.action,id=event.id"), line, types)
    assert (event.id, event.type, event.time, event.source) == ("e1", "Failed", AT, "log")
    assert event.data["source"] == {"ip": "10.1.2.3", "port": 22}
    assert event.data["user"] == {"name": "ann"}
    assert event.data["log.level"] == "warn"
    assert "@timestamp" not in event.data


def test_a_debezium_record() -> None:
    types = types_from(Change={"table": "string", "balance": "double", "op": "string"})
    line = json.loads(
        '{"before": null, "after": {"id": 5, "balance": 12}, "op": "u", "ts_ms": 1714979289123,'
        ' "source": {"table": "accounts", "lsn": 99}}'
    )
    mapping = Mapping.parse(
        "time=ts_ms:ms,id=source.lsn,table=source.table,balance=after.balance", type="Change"
    )
    event = read(mapping, line, types)
    assert (event.id, event.type, event.time) == ("99", "Change", AT)
    assert (event.data["table"], event.data["balance"], event.data["op"]) == ("accounts", 12.0, "u")


def test_a_flat_log_line_without_an_offset() -> None:
    types = types_from(Hit={"status": "short", "path": "string", "referer": "string"})
    line = {"ts": "2024-05-06 09:08:09.123", "kind": "Hit", "status": 404, "path": "/"}
    mapping = Mapping.parse("time=ts,type=kind", timezone="Europe/Berlin")
    event = read(mapping, line, types)
    assert (event.id, event.source, event.time) == ("7", "log", AT)
    assert event.data == {"status": 404, "path": "/", "referer": None}


def test_a_declared_attribute_inside_may_stand_under_its_whole_name() -> None:
    types = types_from(Hit={"host.name": "string"})
    line = {"time": "2024-05-06T07:08:09Z", "host.name": "web1"}
    assert read(Mapping.of(type="Hit"), line, types).data == {"host": {"name": "web1"}}


def test_attributes_may_be_times_with_a_unit() -> None:
    types = types_from(Hit={"began": "timestamp"})
    mapping = Mapping.parse("time=t:s,began=b:us", type="Hit")
    event = read(mapping, {"t": 1, "b": 1714979289123000}, types)
    assert event.time == 1_000_000
    assert event.data == {"began": datetime.fromtimestamp(0, UTC) + timedelta(microseconds=AT)}


def test_a_zone_alone_leaves_cloudevents_what_they_are() -> None:
    types = types_from(Hit={"began": "timestamp"})
    members = {
        "id": "1", "source": "s", "type": "Hit", "time": "2024-05-06 09:08:09.123", "level": "x",
        "data": {"began": "2024-05-06T09:08:09.123"},
    }  # fmt: skip
    event = read(Mapping.of(timezone="Europe/Berlin"), members, types)
    assert event.time == AT
    assert event.data["began"] == event.at
    assert event.extensions == {"level": "x"}


def test_what_is_wrong_with_times_is_said_at_once() -> None:
    types = types_from(Hit={"began": "timestamp"})
    with pytest.raises(EventError) as caught:
        read(Mapping.parse("time=ts,began=b:ms", type="Hit"), {"b": "soon"}, types)
    assert list(caught.value.problems) == [
        "`time` is missing: there is nothing at `ts`",
        "attribute `began`: `soon` is no number of milliseconds since 1970",
    ]


def test_a_number_asks_for_its_unit() -> None:
    with pytest.raises(EventError, match="say in which unit it counts since 1970"):
        read(Mapping.parse("time=ts", type="Hit"), {"ts": 5}, types_from(Hit={}))


def test_a_table_is_renamed_and_opened() -> None:
    table = pa.table(
        {
            "ts": pa.array([1_999, -1], pa.timestamp("ns")),
            "kind": ["Hit", "Hit"],
            "actor": pa.array([{"name": "ann"}, None]),
            "source": pa.array([{"ip": "::1"}, {"ip": "::2"}]),
            "id": ["old", "old"],
            "uuid": ["a", "b"],
        }
    )
    mapping = Mapping.parse("time=ts,type=kind,id=uuid,user=actor.name")
    rows, doubtful = apply_table(mapping, table, types_from(Hit={}), "`t`")
    assert doubtful is None
    found = rows.to_pydict()
    assert [each.microsecond for each in found["time"]] == [1, 999_999]
    assert (found["type"], found["id"], found["user"]) == (["Hit"] * 2, ["a", "b"], ["ann", None])
    assert found["data"] == [{"source": {"ip": "::1"}}, {"source": {"ip": "::2"}}]
    assert sorted(found) == ["actor", "data", "id", "time", "type", "user"]


def test_columns_that_are_not_there_are_named_at_once() -> None:
    table = pa.table({"a": [1]})
    with pytest.raises(UsageError, match=r"`time` in `ts`, `user` in `actor\.name`; its columns"):
        apply_table(
            Mapping.parse("time=ts,user=actor.name", type="T"), table, TypeSystem({}), "`t`"
        )


def test_a_unit_is_for_numbers() -> None:
    table = pa.table({"ts": pa.array([1], pa.timestamp("us"))})
    with pytest.raises(UsageError, match="no number since 1970: leave out the unit `ms`"):
        apply_table(Mapping.parse("time=ts:ms", type="T"), table, TypeSystem({}), "`t`")


def test_rows_whose_times_cannot_be_read_are_doubtful() -> None:
    table = pa.table({"time": ["2024-05-06T07:08:09.123Z", None, "soon", "2016-12-31T23:59:60Z"]})
    rows, doubtful = apply_table(Mapping.of(type="T"), table, TypeSystem({}), "`t`")
    assert doubtful is not None
    assert doubtful.tolist() == [False, True, True, True]
    assert rows.column("time").cast(pa.int64()).to_pylist() == [AT, None, None, None]


# --- one meaning over columns and row by row --------------------------------------------------

_DIGITS = "0123456789"
texts = st.one_of(
    st.from_regex(
        r"\A[0-9]{4}-[01][0-9]-[0-3][0-9][Tt ][0-2][0-9]:[0-6][0-9]:[0-6][0-9](\.[0-9]{1,9})?"
        r"([Zz]|[+-][0-2][0-9]:[0-6][0-9])?\Z"
    ),
    st.datetimes().map(datetime.isoformat),
    st.text(max_size=30),
    st.integers(-(2**66), 2**66).map(str),
    st.floats().map(repr),
)
zones = st.sampled_from([None, "UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"])
units = st.sampled_from([None, "s", "ms", "us", "ns"])


def agree(column: pa.Array, unit: str | None, zone: str | None) -> None:
    place = Mapping.of(timezone=zone).zone
    found = instants_in(column, unit, place)
    for value, instant, missing, unread in zip(column.to_pylist(), *found, strict=True):
        assert missing == (value is None)
        if missing or unread:
            continue
        assert instant == mapped_instant(value, unit, place)
    for value, unread in zip(column.to_pylist(), found.unread.tolist(), strict=True):
        if unread and isinstance(value, int | float):
            with pytest.raises(ValueError, match="since 1970"):
                mapped_instant(value, unit, place)


@given(st.lists(st.none() | texts.filter(lambda text: text.isprintable())), units, zones)
def test_texts(values: list[str | None], unit: str | None, zone: str | None) -> None:
    agree(pa.array(values, pa.string()), unit, zone)
    agree(pa.array(values, pa.string()).dictionary_encode(), unit, zone)


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)), units.filter(bool))
def test_whole_numbers(values: list[int | None], unit: str) -> None:
    agree(pa.array(values, pa.int64()), unit, None)


@given(st.lists(st.none() | st.floats() | st.floats(-1e12, 1e12)), units.filter(bool))
def test_reals(values: list[float | None], unit: str) -> None:
    agree(pa.array(values, pa.float64()), unit, None)


@given(
    st.lists(st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1))),
    zones.filter(bool),
    st.data(),
)
def test_local_times(values: list[datetime], zone: str, data: st.DataObject) -> None:
    # Near the changes of the clocks, where it matters.
    changes = [datetime(2024, 3, 31, 2), datetime(2024, 10, 27, 2), datetime(2024, 3, 10, 2)]
    for change in changes:
        minutes = data.draw(st.integers(-90, 90))
        values.append(change + timedelta(minutes=minutes))
    place = Mapping.of(timezone=zone).zone
    found = instants_in(pa.array(values, pa.timestamp("us")), None, place)
    for value, instant, unread in zip(values, found.values, found.unread, strict=True):
        if unread:
            with pytest.raises(ValueError, match="never show this time"):
                mapped_instant(value, None, place)
        else:
            assert instant == mapped_instant(value, None, place)
    assert not np.any(found.missing)
