"""Damaged and hostile files of settings: every reader refuses in its own words, or reads."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ensue.errors import EnsueError

from .hostile import READERS, Reader, attack

SEEDS = 20


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which the files are to which the right settings refer."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "events.jsonl").write_text("")
    (tmp_path / "rules.cor").write_text("eventtype A {};")
    return tmp_path


@pytest.mark.parametrize("reader", READERS, ids=lambda each: each.name)
def test_a_right_file_is_read(reader: Reader, folder: Path) -> None:
    (folder / "right.toml").write_text(reader.right)
    assert reader.read(folder / "right.toml") is not None


@pytest.mark.parametrize("reader", READERS, ids=lambda each: each.name)
def test_nothing_but_our_refusals_comes_out_of_a_damaged_file(reader: Reader, folder: Path) -> None:
    for seed in range(SEEDS):
        attack(reader, seed, folder)


@pytest.mark.parametrize("reader", READERS, ids=lambda each: each.name)
@pytest.mark.parametrize(
    "text",
    [
        "".join(f"[[a{n}]]\n" for n in range(25_000)),
        "".join(f"a{n} = 1\n" for n in range(25_000)),
        "[[site]]\nx = 1\n" * 15_000,
        "[[token]]\nname = 'a'\n" * 10_000,
        "[[case]]\nname = 'a'\n" * 10_000,
        "[gateway]\nname = 'g'\n" + "[[service]]\nname = 's'\nkind = 'x'\n" * 6_000,
        "a = 1\n" * 40_000,
        "#" * 11_000_000,
    ],
    ids=["tables", "keys", "sites", "tokens", "cases", "services", "doubles", "11 MB"],
)
def test_a_file_of_very_many_mistakes_is_refused_in_bounded_time(
    reader: Reader, text: str, folder: Path
) -> None:
    (folder / "big.toml").write_text(text)
    begin = time.process_time()
    told = ""
    try:
        # A server hands the tables of a gateway on as they are.
        assert not reader.read(folder / "big.toml").hosts_api
    except EnsueError as error:
        told = str(error)
    assert len(told) < 200_000
    assert time.process_time() - begin < 20
