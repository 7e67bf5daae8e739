"""Files in zip archives, and files by URL: read as files of a folder are."""

from __future__ import annotations

import functools
import http.server
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ensue.errors import UsageError
from ensue.events.event import Event
from ensue.events.records.reading import read_inputs
from ensue.events.sources import open_inputs
from tests.events.vocabulary import types_from

LINE = '{{"id": "{0}", "source": "s", "type": "T", "time": "2024-05-06T07:00:0{0}Z"}}\n'
TYPES = types_from(T={})


def ids(*paths: str) -> list[str]:
    records = read_inputs(open_inputs(list(paths)), TYPES)
    return [each.id for each in records if isinstance(each, Event)]


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "logs.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("b/two.jsonl", LINE.format(2))
        file.writestr("a/one.jsonl", LINE.format(1))
        file.writestr("__MACOSX/._one.jsonl", b"\0")
    return path


def test_an_archive_is_read_like_a_folder(archive: Path) -> None:
    assert ids(str(archive)) == ["1", "2"]
    assert ids(str(archive.parent)) == ["1", "2"]
    assert ids(f"{archive}/b/two.jsonl") == ["2"]


def test_records_in_an_archive_are_known_by_their_files_in_it(tmp_path: Path) -> None:
    path = tmp_path / "logs.zip"
    with zipfile.ZipFile(path, "w") as file:
        for folder in ("a", "b"):
            file.writestr(f"{folder}/log.csv", "time,type\n2024-05-06T07:00:00Z,T\n")

    assert ids(str(path)) == [f"{path}/a/log.csv:2", f"{path}/b/log.csv:2"]


def test_an_archive_without_files_and_a_file_that_is_not_in_it_are_refused(
    archive: Path, tmp_path: Path
) -> None:
    with zipfile.ZipFile(tmp_path / "empty.zip", "w"):
        pass
    with pytest.raises(UsageError, match=r"`.*empty\.zip` holds no file of events"):
        open_inputs([str(tmp_path / "empty.zip")])
    with pytest.raises(UsageError, match=r"three\.jsonl.* cannot be read"):
        open_inputs([f"{archive}/three.jsonl"])


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    handler = functools.partial(Quiet, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_urls_are_opened_by_fsspec(tmp_path: Path, site: str) -> None:
    fsspec = pytest.importorskip("fsspec", reason="the `remote` extra is not installed")
    (tmp_path / "one.jsonl").write_text(LINE.format(1))
    memory = fsspec.filesystem("memory")
    with memory.open("/logs/two.jsonl", "wb") as file:
        file.write(LINE.format(2).encode())

    assert ids(f"file://{tmp_path}/one.jsonl") == ["1"]
    assert ids("memory://logs") == ["2"]
    assert ids("memory://logs/*.jsonl") == ["2"]
    assert ids(f"{site}/one.jsonl") == ["1"]
    with pytest.raises(UsageError, match=r"`memory://nowhere/x\.jsonl` cannot be read"):
        open_inputs(["memory://nowhere/x.jsonl"])
