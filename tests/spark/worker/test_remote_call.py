"""What a worker says that cannot run what it is told to."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle

from ensue.errors import EnsueError, JobError
from ensue.spark.failures import reason_of
from ensue.spark.worker.remote_call import for_workers

pickling: Any = cloudpickle
WORKER = """
import sys
from pyspark import cloudpickle

sys.modules["ensue"] = None
with open(sys.argv[1], "rb") as file:
    call = cloudpickle.load(file)
list(call([1]))
"""


def doubled(given: tuple[int], batches: list[int]) -> Iterator[int]:
    for each in batches:
        yield given[0] * each


def refused(given: tuple[int], batches: list[int]) -> Iterator[int]:
    yield given[0]
    raise JobError("the rows are not as SQL has them")


def out_of_memory(given: tuple[int], batches: list[int]) -> Iterator[int]:
    yield given[0]
    raise MemoryError


def test_a_function_is_found_by_its_name_and_told_what_was_given() -> None:
    sent = pickling.loads(pickling.dumps(for_workers(doubled, (2,))))

    assert list(sent([1, 2, 3])) == [2, 4, 6]


def test_a_worker_without_the_package_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "sent").write_bytes(pickling.dumps(for_workers(doubled, (2,))))

    done = subprocess.run(
        [sys.executable, "-c", WORKER, str(tmp_path / "sent")],
        capture_output=True,
        text=True,
        check=False,
    )

    assert reason_of(done.stderr).startswith("the Python of the workers has no `ensue`: install")
    assert "ensue.spark.package()" in done.stderr.splitlines()[-1]
    assert "pickle" not in done.stderr


def test_an_error_of_ours_comes_without_the_way_that_it_took() -> None:
    with pytest.raises(EnsueError, match="not as SQL has them") as raised:
        list(for_workers(refused, (2,))([1]))

    assert [each.name for each in raised.traceback][-1] == "call_by_name"


def test_a_lack_of_memory_is_told_with_what_to_do() -> None:
    with pytest.raises(MemoryError, match=r"make more partitions .*or give workers more"):
        list(for_workers(out_of_memory, (2,))([1]))
