"""The traffic-monitoring case, whole: `make demo-traffic` over real brokers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.servers.programs import MissingServerError, program, skip_as_missing

DEMO = Path(__file__).parents[2] / "examples" / "traffic" / "demo.py"


def test_the_office_learns_of_cars_above_the_limit_where_they_are() -> None:
    try:
        for name in ("mosquitto", "nats-server", "redis-server"):
            program(name)
    except MissingServerError as error:
        skip_as_missing(str(error))
    done = subprocess.run(
        [sys.executable, str(DEMO)], capture_output=True, text=True, timeout=200, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "in the north, limit 50: the office learns of 8 (north)" in done.stdout
    assert "between the monitors: the office learns of 0" in done.stdout
    assert "in the south, limit 80: the office learns of 3 (south)" in done.stdout
    assert "in the south, limit 60: the office learns of 6 (south)" in done.stdout
