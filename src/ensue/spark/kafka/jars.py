"""Jars of Maven Central, fetched once and cached: what Kafka needs besides PySpark and Java.

In come pinned coordinates; out go paths of jars in the cache of the user. The Ivy that comes with
PySpark fetches them, so that neither Maven nor a download of Kafka is needed. A cached set needs no
network. A settings file of Ivy, named in `ENSUE_IVY_SETTINGS`, can replace Maven Central: wherever
a jar comes from, it is used only if it is, by its SHA-256, the one that was tested (`jars.sha256`).
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.sax.saxutils import quoteattr

from ensue.errors import UsageError

SETTINGS = "ENSUE_IVY_SETTINGS"
_LONGEST_FETCH_SECONDS = 600


def fetch(coordinates: Sequence[str], *, with_dependencies: bool) -> list[Path]:
    """The jars of `group:name:version` coordinates, from the cache or from Maven Central.

    Raises `UsageError` if they cannot be had.
    """
    folder_of_jars = cache_folder()
    kept = folder_of_jars / f"{_name_of(coordinates, with_dependencies)}.txt"
    if kept.is_file():
        jars = [Path(line) for line in kept.read_text().splitlines()]
        if jars and all(jar.is_file() for jar in jars):
            verify(jars)
            return jars
    folder_of_jars.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder_of_jars) as folder:
        asked, found = Path(folder) / "ivy.xml", Path(folder) / "found.txt"
        asked.write_text(_module(coordinates, with_dependencies))
        command = [java(), "-jar", str(_ivy()), "-warn", "-ivy", str(asked), "-confs", "default"]
        command += ["-cache", str(folder_of_jars / "ivy"), "-cachepath", str(found)]
        if settings := os.environ.get(SETTINGS):
            command += ["-settings", settings]
        _run(command, coordinates)
        jars = [Path(each) for each in found.read_text().strip().split(os.pathsep)]
        verify(jars)
        # Renamed when it is complete, so that a concurrent fetch reads all of it or nothing.
        listed = Path(folder) / "listed.txt"
        listed.write_text("\n".join(map(str, jars)))
        listed.replace(kept)
    return jars


def verify(jars: Sequence[Path]) -> None:
    """Raises `UsageError` for jars other than the tested ones."""
    known = checksums()
    for jar in jars:
        with jar.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if known.get(jar.name) != found:
            raise UsageError(
                f"`{jar}` is not the jar that was tested: its SHA-256 is {found}, and"
                f" {known.get(jar.name, 'none is known')} was asked for; delete it, look where"
                " jars come from, and start again"
            )


@cache
def checksums() -> Mapping[str, str]:
    """The SHA-256 of every jar that may be fetched, by the name of its file."""
    text = files("ensue.spark.kafka").joinpath("jars.sha256").read_text("utf-8")
    return {name: digest for digest, name in (line.split() for line in text.splitlines())}


def cache_folder() -> Path:
    """The folder of cached jars."""
    usual = os.environ.get("XDG_CACHE_HOME")
    return (Path(usual) if usual else Path.home() / ".cache") / "ensue" / "jars"


def java() -> str:
    """The Java that Spark would use. Raises `UsageError` if there is none."""
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "java").is_file():
        return str(Path(home) / "bin" / "java")
    found = shutil.which("java")
    if found is None:
        raise UsageError(
            "no Java was found: install Java 17, or say in `JAVA_HOME` where it is installed"
        )
    return found


def _ivy() -> Path:
    import pyspark

    found = sorted((Path(next(iter(pyspark.__path__))) / "jars").glob("ivy-*.jar"))
    if not found:
        raise UsageError(
            "this PySpark has no Ivy among its jars, so that nothing can be fetched: install the"
            " `pyspark` of PyPI, or start Spark with the jars that are needed"
        )
    return found[-1]


def _run(command: Sequence[str], coordinates: Sequence[str]) -> None:
    asked = ", ".join(f"`{each}`" for each in coordinates)
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_LONGEST_FETCH_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UsageError(
            f"{asked} could not be fetched within {_LONGEST_FETCH_SECONDS} seconds: look whether"
            " Maven Central can be reached"
        ) from None
    said = done.stdout.decode(errors="replace")
    if done.returncode != 0 or "UNRESOLVED DEPENDENCIES" in said or "FAILED DOWNLOADS" in said:
        missing = [line.strip(" \t:") for line in said.splitlines() if "not found" in line]
        reason = f" ({'; '.join(dict.fromkeys(missing))})" if missing else ""
        raise UsageError(
            f"{asked} could not be fetched{reason}: look whether Maven Central can be reached, or"
            f" name a settings file of Ivy in `{SETTINGS}` that leads to a mirror of it"
        )


def _module(coordinates: Sequence[str], with_dependencies: bool) -> str:
    """The module file for Ivy; `master` is a jar alone, `default` a jar and its dependencies."""
    wanted = "default" if with_dependencies else "master"
    dependencies = []
    for each in coordinates:
        group, name, version = map(quoteattr, each.split(":"))
        dependencies.append(
            f'<dependency org={group} name={name} rev={version} conf="default->{wanted}"/>'
        )
    return (
        '<ivy-module version="2.0"><info organisation="ensue" module="jars"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{''.join(dependencies)}</dependencies></ivy-module>"
    )


def _name_of(coordinates: Sequence[str], with_dependencies: bool) -> str:
    text = _module(coordinates, with_dependencies)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
