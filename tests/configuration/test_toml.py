"""TOML with bounds: whatever the file, tables or one located refusal, in linear time."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ensue.configuration.toml import parse_toml, read_settings_file, read_toml
from ensue.errors import UsageError


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = 1\n[a", "f.toml:2:3: no TOML: expected ']'"),
        ('x = "abc', "f.toml:1:9: no TOML: unterminated string"),
        ("x = " + "[" * 500, "f.toml:1:105: more than 100 brackets are open"),
        ("x = 1\ny = " + "{a=" * 500, "f.toml:2:305: more than 100 brackets are open"),
        ("a." * 200 + "a = 1", "f.toml:1:1: a key of 201 parts; at most 100 are read"),
        ("[" + "a." * 200 + "a]", "f.toml:1:2: a key of 201 parts"),
        ("x = " + "1" * 5_000, "f.toml:1:5: a number of 5,000 characters"),
        ("x = 2024-99-99", "f.toml:1:"),
        (
            "[" + ".".join("a" * 90) + "]\n" + ".".join("b" * 90) + " = 1",
            "f.toml: `a` has tables or lists in more than 100 others",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=r".*") as refused:
        parse_toml(text, "f.toml")
    assert str(refused.value).startswith(told)


def test_brackets_in_texts_and_comments_do_not_count() -> None:
    text = "".join(f'x{n} = [\'[[{{\', "[[{{\\""] # [[{{\n' for n in range(200))
    text += "".join(f'y{n} = [""" [ "x"" """"]\n' for n in range(200))
    text += "".join(f"z{n} = [''' [ '' ''''']\n" for n in range(200))
    assert len(parse_toml(text)) == 600


@pytest.mark.parametrize(
    "text",
    [
        '"\\' * 300_000,
        'x = "' + '\\"' * 300_000,
        '"' * 600_000,
        "'" * 600_000,
        "a." * 400_000,
        '"a".' * 200_000,
        "x = '''" + "''a" * 300_000,
        'x = """' + "\\" * 500_001,
        "[" * 900_000,
        "x = [" + "1," * 400_000,
    ],
    ids=range(10),
)
def test_a_damaged_file_of_a_megabyte_is_refused_at_once(text: str) -> None:
    begin = time.process_time()
    with pytest.raises(UsageError):
        parse_toml(text)
    assert time.process_time() - begin < 5


def test_a_file_that_has_no_end_is_read_up_to_its_bound() -> None:
    with pytest.raises(UsageError, match=r"has more than 1,024 KiB, which is the most"):
        read_toml("/dev/zero")


def test_a_file_that_is_no_text_or_not_there_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "a.toml"
    place.write_bytes(b"a = 1\nb = '\xff'")
    with pytest.raises(UsageError, match=r"a\.toml:2: the file is not UTF-8"):
        read_toml(place)
    with pytest.raises(UsageError, match="no such file or directory: give a TOML file"):
        read_toml(tmp_path / "none")
    with pytest.raises(UsageError, match="is a directory"):
        read_toml(tmp_path)
    with pytest.raises(UsageError, match="embedded null byte"):
        read_toml("a\0b")


def test_settings_have_no_nul_in_their_texts(tmp_path: Path) -> None:
    place = tmp_path / "a.toml"
    place.write_text('[[a]]\nb = ["x", { c = "\\u0000" }]')
    with pytest.raises(UsageError, match=r"`a\.1\.b\.2\.c` has a NUL character"):
        read_settings_file(place)
    assert read_toml(place).tables["a"][0]["b"][1]["c"] == "\0"


def test_lines_may_end_as_on_other_systems(tmp_path: Path) -> None:
    place = tmp_path / "a.toml"
    place.write_bytes(b"a = 1\r\nb = 2\r\n")
    assert read_toml(place).tables == {"a": 1, "b": 2}
