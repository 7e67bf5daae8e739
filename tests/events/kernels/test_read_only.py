"""An installation whose folder cannot be written: what is compiled there is used by everybody."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import ensue
from tests.cli.conftest import RULES, event
from tests.events.kernels.test_compiling import LOOP, USE, write


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in which `in_read_only` can run something."""
    yield tmp_path
    for each in [tmp_path, *tmp_path.rglob("*")]:
        if each.is_dir():
            each.chmod(0o755)


def in_read_only(folder: Path, *call: str) -> subprocess.CompletedProcess[str]:
    """A call that cannot write in a folder, which is also its home."""
    command = [sys.executable, *call]
    home = {"HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}
    environment = {**os.environ, **home, "PYTHONPATH": str(folder)}
    environment.pop("NUMBA_CACHE_DIR", None)
    if os.geteuid() == 0:
        # Modes do not bind root; a mount of its own does.
        bound = f'mount --bind "{folder}" "{folder}" && mount -o remount,ro,bind "{folder}"'
        entered = ["unshare", "-m", "sh", "-c"]
        if shutil.which("unshare") is None or subprocess.run([*entered, bound]).returncode:
            pytest.skip("root cannot be kept from writing here")
        command = [*entered, f'{bound} && exec "$@"', "sh", *command]
    else:
        for each in [folder, *folder.rglob("*")]:
            if each.is_dir():
                each.chmod(0o555)
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment, cwd=folder
    )


def test_a_loop_beside_its_source_is_loaded_by_who_cannot_write_there(folder: Path) -> None:
    write(folder, loop=LOOP)
    plain = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    subprocess.run([sys.executable, "-c", USE], check=True, cwd=folder, env=plain)

    told = in_read_only(folder, "-c", USE)

    assert told.stdout.splitlines() == ["3", "2.0", "False"], told.stderr


def test_a_loop_that_is_kept_nowhere_is_compiled_each_time(folder: Path) -> None:
    write(folder, loop=LOOP)

    for _ in range(2):
        told = in_read_only(folder, "-c", USE)

        assert told.stdout.splitlines() == ["compiling", "3", "2.0", "True"], told.stderr


def test_a_run_works_in_an_installation_that_cannot_be_written(folder: Path) -> None:
    """Takes some seconds: the package is copied, and runs as a process."""
    package = Path(ensue.__file__).parent
    shutil.copytree(package, folder / "ensue", ignore=shutil.ignore_patterns("console", "docs"))
    (folder / "rules.cor").write_text(RULES)
    lines = [event(number, "Done" if number % 2 else "Failed", number) for number in range(50)]
    (folder / "e.jsonl").write_text("\n".join(lines))

    for engine in ("step", "batch"):
        ran = in_read_only(
            folder, "-m", "ensue", "run", "rules.cor", "-e", "e.jsonl", "--engine", engine
        )

        assert ran.returncode == 0, ran.stderr
        assert "50 events read; 25 outputs" in ran.stderr
