"""The files of rules, looked at while a stream runs: only what stands still is taken up."""

from __future__ import annotations

from pathlib import Path

import pytest

from ensue.cli.commands.stream import WatchedRules
from ensue.errors import UsageError

TYPES = "eventtype A { };\neventtype B { };\n"
RULE = "B correlation First (A a) a { case true: push new B { }; }\n"


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    (tmp_path / "types.cor").write_text(TYPES)
    (tmp_path / "first.cor").write_text(RULE)
    return tmp_path


def test_a_file_is_taken_up_when_it_was_the_same_twice(rules: Path) -> None:
    watched = WatchedRules([rules])
    (rules / "second.cor").write_text(RULE.replace("First", "Second"))

    assert [watched.have_changed() for _ in range(3)] == [False, True, False]
    assert watched.load().correlations.names == ("First", "Second")


def test_a_file_that_is_empty_for_a_moment_drops_no_rule(rules: Path) -> None:
    watched = WatchedRules([rules])
    (rules / "first.cor").write_text("")
    assert not watched.have_changed()
    (rules / "first.cor").write_text(RULE)

    assert [watched.have_changed() for _ in range(3)] == [False, False, False]


def test_a_file_that_cannot_be_read_is_told_once(rules: Path) -> None:
    watched = WatchedRules([rules])
    (rules / "folder.cor").mkdir()

    with pytest.raises(UsageError, match=r"folder\.cor`: is a directory"):
        watched.have_changed()
    assert not watched.have_changed()
    (rules / "folder.cor").rmdir()
    assert not watched.have_changed()


def test_a_file_that_is_named_and_has_gone_is_missed_when_it_is_loaded(rules: Path) -> None:
    watched = WatchedRules([rules / "types.cor", rules / "first.cor"])
    (rules / "first.cor").unlink()

    assert [watched.have_changed() for _ in range(2)] == [False, True]
    with pytest.raises(UsageError, match=r"first\.cor` cannot be read: no such file"):
        watched.load()
