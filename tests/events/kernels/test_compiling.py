"""Loops that are compiled once and then loaded from disk."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numba
import pytest

LOOP = """
def total(values):
    found = 0
    for value in values:
        found += value
    return found
"""
USE = """
import sys
import numpy as np
from ensue.events.kernels import compiling
from loop import total

compiling.before_compiling.append(lambda: print("compiling"))
for numbers in ([1, 2], [0.5, 1.5]):
    print(compiling.uncounted(total)(np.array(numbers)))
print("numba.np.linalg" in sys.modules)
"""


PART = """
from ensue.events.kernels.compiling import inner
from limits import FIRST

@inner
def begin():
    return FIRST
"""
LOOP_WITH_PART = """
from part import begin

def total(values):
    found = begin()
    for value in values:
        found += value
    return found
"""


def write(folder: Path, **sources: str) -> None:
    """Write modules that are as old as all others, so that nothing but their text tells."""
    for name, source in sources.items():
        path = folder / f"{name}.py"
        path.write_text(source)
        os.utime(path, (1, 1))


def use(folder: Path) -> list[str]:
    write(folder, loop=LOOP)
    return told_by(folder)


def told_by(folder: Path) -> list[str]:
    told = subprocess.run(
        [sys.executable, "-c", USE],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env={**os.environ, "NUMBA_CACHE_DIR": str(folder / "kept")},
    )
    return told.stdout.splitlines()


def test_a_loop_is_compiled_by_the_first_process_and_loaded_alone_by_the_next(
    tmp_path: Path,
) -> None:
    assert use(tmp_path) == ["compiling", "3", "2.0", "True"]
    assert use(tmp_path) == ["3", "2.0", "False"]


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", [b"", b"\x80\x05", b"cnowhere.at_all\nName\n."])
def test_what_is_kept_and_cannot_be_read_is_compiled_again(
    tmp_path: Path, ending: str, damage: bytes
) -> None:
    use(tmp_path)
    for kept in tmp_path.rglob(f"*.{ending}"):
        version = pickle.dumps(numba.__version__) if ending == "nbi" else b""
        kept.write_bytes(version + damage)

    assert use(tmp_path) == ["compiling", "3", "2.0", "True"]
    assert use(tmp_path) == ["3", "2.0", "False"]


def test_a_loop_that_has_changed_is_compiled_again(tmp_path: Path) -> None:
    use(tmp_path)
    (tmp_path / "loop.py").write_text(LOOP.replace("found = 0", "found = 1"))

    assert told_by(tmp_path)[:2] == ["compiling", "4"]


def test_a_loop_is_compiled_again_when_a_part_of_it_has_changed(tmp_path: Path) -> None:
    write(tmp_path, loop=LOOP_WITH_PART, part=PART, limits="FIRST = 0")
    assert told_by(tmp_path)[:2] == ["compiling", "3"]

    write(tmp_path, part=PART.replace("return FIRST", "return FIRST + 7"))

    assert told_by(tmp_path)[:2] == ["compiling", "10"]


def test_a_loop_is_compiled_again_when_a_constant_has_changed(tmp_path: Path) -> None:
    write(tmp_path, loop=LOOP_WITH_PART, part=PART, limits="FIRST = 0")
    told_by(tmp_path)

    write(tmp_path, limits="FIRST = 15")

    assert told_by(tmp_path)[:2] == ["compiling", "18"]
