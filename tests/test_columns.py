"""`ensue.correlate`: what it takes for a library, and what it tells of rows that were not read."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import ensue

TEXT = """
eventtype Ping { attribute string host; };
eventtype Pair {};
Pair correlation Twice (Ping p) p{2} by host { case true: push new Pair {}; }
"""


def pings(*hosts: str | None) -> pa.Table:
    return pa.table(
        {
            "id": [f"e{n}" for n in range(len(hosts))],
            "type": ["Ping"] * len(hosts),
            "time": pa.array(range(len(hosts)), pa.timestamp("us", "UTC")),
            "host": pa.array(hosts, pa.string()),
        }
    )


def test_a_library_may_be_given_as_itself_its_text_or_its_file(tmp_path: Path) -> None:
    file = tmp_path / "rules.cor"
    file.write_text(TEXT)
    given: list[ensue.Library | str | Path] = [ensue.parse(TEXT), TEXT, file, str(file)]

    found = [ensue.correlate(pings("a", "a"), each).num_rows for each in given]

    assert found == [1, 1, 1, 1]


def test_a_file_of_tables_serves_as_well(tmp_path: Path) -> None:
    file = tmp_path / "rules.tables"
    file.write_bytes(ensue.parse(TEXT).tables())

    assert ensue.correlate(pings("a", "a"), file).num_rows == 1


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(ensue.UsageError, match=r"there is no file `rules\.kor`"):
        ensue.correlate(pings("a"), "rules.kor")


@pytest.mark.parametrize("given", [5, None, b"rules.cor"])
def test_what_is_no_library_at_all_is_told_what_is_allowed(given: Any) -> None:
    with pytest.raises(ensue.UsageError, match="give a `Library`, its text, or the path"):
        ensue.correlate(pings("a"), given)


@pytest.mark.parametrize(
    ("hosts", "told"),
    [
        (["a", None], "1 row has no key for `Twice`, which did not read it"),
        (["a", None, None], "2 rows have no key for `Twice`, which did not read them"),
    ],
)
def test_rows_without_a_key_are_counted(hosts: list[str | None], told: str) -> None:
    with pytest.warns(UserWarning, match="no key") as seen:
        ensue.correlate(pings(*hosts), TEXT)

    assert [str(each.message) for each in seen] == [told]


def test_nothing_is_said_where_everything_was_read() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        assert ensue.correlate(pings("a", "b"), TEXT).num_rows == 0


def test_columns_may_have_names_of_their_own() -> None:
    table = pa.table(
        {
            "ts": [1_714_979_289_000, 1_714_979_290_000],
            "machine": pa.array([{"name": "a"}, {"name": "a"}]),
        }
    )
    found = ensue.correlate(
        table, TEXT, columns={"time": "ts:ms", "host": "machine.name"}, type="Ping"
    )
    assert found.to_pydict()["causes"] == ["2"]
    assert found.to_pydict()["time"][0].isoformat() == "2024-05-06T07:08:10+00:00"


def test_times_without_an_offset_are_in_the_zone_that_is_named() -> None:
    table = pa.table({"time": ["2024-05-06 09:00:00", "2024-05-06 09:00:01"], "host": ["a", "a"]})
    with pytest.warns(UserWarning, match="2 rows are no events"):
        assert ensue.correlate(table, TEXT, type="Ping").num_rows == 0
    found = ensue.correlate(table, TEXT, type="Ping", timezone="Europe/Berlin")
    assert found.to_pydict()["time"][0].isoformat() == "2024-05-06T07:00:01+00:00"


def test_what_is_wrong_with_a_mapping_is_said() -> None:
    with pytest.raises(ensue.UsageError, match="there is no time zone `Mars`"):
        ensue.correlate(pings("a"), TEXT, timezone="Mars")


SILENCE = """
eventtype Beat { attribute string host; };
eventtype Down { attribute string host; };
Down correlation Silent (Beat beat) l:(beat ; timeout(10 s)) by host
{ case l: push new Down { host = beat.host }; }
"""


@pytest.mark.parametrize(
    ("until", "count"),
    [
        (None, 0),
        ("2024-05-06T07:00:09Z", 0),
        ("2024-05-06T07:00:10Z", 1),
        ("2020-01-01T00:00:00Z", 0),
    ],
)
def test_the_clock_goes_on_until(until: str | None, count: int) -> None:
    beats = pa.table(
        {"type": ["Beat"], "time": ["2024-05-06T07:00:00Z"], "host": ["a"], "id": ["1"]}
    )

    found = ensue.correlate(beats, SILENCE, until=until)

    assert found.num_rows == count
    assert found.column("host").to_pylist() == ["a"] * count


def test_a_key_that_is_a_struct_is_said_with_what_to_write() -> None:
    beats = pa.table(
        {
            "type": ["Beat"],
            "time": ["2024-05-06T07:00:00Z"],
            "host": ["a"],
            "rack": [{"name": "r", "row": 1}],
        }
    )

    with pytest.warns(UserWarning, match=r"write `by rack\.name`"):
        ensue.correlate(beats, SILENCE.replace("by host", "by rack"))
