"""Tables of DuckDB and of Delta Lake: read like files of their rows."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from ensue.errors import UsageError
from ensue.events.event import Event
from ensue.events.records.reading import read_inputs
from ensue.events.sources import open_inputs
from tests.events.vocabulary import types_from

TYPES = types_from(T={})


def ids(*paths: str) -> list[str]:
    records = read_inputs(open_inputs(list(paths)), TYPES)
    return [each.id for each in records if isinstance(each, Event)]


def rows(*numbers: int) -> pa.Table:
    times = [datetime(2024, 5, 6, 7, 0, number, tzinfo=UTC) for number in numbers]
    return pa.table(
        {
            "id": [str(number) for number in numbers],
            "type": ["T"] * len(numbers),
            "time": pa.array(times, pa.timestamp("us", "UTC")),
        }
    )


def test_tables_of_a_database_are_read_by_their_names(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb", reason="the `duckdb` extra is not installed")
    path = tmp_path / "events.db"
    found = rows(1, 2)
    with duckdb.connect(str(path)) as connection:
        connection.register("found", found)
        connection.execute("CREATE TABLE logons AS SELECT * FROM found")
    only = ids(str(path))
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE SCHEMA old")
        connection.execute("CREATE VIEW old.\"logons 2023\" AS SELECT * FROM logons WHERE id = '2'")

    assert only == ["1", "2"]
    assert ids(f"{path}/logons") == ids(f"{path}/main.logons") == ["1", "2"]
    assert ids(f"{path}/old.logons 2023") == ["2"]
    with pytest.raises(UsageError, match=r"has several tables: name one of them, .*/logons`"):
        open_inputs([str(path)])
    with pytest.raises(UsageError, match="has no table `logins`: its tables are `logons`, `old"):
        open_inputs([f"{path}/logins"])


def test_what_was_deleted_from_a_delta_table_is_not_read(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake", reason="the `delta` extra is not installed")
    path = str(tmp_path / "lake")
    deltalake.write_deltalake(path, rows(1, 2))
    deltalake.write_deltalake(path, rows(3), mode="append")
    # The files with what is deleted stay in the folder.
    deltalake.DeltaTable(path).delete("id = '2'")

    assert sorted(ids(path)) == ["1", "3"]


def test_a_delta_table_by_its_url(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake", reason="the `delta` extra is not installed")
    pytest.importorskip("fsspec", reason="the `remote` extra is not installed")
    path = str(tmp_path / "lake")
    deltalake.write_deltalake(path, rows(1))

    assert ids(f"file://{path}") == ["1"]


def test_a_package_that_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "x.db").write_bytes(b"\0" * 8 + b"DUCK" + b"\0" * 8)
    for name in ("duckdb", "deltalake"):
        monkeypatch.setitem(__import__("sys").modules, name, None)

    with pytest.raises(UsageError, match=r"pip install 'ensue\[delta\]'"):
        open_inputs([str(tmp_path)])
    with pytest.raises(UsageError, match=r"pip install 'ensue\[duckdb\]'"):
        open_inputs([str(tmp_path / "x.db")])
