"""`ensue fmt`: files laid out in place, or only looked at."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Ensue

UNTIDY = "eventtype  A{};  // one\n"
TIDY = "eventtype A {};  // one\n"


@pytest.fixture
def untidy(tmp_path: Path) -> Path:
    path = tmp_path / "rules.cor"
    path.write_text(UNTIDY)
    return path


def test_a_file_is_laid_out_in_place(ensue: Ensue, untidy: Path) -> None:
    answer = ensue("fmt", untidy)

    assert (answer.code, answer.out) == (0, "")
    assert untidy.read_text() == TIDY
    assert ensue("fmt", untidy).err == "0 files changed\n"


def test_check_changes_nothing_and_names_the_file(ensue: Ensue, untidy: Path) -> None:
    answer = ensue("fmt", "--check", untidy)

    assert answer.code == 1
    assert answer.out == f"{untidy} would change\n"
    assert untidy.read_text() == UNTIDY


def test_the_standard_input_is_laid_out_on_the_standard_output(ensue: Ensue) -> None:
    assert ensue("fmt", "-", stdin=UNTIDY).out == TIDY


def test_a_file_that_is_no_text_is_refused_and_left_alone(ensue: Ensue, tmp_path: Path) -> None:
    path = tmp_path / "rules.cor"
    path.write_bytes(b"\xff\xfe")
    answer = ensue("fmt", path)

    assert answer.code == 2
    assert "the file is not UTF-8" in answer.err
    assert path.read_bytes() == b"\xff\xfe"


def test_a_file_that_is_not_there_is_refused(ensue: Ensue, tmp_path: Path) -> None:
    assert ensue("fmt", tmp_path / "none.cor").code == 2


def test_a_library_stays_whole_when_the_disk_is_full(untidy: Path) -> None:
    """Laid out it needs more room than a process may take here."""
    before = "eventtype  A{};  // one\n" * 100
    untidy.write_text(before)
    done = subprocess.run(
        ["sh", "-c", f"ulimit -f 1; {sys.executable} -m ensue fmt {untidy}"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 2
    assert "file too large" in done.stderr
    assert untidy.read_text() == before
    assert [each.name for each in untidy.parent.iterdir()] == [untidy.name]


@pytest.mark.parametrize("path", ["/dev/zero", "-"])
def test_a_file_without_end_is_refused(path: str) -> None:
    with Path("/dev/zero").open("rb") as endless:
        done = subprocess.run(
            [sys.executable, "-m", "ensue", "fmt", path],
            stdin=endless,
            capture_output=True,
            text=True,
            check=False,
        )

    assert done.returncode == 2
    assert "has more than 4,096 KiB" in done.stderr
