"""What Spark's own file sink keeps of itself, held against the checkpoint before a stream starts.

Beside the files that it writes, the sink has a list of them, `_spark_metadata`, with an entry for
each micro-batch: a reader sees what is listed, and a micro-batch that is listed is not written
again. Spark reads the list late or never, so that one that is damaged, or belongs to another
checkpoint, loses rows without a word. In come the place of a sink and its checkpoint; out go
nothing, or a `UsageError`. Only folders of this machine can be asked.
"""

from __future__ import annotations

import json
from pathlib import Path

from ensue.errors import UsageError
from ensue.spark.streaming.checkpoint_rules import local_folder

LIST = "_spark_metadata"
LISTED_FORMATS = frozenset({"parquet", "json", "csv", "orc", "text"})
_VERSION = "v1"
_COMPACT = ".compact"


def check_list(path: str, checkpoint: str) -> None:
    """Raises `UsageError` if the list of a sink does not fit what its checkpoint has done."""
    sink, remembered = local_folder(path), local_folder(checkpoint)
    if sink is None or remembered is None:
        return
    done = _last_number(remembered / "commits")
    listed = _entries(sink / LIST)
    if _last_number(remembered / "offsets") is None:
        if listed:
            raise UsageError(
                f"`{path}` in `[sink]` has micro-batches of another checkpoint, and those of the"
                f" new checkpoint `{checkpoint}` would be taken for written: give another `path`,"
                " or the checkpoint that they were written with"
            )
        return
    if done is not None and (not listed or max(listed) < done):
        last = f"ends with micro-batch {max(listed)}" if listed else "is missing"
        raise _damaged(path, checkpoint, f"{last}, and micro-batch {done} has been written")
    for number in _counting(listed):
        if number not in listed:
            raise _damaged(path, checkpoint, f"has no entry of micro-batch {number}")
        if not _is_whole(listed[number]):
            raise _damaged(path, checkpoint, f"has an entry that is broken, `{listed[number]}`")


def _damaged(path: str, checkpoint: str, how: str) -> UsageError:
    return UsageError(
        f"the list of what has been written to `{path}`, its folder `{LIST}`, {how}: readers would"
        " miss rows. Put back a copy of it, or start from a new `checkpoint`, with a new `path` in"
        f" `[sink]`; the old checkpoint is `{checkpoint}`"
    )


def _entries(folder: Path) -> dict[int, Path]:
    """The entries by their numbers; one that sums up all before it takes the place of its own."""
    found: dict[int, Path] = {}
    for each in sorted(folder.glob("*")):
        name = each.name.removesuffix(_COMPACT)
        if name.isdigit():
            found[int(name)] = each
    return found


def _counting(listed: dict[int, Path]) -> range:
    """Those that a reader reads: the last one that sums up, and all after it."""
    sums = [number for number, each in listed.items() if each.name.endswith(_COMPACT)]
    return range(max(sums, default=0), max(listed, default=-1) + 1)


def _is_whole(entry: Path) -> bool:
    try:
        version, *lines = entry.read_text("utf-8").splitlines()
        return version == _VERSION and all(isinstance(json.loads(line), dict) for line in lines)
    except (OSError, ValueError):
        return False


def _last_number(log: Path) -> int | None:
    numbers = [int(each.name) for each in log.glob("*") if each.name.isdigit()]
    return max(numbers, default=None)
