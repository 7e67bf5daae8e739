"""Jars are fetched once, from where Ivy is told to look, and what is missing is told."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from ensue.errors import UsageError
from ensue.spark.kafka import jars
from tests.servers.programs import skip_as_missing

REPOSITORY = """
<ivysettings>
  <settings defaultResolver="here"/>
  <resolvers>
    <filesystem name="here" m2compatible="true">
      <artifact pattern="{folder}/[organisation]/[module]/[revision]/[module]-[revision].[ext]"/>
      <ivy pattern="{folder}/[organisation]/[module]/[revision]/[module]-[revision].pom"/>
    </filesystem>
  </resolvers>
</ivysettings>
"""
POM = """
<project><modelVersion>4.0.0</modelVersion>
<groupId>plant</groupId><artifactId>{name}</artifactId><version>1.0</version>
<dependencies>{needs}</dependencies></project>
"""
NEEDS = (
    "<dependency><groupId>plant</groupId><artifactId>valve</artifactId>"
    "<version>1.0</version></dependency>"
)


@pytest.fixture(autouse=True)
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a jar that needs another one, and an empty cache."""
    folder = tmp_path / "repository"
    for name, needs in (("pump", NEEDS), ("valve", "")):
        place = folder / "plant" / name / "1.0"
        place.mkdir(parents=True)
        (place / f"{name}-1.0.jar").write_bytes(b"jar")
        (place / f"{name}-1.0.pom").write_text(POM.format(name=name, needs=needs))
    settings = tmp_path / "ivysettings.xml"
    settings.write_text(REPOSITORY.format(folder=folder))
    monkeypatch.setenv(jars.SETTINGS, str(settings))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    known = {f"{name}-1.0.jar": hashlib.sha256(b"jar").hexdigest() for name in ("pump", "valve")}
    monkeypatch.setattr(jars, "checksums", lambda: known)
    try:
        jars.java()
    except UsageError:
        skip_as_missing("there is no Java here")
    return folder


@pytest.mark.parametrize("changed", ["pump", "valve"])
def test_a_jar_that_is_not_the_tested_one_is_refused(repository: Path, changed: str) -> None:
    (repository / "plant" / changed / "1.0" / f"{changed}-1.0.jar").write_bytes(b"another jar")

    with pytest.raises(UsageError, match=rf"{changed}-1.0.jar` is not the jar that was tested"):
        jars.fetch(["plant:pump:1.0"], with_dependencies=True)


def test_a_jar_that_was_changed_in_the_cache_is_refused() -> None:
    (jar,) = jars.fetch(["plant:pump:1.0"], with_dependencies=False)
    jar.write_bytes(b"another jar")

    with pytest.raises(UsageError, match="is not the jar that was tested"):
        jars.fetch(["plant:pump:1.0"], with_dependencies=False)


def names(found: list[Path]) -> list[str]:
    return sorted(path.name for path in found)


def test_a_jar_comes_alone_or_with_all_that_it_needs() -> None:
    assert names(jars.fetch(["plant:pump:1.0"], with_dependencies=False)) == ["pump-1.0.jar"]
    assert names(jars.fetch(["plant:pump:1.0"], with_dependencies=True)) == [
        "pump-1.0.jar",
        "valve-1.0.jar",
    ]


def test_what_was_fetched_is_found_again_without_asking_anybody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = jars.fetch(["plant:pump:1.0"], with_dependencies=False)
    monkeypatch.setattr(jars, "_run", None)

    assert jars.fetch(["plant:pump:1.0"], with_dependencies=False) == first


def test_what_has_gone_from_the_cache_is_fetched_again() -> None:
    (jar,) = jars.fetch(["plant:pump:1.0"], with_dependencies=False)
    jar.unlink()

    assert jars.fetch(["plant:pump:1.0"], with_dependencies=False) == [jar]
    assert jar.is_file()


def test_a_jar_that_is_nowhere_is_told_with_what_to_do() -> None:
    with pytest.raises(UsageError, match=r"`plant:boiler:1.0` could not be fetched.*not found"):
        jars.fetch(["plant:boiler:1.0"], with_dependencies=False)


def test_without_java_that_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")

    with pytest.raises(UsageError, match="install Java 17"):
        jars.java()
