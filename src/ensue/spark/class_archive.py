"""The classes of Spark as an archive, so that a local Spark starts sooner.

A process of Spark spends most of its first seconds on reading and checking some ten thousand
classes. Java can write the classes that it has used into a file when it ends, and map that file
into memory when it starts. In comes nothing; out go options for Java: to use the archive, or to
make it where there is none. It is kept in the cache folder of the user, under a name that its Java
and its Spark determine. A file that is damaged, half written or of another Java is no archive to
Java, which then starts without one. Where nothing is to be kept (`ENSUE_CACHE` is empty), none is
made.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import pyspark

FOLDER = "ENSUE_CACHE"
"""The environment variable with another folder for what is kept; empty to keep nothing."""
# Another Java than OpenJDK may not know the options. An archive that does not fit is no news.
_SILENT = "-XX:+IgnoreUnrecognizedVMOptions -Xshare:auto -Xlog:disable -Xlog:all=off"
_MAGIC = (0xF00BABA8).to_bytes(4, "little")
"""The first bytes of an archive, which are written last."""
_CHOSEN_ELSEWHERE = ("SPARK_SUBMIT_OPTS", "JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS")
"""Environment variables with options for Java, which may name an archive."""


def archive_options() -> str:
    """Options that make Java use the archive, or write it when it ends; empty if it can do neither.

    Several processes may write the archive at once: each writes a file of its own, and the last
    one stays.
    """
    if any("Archive" in os.environ.get(name, "") for name in _CHOSEN_ELSEWHERE):
        return ""
    place = _place()
    if place is None:
        return ""
    try:
        with place.open("rb") as file:
            if file.read(len(_MAGIC)) == _MAGIC:
                return f"{_SILENT} -XX:SharedArchiveFile={place}"
    except FileNotFoundError:
        pass
    except OSError:
        return ""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
    except OSError:
        return ""
    return f"{_SILENT} -XX:ArchiveClassesAtExit={place}" if os.access(place.parent, os.W_OK) else ""


def _place() -> Path | None:
    """The file of the archive; None if there is no folder for it, or no Java."""
    given = os.environ.get(FOLDER)
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if given == "" or java is None:
        return None
    named = given or os.environ.get("XDG_CACHE_HOME")
    try:
        folder = (Path(named) if named else Path.home() / ".cache") / "ensue"
        own = Path(java).resolve()
        found = own.stat()
    except (OSError, RuntimeError):
        return None
    if any(each.isspace() for each in str(folder)):
        # Spark parts options at white space.
        return None
    said = (str(own), found.st_size, found.st_mtime_ns, pyspark.__version__, pyspark.__file__)
    digest = hashlib.sha256(repr(said).encode()).hexdigest()[:32]
    return folder / f"spark-classes-{digest}.jsa"
