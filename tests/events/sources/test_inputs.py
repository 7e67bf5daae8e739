"""Files as people have them: many, compressed, in folders, of any delimiter, on a pipe."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import threading
from pathlib import Path

import pyarrow as pa
import pytest
import zstandard

from ensue.errors import UsageError
from ensue.events.sources import InputFile, finding, open_inputs

LINES = b'{"id": "1"}\n{"id": "2"}\n'


def only(path: Path, **options: str) -> InputFile:
    (found,) = open_inputs([str(path)], **options)
    return found


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.jsonl", LINES, "jsonl"),
        ("a.csv", b"time,type\n", "csv"),
        ("a.tsv", b"time\ttype\n", "csv"),
        ("a.parquet", b"PAR1....", "parquet"),
        ("a.arrow", b"ARROW1\0\0", "arrow"),
        ("a.feather", b"ARROW1\0\0", "arrow"),
        # Bytes that begin files of one kind only go before the name.
        ("a.csv", b"PAR1....", "parquet"),
        ("a.jsonl", b"ARROW1\0\0", "arrow"),
        # A name that tells nothing leaves it to the text.
        ("app.log", LINES, "jsonl"),
        ("export", b"time;type;user.name\n1;2;3\n", "csv"),
        ("export", b"\xef\xbb\xbftime,type\n", "csv"),
        ("app.log", b"error: this, and that\n", "jsonl"),
        ("app.log", b"", "jsonl"),
        ("numbers", b"1,2,3\n", "jsonl"),
    ],
)
def test_the_format_is_told_by_the_bytes_or_the_name(
    tmp_path: Path, name: str, content: bytes, expected: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)

    assert only(path).format == expected


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.jsonl", "a"])
@pytest.mark.parametrize(
    ("pack", "kind"),
    [
        (gzip.compress, "gzip"),
        (zstandard.compress, "zstd"),
        (bz2.compress, "bz2"),
        (lzma.compress, "xz"),
    ],
)
def test_compressed_files_are_unpacked_whatever_their_names(
    tmp_path: Path, name: str, pack: object, kind: str
) -> None:
    path = tmp_path / name
    # What logs are rotated into: several members, one after the other.
    path.write_bytes(pack(LINES) + pack(LINES))  # type: ignore[operator]

    found = only(path)

    assert (found.format, found.compression) == ("jsonl", kind)
    with found.open() as file:
        assert file.read() == LINES + LINES


def test_the_format_behind_the_ending_of_a_compression_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.zst"
    path.write_bytes(zstandard.compress(b"time;type\n1;2\n"))

    assert (only(path).format, only(path).delimiter) == ("csv", ";")


def test_compressed_bytes_that_break_off_are_an_error_and_not_the_end(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(os.urandom(300_000))[:-1000])

    with only(path).open() as file, pytest.raises(OSError, match="damaged, or break off"):
        file.read()


@pytest.mark.parametrize(
    ("name", "header", "expected"),
    [
        ("a.csv", "time,type,a;b", ","),
        ("a.csv", "time;type;a", ";"),
        ("a.csv", "time\ttype", "\t"),
        ("a.csv", "time|type", "|"),
        ("a.tsv", "time", "\t"),
        ("a.csv", 'time,"a;b;c;d",type', ","),
        ("a.csv", "time", ","),
    ],
)
def test_the_delimiter_is_told_by_the_first_line(
    tmp_path: Path, name: str, header: str, expected: str
) -> None:
    path = tmp_path / name
    path.write_text(f"{header}\n")

    assert only(path).delimiter == expected


def test_a_delimiter_that_is_given_goes_before_all(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("time;x,type;y\n")

    assert only(path, delimiter=",").delimiter == ","
    assert only(path, delimiter="tab").delimiter == "\t"
    assert only(path, delimiter=",").format == "csv"


@pytest.mark.parametrize("given", ["", ",,", '"', "\n", "§"])
def test_what_cannot_part_cells_is_no_delimiter(tmp_path: Path, given: str) -> None:
    with pytest.raises(UsageError, match="is no delimiter: it is one character, as `;`, or one of"):
        open_inputs([str(tmp_path)], delimiter=given)


def test_a_delimiter_for_json_lines_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(LINES)

    with pytest.raises(UsageError, match="what is read is jsonl"):
        only(path, delimiter=";")


def test_folders_and_patterns_stand_for_their_files_in_order(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.jsonl.gz", "deep/c.jsonl", "_SUCCESS", ".a.jsonl.crc"):
        path = tmp_path / "logs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(LINES) if name.endswith("gz") else LINES)
    names = [each.name for each in open_inputs([str(tmp_path / "logs")])]

    assert names == ["a.jsonl.gz", "b.jsonl", "c.jsonl"]
    assert [each.name for each in open_inputs([f"{tmp_path}/logs/*.jsonl"])] == ["b.jsonl"]
    assert [each.name for each in open_inputs([f"{tmp_path}/lo*/**/*.jsonl"])] == [
        "b.jsonl",
        "c.jsonl",
    ]


def test_every_path_counts_and_none_counts_twice(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_bytes(LINES)
    both = [str(tmp_path / "b.jsonl"), str(tmp_path / "a.jsonl")]

    assert [each.name for each in open_inputs(both)] == ["b.jsonl", "a.jsonl"]
    with pytest.raises(UsageError, match=r"a\.jsonl` is read twice"):
        open_inputs([both[1], f"{tmp_path}/*.jsonl"])


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(tmp_path: Path) -> None:
    path = tmp_path / "a[1].jsonl"
    path.write_bytes(LINES)

    assert only(path).path == str(path)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("none.jsonl", "there is no file"),
        ("none/*.jsonl", "no file matches the pattern"),
        ("empty", "holds no file of events"),
        ("", "names nothing"),
    ],
)
def test_a_path_that_stands_for_nothing_is_refused(
    tmp_path: Path, path: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()

    with pytest.raises(UsageError, match=message):
        open_inputs([path])


def test_a_folder_of_several_formats_asks_which(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(LINES)
    (tmp_path / "b.csv").write_text("time,type\n")

    with pytest.raises(UsageError, match=r"several formats \(`csv`, `jsonl`\).*pattern"):
        open_inputs([str(tmp_path)])


def test_a_format_that_is_not_read_is_refused_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="choose one of `jsonl`, `csv`, `parquet`, `arrow`"):
        open_inputs([str(tmp_path)], format="xml")


def test_a_pipe_is_looked_at_without_losing_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=[gzip.compress(LINES)])
    writer.start()

    found = only(path)

    assert (found.compression, found.size, found.is_file) == ("gzip", None, False)
    with found.open() as file:
        assert file.read() == LINES
    writer.join()


def test_it_is_told_how_much_of_the_file_on_the_disk_has_been_taken(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.zst"
    path.write_bytes(zstandard.compress(os.urandom(500_000)))
    taken: list[int] = []

    found = only(path)
    with found.open(taken.append) as file:
        file.read()

    assert taken == sorted(taken)
    assert taken[-1] == found.size == path.stat().st_size


def test_arrow_is_opened_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, pa.schema([("a", "int8")])):
        pass

    assert only(path).format == "arrow"


def test_a_folder_of_more_files_than_one_means_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("")
    (tmp_path / "b.jsonl").write_text("")
    with pytest.raises(UsageError, match="has more than 1 files and folders in it"):
        finding.find_files([str(tmp_path)], most_entries=1)


def test_a_folder_that_cannot_be_looked_through_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library's refusal is made, since the superuser is refused nothing."""

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied", "/somewhere")

    monkeypatch.setattr(Path, "rglob", refuse)
    with pytest.raises(UsageError, match="cannot be looked through: `/somewhere`: permission"):
        finding.find_files([str(tmp_path)])
