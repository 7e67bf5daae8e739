"""A long hunt for seeds under which linked channels lose, double or forget an event.

    python -m tests.channel.simulation.campaign --seconds 600 --start 0 [--only liars]

Runs one seed after the other and names those that fail; a seed that has failed fails again. The
exit code is 1 if there was a failure.
"""

from __future__ import annotations

import sys

from tests.channel.campaign import hunt
from tests.channel.simulation.liars import simulate_liars
from tests.channel.simulation.world import simulate

if __name__ == "__main__":
    sys.exit(hunt("linked channels", {"world": simulate, "liars": simulate_liars}))
