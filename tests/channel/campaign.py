"""A long hunt for seeds under which a channel loses, doubles or disorders something.

    python -m tests.channel.campaign --seconds 600 --start 0 [--only ordering]

Runs one seed after the other through every scenario, checks that the counts of all channels add up,
and names the seeds that fail. A seed fixes what is done but not how threads take turns: one that
has failed may have to be run several times (`--times`). The exit code is 1 if there was a failure.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import time
import traceback
from collections.abc import Callable, Mapping

from tests.channel.accounting import balanced
from tests.channel.linked_scenarios import LINKED_SCENARIOS
from tests.channel.scenarios import SCENARIOS
from tests.channel.storms import storm

Trial = Callable[[int], object]
"""Runs a seed; raises an exception where it fails."""


def balanced_trial(scenario: Callable[[random.Random], object]) -> Trial:
    """A scenario after which the counts of all channels have to add up."""

    def run(seed: int) -> None:
        with balanced():
            scenario(random.Random(seed))

    return run


def hunt(what: str, trials: Mapping[str, Trial]) -> int:
    """Run one seed after the other through the trials, as the command line says."""
    options = argparse.ArgumentParser(description=f"hunt for faults of {what}")
    options.add_argument("--seconds", type=float, default=60.0, help="how long to go on")
    options.add_argument("--start", type=int, default=0, help="the first seed")
    options.add_argument("--times", type=int, default=1, help="how often to run each seed")
    options.add_argument("--failures", type=int, default=3, help="stop after so many failures")
    options.add_argument("--only", choices=sorted(trials), help="one trial only")
    given = options.parse_args()
    # Consumers fail on purpose, and every failure is logged.
    logging.disable(logging.CRITICAL)
    chosen = [given.only] if given.only else list(trials)
    end, seed, failures, runs = time.monotonic() + given.seconds, given.start, 0, 0
    while time.monotonic() < end and failures < given.failures:
        for name in chosen * given.times:
            runs += 1
            try:
                trials[name](seed)
            except Exception:
                failures += 1
                print(f"{name} fails with the seed {seed}:", flush=True)
                traceback.print_exc(file=sys.stdout)
        seed += 1
    print(f"seeds {given.start} to {seed - 1}: {runs} runs, {failures} failures", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    scenarios = (*SCENARIOS, storm, *LINKED_SCENARIOS)
    trials = {each.__name__: balanced_trial(each) for each in scenarios}
    sys.exit(hunt("a channel under load", trials))
