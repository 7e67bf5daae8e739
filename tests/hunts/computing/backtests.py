"""Filters match in a backtest over a history what they matched live, in every store of files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from ensue.history import History
from tests.history.test_replaying import compare_backtests

SHORT = (3,)


def hunt(seed: int) -> Mapping[str, int]:
    matched = 0
    with TemporaryDirectory() as folder:
        path = Path(folder)
        for url in ("memory:", f"sqlite:{path / 'h.db'}", f"parquet:{path / 'h'}"):
            with History.open(url) as history:
                matched += compare_backtests(seed, history)
    return {"matches": matched}
