"""How loops are compiled, where that depends on the place they run in."""

from __future__ import annotations

import subprocess
import sys

NOWHERE = """
from numba.core import caching

def nowhere(*arguments):
    raise RuntimeError("cannot cache function: no locator available")

caching.FunctionCache.__init__ = nowhere
from ensue.engine.core.jit import compiled

@compiled
def doubled(number):
    return 2 * number

print(doubled(21))
"""


def test_loops_run_where_nothing_can_be_kept_on_disk() -> None:
    done = subprocess.run(
        [sys.executable, "-c", NOWHERE], capture_output=True, text=True, check=False
    )

    assert (done.stdout, done.stderr) == ("42\n", "")
