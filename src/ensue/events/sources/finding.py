"""The files of paths, folders and patterns.

In come paths as users write them; out go files, also those in zip archives, in the order of the
paths and within a folder or a pattern in the order of their names. Files whose names begin with a
dot or an underscore are left by tools beside data, and are skipped. A path without files, and a
file of two paths, are refused, since one of them would be ignored or counted twice.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ensue.errors import UsageError
from ensue.events.sources.contents import format_of_ending
from ensue.events.sources.opening import is_archive, is_elsewhere, is_url, members, urls_of
from ensue.events.sources.tables import is_database, is_delta_table, table_of_database

STDIN = "-"
MOST_ENTRIES = 1_000_000
"""The most entries of a folder at any depth: a mistake such as `/` must not take hours."""


def find_files(
    paths: Sequence[str], format_: str | None = None, most_entries: int = MOST_ENTRIES
) -> list[str]:
    """The files of paths. Raises `UsageError` for a path without files."""
    found: dict[str, str] = {}
    files: list[str] = []
    for path in paths:
        for file in _files_of(path, format_, most_entries):
            known = file if file == STDIN else os.path.realpath(file)
            if known in found:
                raise UsageError(
                    f"`{file}` is read twice, by `{found[known]}` and by `{path}`: name it once"
                )
            found[known] = path
            files.append(file)
    return files


def _files_of(path: str, format_: str | None, most_entries: int) -> list[str]:
    if not path:
        raise UsageError("`--events` names nothing: give the path of a file of events, or `-`")
    if path == STDIN:
        return [path]
    if is_url(path):
        return urls_of(path)
    place = Path(path)
    if is_delta_table(place):
        return [path]
    if is_database(place):
        return [table_of_database(place)]
    if place.is_dir():
        return _of_one_format(path, _below(place, most_entries), format_)
    if is_archive(place):
        return _of_one_format(path, [place], format_)
    if place.exists() or is_elsewhere(path):
        return [path]
    if not glob.has_magic(path):
        raise UsageError(f"there is no file `{path}`: give the path of a file of events")
    files: list[Path] = []
    for each in sorted(_matched(path)):
        files += _below(each, most_entries) if each.is_dir() else [each]
    if not files:
        raise UsageError(
            f"no file matches the pattern `{path}`: give a pattern, a folder or the path of a file"
            " of events"
        )
    return _of_one_format(path, files, format_)


def _matched(pattern: str) -> Iterator[Path]:
    """The files of a pattern. `**` enters folders, but not links to folders.

    A link may lead back to a folder above it: two such links make 2^40 paths to one file.
    """
    start, *folders = re.split(r"(?:^|(?<=/))\*\*/+", pattern)
    places = [start]
    for after in folders:
        tops = {top for place in places for top in (glob.glob(place) if place else [os.curdir])}
        below = {folder for top in tops for folder in _folders_below(top)}
        places = [f"{glob.escape(folder)}{after}" for folder in sorted(below)]
    for place in places:
        yield from map(Path, glob.glob(place))


def _folders_below(top: str) -> Iterator[str]:
    """A folder and all folders below it, each with a `/` at its end, without hidden ones."""
    for folder, below, _ in os.walk(top):
        below[:] = [each for each in below if not each.startswith(".")]
        yield os.path.join(folder, "")


def _below(folder: Path, most_entries: int) -> list[Path]:
    """The files below a folder. Raises `UsageError` if it cannot be read."""
    found: list[Path] = []
    try:
        for number, each in enumerate(folder.rglob("*")):
            if number >= most_entries:
                raise UsageError(
                    f"`{folder}` has more than {most_entries:,} files and folders in it: give one"
                    " below it, or a pattern"
                )
            if each.is_file() and not _is_note(each.relative_to(folder).parts):
                found.append(each)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(
            f"`{folder}` cannot be looked through: `{error.filename or folder}`: {reason}"
        ) from None
    return sorted(found)


def _is_note(parts: Iterable[str]) -> bool:
    return any(part[0] in "_." for part in parts)


def _of_one_format(path: str, files: Sequence[Path], format_: str | None) -> list[str]:
    """The files, with those in archives; `UsageError` for none, or for several formats."""
    files = [
        inside
        for each in files
        for inside in ([*map(Path, members(each))] if is_archive(each) else [each])
    ]
    if not files:
        raise UsageError(
            f"the folder `{path}` holds no file of events: give one that does, or the path of a"
            " file of events"
        )
    told = {format_of_ending(each.name): each.suffix for each in files}
    told.pop(None, None)
    if format_ is None and len(told) > 1:
        names = ", ".join(f"`{name}`" for name in sorted(filter(None, told)))
        example = f"{path.rstrip('/')}/*{min(told.values())}"
        raise UsageError(
            f"`{path}` has files of several formats ({names}): choose some of them with a pattern,"
            f" as `{example}`"
        )
    return [str(each) for each in files]
