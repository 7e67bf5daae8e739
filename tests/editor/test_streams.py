"""Messages of an editor that announce more than can be meant."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("pygls")


@pytest.mark.parametrize("length", ["99999999999", "9" * 40, "9" * 5_000])
def test_a_message_of_a_huge_length_ends_the_server_with_a_sentence(length: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ensue", "lsp"],
        input=f"Content-Length: {length}\r\n\r\n{{}}".encode(),
        capture_output=True,
        timeout=60,
        check=False,
    )
    told = done.stderr.decode()
    assert "Traceback" not in told
    if len(length) < 4_000:
        assert done.returncode == 2
        assert "at most 67,108,864 are read" in told
