"""Secrets by reference: what they stand for, and what is said of one that cannot be had."""

from __future__ import annotations

from pathlib import Path

import pytest

from ensue.configuration.secrets import replaced


def test_references_are_replaced_where_they_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENSUE_TEST_SECRET", "one")
    (tmp_path / "two").write_text(" two\n")
    problems: list[str] = []
    text = f"a ${{env:ENSUE_TEST_SECRET}} b ${{file:{tmp_path}/two}} ${{other:x}}"
    assert replaced(text, problems.append) == "a one b two ${other:x}"
    assert not problems


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        ("${env:ENSUE_NOT_SET_HERE}", "the environment has no variable `ENSUE_NOT_SET_HERE`"),
        ("${env:}", "the environment has no variable ``"),
        ("${env:\0}", "the environment has no variable"),
        ("${file:/no/such/file}", "cannot be read: no such file or directory"),
        ("${file:}", "cannot be read: is a directory"),
        ("${file:a\0b}", "cannot be read: embedded null byte"),
        ("${file:/dev/zero}", "has more than 64 KiB, and holds no secret"),
        ("${file:~no-such-user-here/x}", "cannot be read"),
    ],
)
def test_a_secret_that_cannot_be_had_is_told_and_is_empty(reference: str, told: str) -> None:
    problems: list[str] = []
    assert replaced(f"<{reference}>", problems.append) == "<>"
    assert len(problems) == 1
    assert told in problems[0]


def test_a_file_that_is_no_text_holds_no_secret(tmp_path: Path) -> None:
    (tmp_path / "s").write_bytes(b"\xff\xfe")
    problems: list[str] = []
    replaced(f"${{file:{tmp_path}/s}}", problems.append)
    assert problems == [f"the file `{tmp_path}/s` cannot be read: it is no text"]
