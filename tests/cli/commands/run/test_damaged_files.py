"""Files of tables that are damaged or break off: one sentence with what is wrong and what to do."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import Ensue

from .test_columns import LIBRARY

COUNT = 3000
AGAIN = "write the file again, or copy it again from where it is whole"


@pytest.fixture
def library(tmp_path: Path) -> Path:
    path = tmp_path / "rules.cor"
    path.write_text(LIBRARY)
    return path


def written(folder: Path, ending: str) -> Path:
    draw = random.Random(1)
    table = pa.table(
        {
            "id": [f"e{number}" for number in range(COUNT)],
            "type": [draw.choice(["Reading", "High"]) for _ in range(COUNT)],
            "time": pa.array(range(COUNT), pa.timestamp("s", "UTC")),
            "host": [draw.choice("abc") * 3 for _ in range(COUNT)],
            "level": [draw.uniform(0, 100) for _ in range(COUNT)],
            "site": pa.array([1] * COUNT, pa.int16()),
        }
    )
    path = folder / f"e.{ending}"
    if ending == "parquet":
        pq.write_table(table, path, row_group_size=1000)
    else:
        with pa.OSFile(str(path), "wb") as file:
            make = pa.ipc.new_file if ending == "arrow" else pa.ipc.new_stream
            with make(file, table.schema) as writer:
                writer.write_table(table, max_chunksize=1000)
    return path


@pytest.mark.parametrize("engine", ["batch", "step"])
@pytest.mark.parametrize("ending", ["parquet", "arrow", "arrows"])
def test_a_file_that_breaks_off(
    ensue: Ensue, tmp_path: Path, library: Path, ending: str, engine: str
) -> None:
    file = written(tmp_path, ending)
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])

    answer = ensue("run", library, "-e", file, "--engine", engine, "--out", tmp_path / "o.jsonl")

    assert answer.code == 2
    assert "breaks off" in answer.err
    assert answer.err.rstrip().endswith(AGAIN)
    assert not (tmp_path / "o.jsonl").exists()


@pytest.mark.parametrize("ending", ["parquet", "arrow", "arrows"])
def test_bytes_that_are_damaged_are_told_or_read_and_never_stop_the_process(
    ensue: Ensue, tmp_path: Path, library: Path, ending: str
) -> None:
    file = written(tmp_path, ending)
    whole = file.read_bytes()
    told = 0
    for seed in range(25):
        draw = random.Random(seed)
        at, length = draw.randrange(8, len(whole)), draw.choice([1, 8, 400])
        file.write_bytes(whole[:at] + draw.randbytes(length) + whole[at + length :])
        answer = ensue("run", library, "-e", file, "--engine", "batch")
        assert answer.code in (0, 1, 2)
        assert "report it" not in answer.err, (seed, answer.err)
        told += answer.code == 2
    assert told


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "it is empty"),
        (b"id,type\n1,Reading\n", "it does not begin with `PAR1`"),
        (b"PAR1\0\0\0\0PAR1", "the description of its columns is damaged"),
    ],
)
def test_what_is_no_parquet(
    ensue: Ensue, tmp_path: Path, library: Path, content: bytes, said: str
) -> None:
    file = tmp_path / "e.parquet"
    file.write_bytes(content)

    answer = ensue("run", library, "-e", file, "--format", "parquet")

    assert answer.code == 2
    assert said in answer.err


def test_texts_of_arrow_that_are_no_utf8_cost_their_rows_alone(
    ensue: Ensue, tmp_path: Path, library: Path
) -> None:
    file = written(tmp_path, "arrow")
    file.write_bytes(file.read_bytes().replace(b"aaa", b"a\xffa", 1))

    answer = ensue("run", library, "-e", file, "--engine", "batch")

    assert "2,999 events read, 1 refused" in answer.err


def rows_of(**columns: pa.Array) -> pa.Table:
    count = 3
    return pa.table(
        {
            "type": ["Reading"] * count,
            "time": pa.array(range(count), pa.timestamp("s", "UTC")),
            "host": ["a"] * count,
            "level": [1.0] * count,
            "site": pa.array([1] * count, pa.int16()),
        }
        | columns
    )


def as_arrow(folder: Path, table: pa.Table) -> Path:
    path = folder / "e.arrow"
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    return path


@pytest.mark.parametrize("engine", ["batch", "step"])
@pytest.mark.parametrize("place", [7, -2])
def test_a_value_that_is_none_of_its_dictionary(
    ensue: Ensue, tmp_path: Path, library: Path, engine: str, place: int
) -> None:
    """pyarrow reads before or behind the dictionary, and may take the process with it."""
    places = pa.array([0, place, 1], pa.int32())
    hosts = pa.DictionaryArray.from_arrays(places, pa.array(["a", "b"]), safe=False)
    file = as_arrow(tmp_path, rows_of(host=hosts))

    answer = ensue("run", library, "-e", file, "--engine", engine)

    assert answer.code == 2
    assert "batch 1 is damaged" in answer.err


@pytest.mark.parametrize("engine", ["batch", "step"])
def test_texts_in_views_are_read_as_others(
    ensue: Ensue, tmp_path: Path, library: Path, engine: str
) -> None:
    long = "a text that is longer than twelve bytes"
    views = pa.array(["a", long, None], pa.string_view())
    file = as_arrow(tmp_path, rows_of(host=views, note=views))

    answer = ensue("run", library, "-e", file, "--engine", engine)

    assert "bug in ensue" not in answer.err
    assert "3 events read" in answer.err


def test_a_column_whose_name_is_no_utf8(ensue: Ensue, tmp_path: Path, library: Path) -> None:
    file = as_arrow(tmp_path, rows_of(notenotenote=pa.array([1, 2, 3])))
    file.write_bytes(file.read_bytes().replace(b"notenotenote", b"note\xff\xfenotenot"[:12]))

    answer = ensue("run", library, "-e", file, "--engine", "batch")

    assert answer.code == 2
    assert "cannot be read as Arrow" in answer.err
