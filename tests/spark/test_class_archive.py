"""The archive of Spark's classes: when it is used, when it is made, and when neither."""

from __future__ import annotations

from pathlib import Path

import pytest

from ensue.spark import class_archive
from ensue.spark.class_archive import archive_options


@pytest.fixture(autouse=True)
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("SPARK_SUBMIT_OPTS", "JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS"):
        monkeypatch.delenv(name, raising=False)
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("java")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    monkeypatch.setenv(class_archive.FOLDER, str(tmp_path / "cache"))
    return java


def place(options: str) -> Path:
    return Path(options.rpartition("=")[2])


def test_it_is_made_once_and_used_from_then_on(java: Path) -> None:
    first = archive_options()
    assert "-XX:ArchiveClassesAtExit=" in first
    place(first).write_bytes(b"\0\0\0\0 half of it")
    assert archive_options() == first

    place(first).write_bytes(class_archive._MAGIC + b" all of it")
    second = archive_options()
    assert "-XX:SharedArchiveFile=" in second
    assert place(second) == place(first)

    java.write_text("a newer java")
    assert "-XX:ArchiveClassesAtExit=" in archive_options()


def test_nothing_is_kept_where_nothing_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    for folder in ("", str(tmp_path / "file"), str(tmp_path / "with space")):
        monkeypatch.setenv(class_archive.FOLDER, folder)
        assert archive_options() == ""
    monkeypatch.setenv(class_archive.FOLDER, str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    assert archive_options() == ""


def test_an_archive_that_the_user_names_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-XX:SharedArchiveFile=own.jsa")
    assert archive_options() == ""
