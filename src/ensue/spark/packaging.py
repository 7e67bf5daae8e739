"""The package as an archive that Spark can send to its workers.

In comes a folder; out goes the path of a zip with Ensue's own files, for `--py-files` or
`spark.addArtifacts(path, pyfile=True)`. The dependencies of Ensue (pyarrow, msgspec, lark, numba)
are compiled or large, and have to be installed on the workers.
"""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path

import ensue
from ensue.version import __version__


def package(folder: str | Path | None = None) -> str:
    """Write `ensue-VERSION.zip` into a folder (a new one if none is given); its path."""
    target = Path(folder) if folder is not None else Path(tempfile.mkdtemp(prefix="ensue-"))
    target.mkdir(parents=True, exist_ok=True)
    archive = target / f"ensue-{__version__}.zip"
    root = Path(next(iter(ensue.__path__)))
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as out:
        for file in sorted(root.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                out.write(file, Path("ensue") / file.relative_to(root))
    return str(archive)
