"""The package as an archive that Spark can send to its workers.

In comes a folder; out goes the path of a zip with Ensue's own files, for `--py-files` or
`spark.addArtifacts(path, pyfile=True)`. The dependencies of Ensue (pyarrow, msgspec, lark, numba)
are compiled or large, and have to be installed on the workers.

Workers that run a stream for Spark Connect are not shown what a client has added, in Spark 4.1 to
4.3: tasks of a stream look for it outside of the folder of the session. The functions of such a
stream carry what workers need of the package themselves (`carried`).
"""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Collection
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import IO

from pyspark.sql import DataFrame

import ensue
from ensue.version import __version__

_NOT_FOR_WORKERS = {
    "assistants",
    "brokers",
    "channel",
    "cli",
    "editor",
    "federation",
    "notebook",
    "server",
    "testing",
}


def package(folder: str | Path | None = None) -> str:
    """Write `ensue-VERSION.zip` into a folder (a new one if none is given); its path."""
    target = Path(folder) if folder is not None else Path(tempfile.mkdtemp(prefix="ensue-"))
    target.mkdir(parents=True, exist_ok=True)
    archive = target / f"ensue-{__version__}.zip"
    with archive.open("wb") as out:
        _write(out, without=())
    return str(archive)


def carried(events: DataFrame) -> bytes:
    """What the functions of a stream bring with them; nothing without Spark Connect."""
    is_connect = type(events).__module__.startswith("pyspark.sql.connect.")
    return _for_workers() if is_connect else b""


@cache
def _for_workers() -> bytes:
    held = BytesIO()
    _write(held, _NOT_FOR_WORKERS)
    return held.getvalue()


def _write(out: IO[bytes], without: Collection[str]) -> None:
    root = Path(next(iter(ensue.__path__)))
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(root.rglob("*")):
            place = file.relative_to(root)
            is_wanted = "__pycache__" not in place.parts and place.parts[0] not in without
            if is_wanted and file.is_file():
                archive.write(file, Path("ensue") / place)
