"""Files of comma-separated values."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.errors import UsageError
from ensue.events.event import Event, Rejected
from ensue.events.records.reading import read_events
from ensue.events.types import TypeSystem

from .vocabulary import exactly, types_from

TYPES = types_from(
    All={
        "i": "short",
        "u": "unsigned long long",
        "r": "float",
        "b": "boolean",
        "c": "char",
        "s": "string",
        "t": "timestamp",
        "q": "sequence<long>",
    },
    One={"i": "short"},
)
TIME = "1970-01-01T00:00:01Z"


def read(content: str | bytes, types: TypeSystem = TYPES, **options: Any) -> list[Event | Rejected]:
    raw = content.encode() if isinstance(content, str) else content
    return list(read_events(io.BytesIO(raw), types, "csv", **options))


def only_event(content: str) -> Event:
    (event,) = read(content)
    assert isinstance(event, Event), event
    return event


def only_rejected(content: str | bytes) -> Rejected:
    (rejected,) = read(content)
    assert isinstance(rejected, Rejected), rejected
    return rejected


def test_cells_are_converted_by_the_declared_type_of_their_attribute() -> None:
    event = only_event(
        "type,time,i,u,r,b,c,s,t,q\n"
        f'All,{TIME},-3,18446744073709551615,1e2,TRUE,x,007,{TIME},"[1, 2]"\n'
    )
    assert exactly(event.data) == exactly(
        {
            "i": -3,
            "u": 2**64 - 1,
            "r": 100.0,
            "b": True,
            "c": "x",
            "s": "007",
            "t": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
            "q": [1, 2],
        }
    )


def test_columns_that_no_type_declares_stay_text_and_are_left_out_when_empty() -> None:
    records = read(f"type,time,note,i\nUnknown,{TIME},3,\nOne,{TIME},,3\n")
    assert [each.data for each in records if isinstance(each, Event)] == [{"note": "3"}, {"i": 3}]


def test_an_empty_cell_of_a_declared_attribute_is_null() -> None:
    assert only_event(f"type,time,i\nOne,{TIME},\n").data == {"i": None}


def test_a_declared_attribute_without_a_column_is_missing() -> None:
    assert "`i` of `One` is missing" in only_rejected(f"type,time,x\nOne,{TIME},1\n").problems[0]


def test_columns_of_cloudevents_attributes_are_those() -> None:
    event = only_event(
        f"specversion,id,source,type,time,subject,ce_hops,ce_subject2\n1.0,a,gps,X,{TIME},door,3,\n"
    )
    assert event == Event("a", "gps", "X", 1_000_000, None, {"subject": "door", "hops": "3"})


def test_without_id_and_source_the_place_and_the_file_stand_in() -> None:
    records = read(f"type,time\nX,{TIME}\n\nX,{TIME}\n", name="log.csv")
    assert [(each.id, each.source) for each in records if isinstance(each, Event)] == [
        ("log.csv:2", "log.csv"),
        ("log.csv:4", "log.csv"),
    ]


def test_a_column_named_data_is_the_whole_data_as_json() -> None:
    assert only_event(f'type,time,data\nOne,{TIME},"{{""i"": 3}}"\n').data == {"i": 3}


def test_a_column_of_its_own_goes_before_what_data_says() -> None:
    event = only_event(f'type,time,i,data\nOne,{TIME},4,"{{""i"": 3, ""j"": 5}}"\n')
    assert event.data == {"i": 4, "j": 5}


def test_an_empty_column_of_its_own_leaves_what_data_says() -> None:
    assert only_event(f'type,time,i,data\nOne,{TIME},,"{{""i"": 3}}"\n').data == {"i": 3}


def test_data_that_is_no_json_is_rejected() -> None:
    rejected = only_rejected(f"type,time,data\nX,{TIME},{{oops\n")
    assert rejected.problems[0].startswith("the column `data`: no JSON")


def test_a_column_cannot_be_added_to_data_that_is_no_object() -> None:
    rejected = only_rejected(f"type,time,i,data\nX,{TIME},4,[1]\n")
    assert "`data` is no object" in rejected.problems[0]


@pytest.mark.parametrize("cell", ["3", "3.0", "+3.00"])
def test_a_whole_number_may_be_written_as_a_real(cell: str) -> None:
    (event,) = read(f"type,time,i\nOne,{TIME},{cell}\n")
    assert isinstance(event, Event)
    assert exactly(event.data["i"]) == exactly(3)


@pytest.mark.parametrize(
    "cell", ["x", "3.5", "3.", "3e0", "1_0", "٣", "70000", "9" * 5000, "true", "0x1"]
)
def test_a_cell_that_is_no_integer_of_the_range_is_rejected(cell: str) -> None:
    (problem,) = only_rejected(f"type,time,i\nOne,{TIME},{cell}\n").problems
    assert "attribute `i` of `One`" in problem
    assert "a whole number from -32768 to 32767" in problem


@pytest.mark.parametrize("cell", ["nan", "inf", "1e999", "1_0", "1,5", "0x1p3", "-"])
def test_a_cell_that_is_no_finite_number_is_rejected(cell: str) -> None:
    types = types_from(R={"r": "double"})
    (rejected,) = read(f'type,time,r\nR,{TIME},"{cell}"\n', types)
    assert isinstance(rejected, Rejected)


def test_all_problems_of_a_row_are_named_at_once() -> None:
    rejected = only_rejected("specversion,type,time,data\n2,,noon,{\n")
    assert len(rejected.problems) == 4


def test_a_cell_in_quotes_may_hold_line_breaks_and_the_record_counts_from_its_first_line() -> None:
    content = f'type,time,note\nX,{TIME},"a\nb,\r\n""c"""\nX,noon,"d\ne"\nX,{TIME},f\n'
    first, second, third = read(content)
    assert isinstance(first, Event)
    assert first.data == {"note": 'a\nb,\r\n"c"'}
    assert isinstance(second, Rejected)
    assert (second.number, second.raw) == (5, b'X,noon,"d\ne"')
    assert isinstance(third, Event)


@pytest.mark.parametrize("row", [f"X,{TIME}", f"X,{TIME},1,2", "X"])
def test_a_row_of_another_width_is_rejected(row: str) -> None:
    rejected = only_rejected(f"type,time,note\n{row}\n")
    assert "but the first line names 3 columns" in rejected.problems[0]


def test_a_row_that_is_not_utf8_spoils_only_itself() -> None:
    content = f"type,time,note\nX,{TIME},ok\n".encode() + f"X,{TIME},".encode() + b"\xff\n"
    good, bad = read(content + f"X,{TIME},ok".encode())[:2]
    assert isinstance(good, Event)
    assert isinstance(bad, Rejected)
    assert bad.raw == f"X,{TIME},".encode() + b"\xff"
    assert "not UTF-8" in bad.problems[0]


def test_a_quote_that_is_never_closed_is_rejected_as_such() -> None:
    rejected = only_rejected(f'type,time,note\nX,{TIME},"a\nX,{TIME},b\n')
    assert rejected.number == 2
    assert rejected.problems == ("a quote that opens in this record is never closed",)


def test_text_after_a_closing_quote_is_rejected_and_the_next_row_is_read() -> None:
    bad, good = read(f'type,time,note\nX,{TIME},"a"b\nX,{TIME},c\n')
    assert isinstance(bad, Rejected)
    assert isinstance(good, Event)


def test_a_cell_of_many_megabytes_is_read() -> None:
    assert (
        len(only_event(f"type,time,note\nX,{TIME},{'n' * 5_000_000}\n").data["note"]) == 5_000_000
    )


def test_a_byte_order_mark_is_no_part_of_the_first_column() -> None:
    assert isinstance(read(b"\xef\xbb\xbftype,time\nX," + TIME.encode())[0], Event)


def test_a_file_with_columns_and_no_rows_holds_no_events() -> None:
    assert read("type,time\n") == []


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("kind,time,x", "no column `type`: its columns are `kind`, `time`, `x`"),
        ("x", "no column `type` and no column `time`: its columns are `x`"),
        ("type;time", "its columns are `type;time`"),
        ("type,time,x,x", "two columns for `x`"),
        ("type,time,subject,ce_subject", "two columns for `subject`"),
        ("type,time,ce_id", "name the column `id`"),
        ("", "is empty: the first line of a CSV file names its columns"),
        ('"type', "names no columns: a quote"),
    ],
)
def test_columns_that_make_no_events_are_refused_before_any_row(header: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(f"{header}\n1,2,3" if header and '"' not in header else header)
    assert message in str(caught.value)


@given(
    st.lists(
        st.fixed_dictionaries(
            {"note": st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))}
        ),
        max_size=5,
    )
)
def test_any_text_that_csv_can_hold_is_read_as_it_was_written(rows: list[dict[str, str]]) -> None:
    out = io.StringIO(newline="")
    writer = csv.writer(out, quoting=csv.QUOTE_ALL)
    writer.writerow(["type", "time", "note"])
    writer.writerows(["X", TIME, row["note"]] for row in rows)
    read_back = [each.data or {} for each in read(out.getvalue()) if isinstance(each, Event)]
    assert read_back == [{k: v for k, v in row.items() if v} for row in rows]
