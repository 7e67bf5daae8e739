"""Packs: what is written, in a value or in a file, is read again."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from ensue.errors import JobError
from ensue.spark.worker.packs.storage import PACK_FIELDS, PackWriter, repeated, unpacked

ROWS = pa.RecordBatch.from_pydict({"id": ["a", "b", None], "value": [1, None, 3]})
OTHERS = pa.RecordBatch.from_pydict({"id": ["c"], "value": [4]})


@pytest.mark.parametrize("in_files", [False, True])
def test_packs_come_out_as_they_went_in(tmp_path: Path, in_files: bool) -> None:
    folder = str(tmp_path) if in_files else None
    with PackWriter(folder) as first, PackWriter(folder) as second:
        written = [first.write(ROWS), second.write(OTHERS), first.write(OTHERS)]
        nothing: dict[str, object] = {}
        packs = pa.Table.from_batches(
            pa.RecordBatch.from_arrays(
                [repeated(values.get(name), 1, type_) for name, type_ in PACK_FIELDS],
                schema=pa.schema(PACK_FIELDS),
            )
            for values in [*written, nothing]
        )
        (batch,) = packs.combine_chunks().to_batches()

        # A file is read while its task still writes to it.
        assert list(unpacked(batch)) == [ROWS, OTHERS, OTHERS]
    assert list(unpacked(batch)) == [ROWS, OTHERS, OTHERS]
    assert len(list(tmp_path.iterdir())) == (2 if in_files else 0)
    assert all(values.get("pack_begin", 0) % 64 == 0 for values in written)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "gone"

    with PackWriter(str(missing)) as writer, pytest.raises(JobError, match="choose another folder"):
        writer.write(ROWS)
