"""The way into the `ensue` command, also as `python -m ensue`.

It stands before everything that takes time to load, so that a user who stops the command at once,
or has closed one of its streams, gets an answer and no traceback.
"""

from __future__ import annotations

import gc
import os
import sys


def main() -> None:
    """Run the command line. Ends the process."""
    _open_closed_streams()
    # Nothing here does linear algebra, whose threads would spin for a moment in each process.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Nothing that is loaded is garbage; the collector has its turn when a command begins.
    gc.disable()
    try:
        from ensue.cli import main as run_command
        from ensue.cli.start import process

        process.begin()
        try:
            run_command()
        except SystemExit as end:
            process.leave(end)
    except KeyboardInterrupt:
        # What a shell shows for a program that was stopped by Ctrl-C.
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(0)


def _open_closed_streams() -> None:
    """A stream that the caller has closed is None in Python: let it lead nowhere instead."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115


if __name__ == "__main__":
    main()
