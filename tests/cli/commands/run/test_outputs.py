"""`--out`: the old result stays until the new one is whole, whatever happens in between."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import RULES, Ensue


def events(count: int) -> str:
    lines = []
    for number in range(count):
        at = f"2024-05-06T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}Z"
        type_ = "Done" if number % 2 else "Failed"
        user = {"user": f"u{number // 2}"}
        event = {"id": str(number), "source": "s", "type": type_, "time": at, "data": user}
        lines.append(json.dumps(event))
    return "\n".join(lines)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path, Path]:
    library, given, out = tmp_path / "rules.cor", tmp_path / "e.jsonl", tmp_path / "out.jsonl"
    library.write_text(RULES)
    given.write_text(events(2_000))
    return library, given, out


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "ensue", "run", *map(str, arguments)]


@pytest.mark.parametrize("engine", ["batch", "step"])
def test_a_killed_run_leaves_the_old_result(files: tuple[Path, Path, Path], engine: str) -> None:
    """Killed at any moment, the file is the old one or the whole new one."""
    library, given, out = files
    started = time.monotonic()
    subprocess.run(command(library, "-e", given, "--engine", engine, "--out", out), check=True)
    length = time.monotonic() - started
    whole = out.read_bytes()
    draw = random.Random(4)
    for _ in range(5):
        out.write_bytes(b"old\n")
        running = subprocess.Popen(
            command(library, "-e", given, "--engine", engine, "--out", out),
            stderr=subprocess.DEVNULL,
        )
        time.sleep(draw.uniform(0.3, 1.1) * length)
        running.send_signal(signal.SIGKILL)
        running.wait()
        assert out.read_bytes() in (b"old\n", whole)


@pytest.mark.parametrize("engine", ["batch", "step"])
def test_a_run_that_fails_leaves_the_old_result(
    ensue: Ensue, files: tuple[Path, Path, Path], engine: str, tmp_path: Path
) -> None:
    library, _, out = files
    bad = tmp_path / "bad.parquet"
    bad.write_bytes(b"PAR1 this is none")
    out.write_text("old")
    answer = ensue("run", library, "-e", bad, "--engine", engine, "--out", out)
    assert answer.code == 2
    assert out.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".")] == []


def test_the_mode_of_the_old_file_and_a_link_to_it_stay(
    ensue: Ensue, files: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    library, given, out = files
    out.write_text("old")
    out.chmod(0o640)
    link = tmp_path / "link.jsonl"
    link.symlink_to(out)
    ensue("run", library, "-e", given, "--out", link)
    assert link.is_symlink()
    assert out.stat().st_mode & 0o777 == 0o640
    assert out.read_bytes().count(b"\n") == 1_000


@pytest.mark.parametrize("option", ["--out", "--dead-letter", "--late"])
def test_a_hard_link_to_the_input_is_the_input(
    ensue: Ensue, files: tuple[Path, Path, Path], tmp_path: Path, option: str
) -> None:
    library, given, _ = files
    before = given.read_bytes()
    link = tmp_path / "link.jsonl"
    os.link(given, link)
    answer = ensue("run", library, "-e", given, option, link)
    assert answer.code == 2
    assert "is also the file of `--events`: choose another file" in answer.err
    assert given.read_bytes() == before


def test_a_link_that_leads_to_itself_is_no_input(
    ensue: Ensue, files: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    library, _, out = files
    link = tmp_path / "link.jsonl"
    link.symlink_to(link)
    answer = ensue("run", library, "-e", link, "--out", out)
    assert answer.code == 2
    assert "bug in ensue" not in answer.err
    assert "link.jsonl" in answer.err


def test_a_link_that_leads_to_itself_is_replaced_by_the_result(
    ensue: Ensue, files: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    library, given, _ = files
    link = tmp_path / "link.jsonl"
    link.symlink_to(link)
    assert ensue("run", library, "-e", given, "--out", link).code == 0
    assert link.read_bytes().count(b"\n") == 1_000


@pytest.mark.parametrize("engine", ["batch", "step"])
def test_a_closed_standard_output_is_a_failure(files: tuple[Path, Path, Path], engine: str) -> None:
    library, given, _ = files
    line = " ".join(command(library, "-e", given, "--engine", engine))
    done = subprocess.run(["sh", "-c", f"{line} >&-"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "the standard output is closed" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("engine", ["batch", "step"])
def test_a_full_standard_output_is_a_failure(files: tuple[Path, Path, Path], engine: str) -> None:
    library, given, _ = files
    if not Path("/dev/full").exists():
        pytest.skip("this system has no device that is always full")
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            command(library, "-e", given, "--engine", engine),
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert "no space left on device" in done.stderr
    assert "1,000 outputs" not in done.stderr


@pytest.mark.parametrize("engine", ["batch", "step"])
def test_a_reader_that_has_seen_enough_ends_a_run_quietly(
    files: tuple[Path, Path, Path], engine: str
) -> None:
    library, given, _ = files
    given.write_text(events(20_000))
    line = " ".join(command(library, "-e", given, "--engine", engine))
    done = subprocess.run(
        ["sh", "-c", f"{line} | head -n 1"], capture_output=True, text=True, check=False
    )
    assert done.stdout.count("\n") == 1
    assert "error" not in done.stderr.lower()
    assert "Traceback" not in done.stderr


def test_a_device_is_written_as_it_is(ensue: Ensue, files: tuple[Path, Path, Path]) -> None:
    library, given, _ = files
    answer = ensue("run", library, "-e", given, "--out", "/dev/null")
    assert answer.code == 0
    assert not Path("/dev/null").is_file()


@pytest.mark.parametrize("engine", ["batch", "step"])
@pytest.mark.parametrize("ending", [".jsonl", ".parquet", ".csv", ".arrow"])
def test_a_named_pipe_whose_reader_leaves_is_a_failure(
    files: tuple[Path, Path, Path], tmp_path: Path, engine: str, ending: str
) -> None:
    library, given, _ = files
    # More than a pipe holds.
    given.write_text(events(20_000))
    pipe = tmp_path / f"pipe{ending}"
    os.mkfifo(pipe)
    running = subprocess.Popen(
        command(library, "-e", given, "--engine", engine, "--out", pipe),
        stderr=subprocess.PIPE,
        text=True,
    )
    with pipe.open("rb") as reader:
        reader.read(1)
    _, told = running.communicate(timeout=60)
    assert running.returncode == 2
    assert f"`{pipe}`: its reader has left" in told
    assert "10,000 outputs" not in told


def test_a_named_pipe_is_given_everything(files: tuple[Path, Path, Path], tmp_path: Path) -> None:
    library, given, _ = files
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    running = subprocess.Popen(command(library, "-e", given, "--out", pipe))
    read = pipe.read_bytes()
    assert running.wait(60) == 0
    assert read.count(b"\n") == 1_000


def test_a_standard_output_that_is_named_may_be_left_early(files: tuple[Path, Path, Path]) -> None:
    library, given, _ = files
    line = " ".join(command(library, "-e", given, "--out", "/dev/stdout"))
    done = subprocess.run(
        ["sh", "-c", f"{line} | head -n 1"], capture_output=True, text=True, check=False
    )
    assert done.stdout.count("\n") == 1
    assert "its reader" not in done.stderr


@pytest.mark.parametrize("ending", [".jsonl", ".parquet", ".csv", ".arrow"])
def test_a_file_that_may_grow_no_further_leaves_the_old_result(
    files: tuple[Path, Path, Path], tmp_path: Path, ending: str
) -> None:
    library, given, _ = files
    out = tmp_path / f"out{ending}"
    out.write_text("old")
    line = " ".join(command(library, "-e", given, "--out", out))
    done = subprocess.run(
        ["sh", "-c", f"ulimit -f 8; {line}"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "file too large" in done.stderr
    assert out.read_text() == "old"
    assert not list(tmp_path.glob(".out*"))


@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted in kilobytes on Linux only")
def test_a_small_file_that_unpacks_to_much_is_read_in_bounded_memory(
    files: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    """One text stands in a third of a million rows, and in the file once."""
    library, _, out = files
    rows, packed = 300_000, tmp_path / "packed.parquet"
    text = pa.chunked_array([pa.repeat(pa.scalar("x" * 4_000), rows // 3)] * 3)
    table = pa.table(
        {
            "type": pa.repeat(pa.scalar("Failed"), rows),
            "time": pa.array(range(rows), pa.timestamp("us", "UTC")),
            "user": pa.repeat(pa.scalar("ann"), rows),
            "note": text,
        }
    )
    pq.write_table(table, packed, compression="zstd", row_group_size=rows)
    unpacked = table.nbytes
    del table, text
    assert packed.stat().st_size < 4_000_000
    # Asked by a small process, for a process counts what the one that started it held.
    asking = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True);"
        " print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    run = command(library, "-e", packed, "--engine", "batch", "--out", out)
    done = subprocess.run(
        [sys.executable, "-c", asking, *run], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) * 1024 < unpacked * 0.6


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_outputs_go_to_a_url(
    ensue: Ensue, files: tuple[Path, Path, Path], tmp_path: Path, ending: str
) -> None:
    fsspec = pytest.importorskip("fsspec", reason="the `remote` extra is not installed")
    library, given, _ = files
    here = tmp_path / f"here.{ending}"
    ensue("run", library, "-e", given, "--out", here)

    answer = ensue("run", library, "-e", given, "--out", f"memory://found/there.{ending}")

    assert answer.err.endswith(f"outputs in `memory://found/there.{ending}`\n")
    with fsspec.open(f"memory://found/there.{ending}") as there:
        assert there.read() == here.read_bytes()


def test_a_url_that_cannot_be_written_is_told(ensue: Ensue, files: tuple[Path, Path, Path]) -> None:
    pytest.importorskip("fsspec", reason="the `remote` extra is not installed")
    library, given, _ = files

    answer = ensue("run", library, "-e", given, "--out", "nothing://found.jsonl")
    followed = ensue("run", library, "-e", given, "--follow", "--out", "memory://found.jsonl")

    assert answer.code == followed.code == 2
    assert "`nothing://found.jsonl` cannot be opened: protocol not known: nothing" in answer.err
    assert "nothing can be appended" in followed.err
