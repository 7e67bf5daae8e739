"""Lines of files in parts: each line is in one part, wherever the parts are cut."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.errors import UsageError
from ensue.spark.worker.files.file_parts import FilePart, count_lines, line_blocks

LINES = st.lists(st.binary(max_size=12).map(lambda each: each.replace(b"\n", b"x")), max_size=12)


def part(path: Path, begin: int, end: int, rank: int = 0) -> FilePart:
    return FilePart(str(path), f"file://{path}", rank, begin, end)


@given(
    lines=LINES,
    is_ended=st.booleans(),
    cuts=st.lists(st.integers(0, 150), max_size=5),
    block=st.integers(1, 40),
)
def test_every_line_is_in_the_part_where_it_begins(
    lines: list[bytes], is_ended: bool, cuts: list[int], block: int
) -> None:
    text = b"\n".join(lines) + (b"\n" if is_ended else b"")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "lines"
        path.write_bytes(text)
        bounds = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
        parts = [part(path, *each) for each in pairwise(bounds)]

        found = [[*line_blocks(each, block)] for each in parts]

    assert all(block.endswith(b"\n") for blocks in found for block in blocks)
    read = b"".join(block for blocks in found for block in blocks)
    assert read == (text if not text or text.endswith(b"\n") else text + b"\n")
    begins = [0, *(at + 1 for at, byte in enumerate(text) if byte == 10 and at + 1 < len(text))]
    for each, blocks in zip(parts, found, strict=True):
        own = sum(1 for begin in begins if each.begin <= begin < each.end and text)
        assert sum(block.count(b"\n") for block in blocks) == own


def test_every_line_of_a_part_is_counted_there(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"a\n \t\r\n\n#b\nc")
    numbers = pa.RecordBatch.from_pydict({"id": pa.array([0, 1])})
    parts = (tuple(part(path, 0, 4)), tuple(part(path, 4, 11)))

    found = [*count_lines(parts, iter([numbers]))]

    assert [each.column("lines")[0].as_py() for each in found] == [2, 3]


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"gone` cannot be read: no such file"):
        list(line_blocks(part(tmp_path / "gone", 0, 5)))
