"""A long hunt for seeds under which linked channels lose, double or forget an event.

    python -m tests.channel.simulation.campaign --seconds 600 --start 0 [--only liars]

Runs one seed after the other and names those that fail; a seed that has failed fails again. The
exit code is 1 if there was a failure.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
import traceback

from tests.channel.simulation.liars import simulate_liars
from tests.channel.simulation.world import simulate

SIMULATIONS = {"world": simulate, "liars": simulate_liars}


def main() -> int:
    options = argparse.ArgumentParser(description="hunt for faults of linked channels")
    options.add_argument("--seconds", type=float, default=60.0, help="how long to go on")
    options.add_argument("--start", type=int, default=0, help="the first seed")
    options.add_argument("--failures", type=int, default=3, help="stop after so many failures")
    options.add_argument("--only", choices=sorted(SIMULATIONS), help="one simulation only")
    given = options.parse_args()
    # Consumers fail on purpose, and every failure is logged.
    logging.disable(logging.CRITICAL)
    chosen = [given.only] if given.only else list(SIMULATIONS)
    end, seed, failures, runs = time.monotonic() + given.seconds, given.start, 0, 0
    while time.monotonic() < end and failures < given.failures:
        for name in chosen:
            runs += 1
            try:
                SIMULATIONS[name](seed)
            except Exception:
                failures += 1
                print(f"{name} fails with the seed {seed}:", flush=True)
                traceback.print_exc(file=sys.stdout)
        seed += 1
    print(f"seeds {given.start} to {seed - 1}: {runs} runs, {failures} failures", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
