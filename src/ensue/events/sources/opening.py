"""Opening what a path stands for: a file, a member of a zip archive, a table, or a URL.

In comes a path as `finding` gives it; out come bytes. A member of an archive has the path of the
archive and its own, with `/` between, and so has a table of a database (`tables`). URLs are opened
by `fsspec`, which needs the extra `ensue[remote]` and, for most stores, a package of its own.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

from ensue.errors import UsageError
from ensue.events.sources.tables import (
    is_database,
    is_delta_folder,
    is_delta_table,
    open_delta_table,
    open_table_of_database,
)

_URL = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)
_NO_ARCHIVES = (".docx", ".jar", ".npz", ".ods", ".odt", ".pptx", ".whl", ".xlsx")
"""Endings of files that are zip archives, and no archives of files of events."""


def is_url(path: str) -> bool:
    return bool(_URL.match(path))


def is_archive(path: Path) -> bool:
    return path.is_file() and path.suffix.lower() not in _NO_ARCHIVES and zipfile.is_zipfile(path)


def members(archive: Path) -> Iterator[str]:
    """The paths of the files in an archive, in the order of their names.

    Raises `UsageError` if a file in it needs a password.
    """
    with zipfile.ZipFile(archive) as opened:
        for each in sorted(opened.infolist(), key=lambda info: info.filename):
            names = each.filename.split("/")
            if each.is_dir() or any(name[:1] in ("_", ".") for name in names):
                continue
            if each.flag_bits & 1:
                raise UsageError(
                    f"`{archive}`: `{each.filename}` needs a password: unpack the archive first"
                )
            yield f"{archive}/{each.filename}"


def urls_of(path: str) -> list[str]:
    """The files of a URL, which may be a folder or a pattern, in the order of their names.

    Raises `UsageError` if there are none, or no package to open it.
    """
    files, folder = _file_system(path)
    try:
        if any(sign in folder for sign in "*?["):
            found = files.glob(folder)
        elif files.isdir(folder):
            if is_delta_folder(files, folder):
                return [path]
            found = files.find(folder)
        else:
            return [path]
    except Exception as error:
        raise _unreadable(path, error) from None
    kept = [each for each in found if not _is_note(each.removeprefix(folder))]
    if not kept:
        raise UsageError(f"`{path}` has no files: give a folder, a pattern or a file of events")
    return sorted(files.unstrip_protocol(each) for each in kept)


def open_file(path: str) -> BinaryIO:
    """The bytes of a file. Raises `UsageError` if it cannot be opened."""
    if is_url(path):
        files, plain = _file_system(path)
        try:
            return cast(BinaryIO, files.open(plain, "rb"))
        except Exception as error:
            with suppress(Exception):
                if is_delta_folder(files, plain):
                    return open_delta_table(path)
            raise _unreadable(path, error) from None
    if is_delta_table(Path(path)):
        return open_delta_table(path)
    try:
        return Path(path).open("rb")
    except (FileNotFoundError, NotADirectoryError) as error:
        inside = _archive_of(path)
        if inside is None:
            raise _unreadable(path, error) from None
        archive, member = inside
        if is_database(archive):
            return open_table_of_database(archive, member)
    except OSError as error:
        raise _unreadable(path, error) from None
    try:
        return cast(BinaryIO, zipfile.ZipFile(archive).open(member))
    except (OSError, KeyError, zipfile.BadZipFile, NotImplementedError) as error:
        raise _unreadable(path, error) from None


def is_elsewhere(path: str) -> bool:
    """Whether a path is none of a file of this machine by itself."""
    return is_url(path) or (not Path(path).exists() and _archive_of(path) is not None)


def put_file(file: Path, url: str) -> None:
    """Write a file to a URL. Raises `UsageError` if that is not possible."""
    files, plain = _file_system(url)
    try:
        files.put_file(str(file), plain)
    except Exception as error:
        raise _unusable(url, "written", error) from None


def check_url(url: str) -> None:
    """Raises `UsageError` for a URL that no package opens."""
    _file_system(url)


def _archive_of(path: str) -> tuple[Path, str] | None:
    """The archive or the database in which a path is, and the name there."""
    whole = Path(path)
    for parent in whole.parents:
        if parent.is_file():
            is_whole = is_archive(parent) or is_database(parent)
            return (parent, str(whole.relative_to(parent))) if is_whole else None
    return None


def _file_system(path: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise UsageError(
            f"`{path}` is a URL, and the package that opens it is not installed:"
            " `pip install 'ensue[remote]'` brings it"
        ) from None
    try:
        files, plain = url_to_fs(path)
    except (ImportError, ValueError) as error:
        raise _unusable(path, "opened", error) from None
    return files, str(plain)


def _is_note(path: str) -> bool:
    return any(part[:1] in ("_", ".") for part in path.split("/") if part)


def _unreadable(path: str, error: Exception) -> UsageError:
    return _unusable(path, "read", error)


def _unusable(path: str, done: str, error: Exception) -> UsageError:
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return UsageError(f"`{path}` cannot be {done}: {reason[:1].lower()}{reason[1:]}")
