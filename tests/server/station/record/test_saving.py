"""States that cannot be saved: told when it begins and ends, tried again; nothing else fails."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

import pytest

from ensue.errors import SnapshotError
from tests.server.live import RULES, Live, reading, serving, settings


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    found = [each for each in caplog.records if "saving the state" in each.getMessage()]
    return [(each.levelno, each.getMessage()) for each in found]


def awaited(condition: Any) -> None:
    limit = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.02)


def unsaved(live: Live, name: str) -> int:
    saved: int = live.station.hosted[name].saved_seq
    return int(live.station.seq) - saved


def test_a_refused_snapshot_is_told_and_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Costs the five seconds after which a refused state is tried again."""

    def refused() -> Any:
        raise SnapshotError("the state is too large")

    caplog.set_level(logging.INFO, "ensue.server")
    with serving(settings(tmp_path / "data", save_seconds=0.2)) as live:
        live.put(RULES, "heat")
        live.put(RULES, "other")
        heat = live.station.hosted["heat"]
        working, heat.state = heat.state, refused
        live.publish([reading(1, "a", 20)])
        awaited(lambda: unsaved(live, "other") == 0)
        awaited(lambda: told(caplog))
        live.publish([reading(2, "a", 70)])
        time.sleep(0.5)
        troubles = dict(live.station.troubles)
        assert unsaved(live, "heat") > 0
        heat.state = working
        awaited(lambda: unsaved(live, "heat") == 0)
        # Rules and their outputs were never concerned.
        assert len(live.outputs()) == 2

    (begun, ended) = told(caplog)
    assert begun == (
        logging.ERROR,
        "saving the state of library `heat` has failed: the state is too large",
    )
    assert ended[0] == logging.WARNING
    assert "works again after" in ended[1]
    assert troubles == {"saving the state of library `heat`": "the state is too large"}
