"""The command line of the hunts: `python -m tests.hunts --help`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from random import SystemRandom

from .runner.registry import FOLDERS, Hunt, hunts
from .runner.rounds import Order
from .runner.side_by_side import run

MINUTES = 10.0


def main(arguments: Sequence[str] | None = None, folders: Sequence[str] = FOLDERS) -> int:
    """The exit code: 0 if nothing was found, 1 if something was, 2 for a wrong call."""
    parser = _parser()
    given = parser.parse_args(arguments)
    known = hunts(folders)
    if given.list:
        width = max(len(each.name) for each in known)
        for each in known:
            print(f"{each.name:{width}}  {each.aim}")
        return 0
    faults = [each for part in given.faults for each in part.split(",") if each]
    chosen = _chosen(parser, known, given.names, faults)
    seed = SystemRandom().randrange(10**9) if given.seed is None else given.seed
    at_once = min(given.jobs, len(chosen))
    seconds = given.minutes * 60 * at_once / len(chosen)
    orders = [
        Order(hunt, seed, seconds, given.rounds, [each for each in faults if each in hunt.faults])
        for hunt in chosen
    ]
    try:
        return 1 if run(orders, at_once, lambda line: print(line, flush=True)) else 0
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.hunts",
        description="Look for unknown faults. All hunts share the time and the processors; what is"
        " found is printed with the command that shows it again, and the exit code is then 1.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="hunts to run; all without any")
    parser.add_argument("--list", action="store_true", help="the hunts and their aims")
    parser.add_argument(
        "--minutes", type=float, default=MINUTES, help=f"for all of them together ({MINUTES:g})"
    )
    parser.add_argument("--seed", type=int, help="the first seed; one at random without it")
    parser.add_argument("--rounds", type=int, help="rounds of each hunt, instead of a time")
    parser.add_argument(
        "--faults", action="append", default=[], help="only these faults, separated by commas"
    )
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="how many hunts run at once"
    )
    return parser


def _chosen(
    parser: argparse.ArgumentParser, known: Sequence[Hunt], names: Sequence[str], faults: list[str]
) -> list[Hunt]:
    """The hunts that are named, or all; of these, with faults, those that know one of them."""
    by_name = {each.name: each for each in known}
    for name in names:
        if name not in by_name:
            close = get_close_matches(name, by_name, 1)
            parser.error(f"there is no hunt `{name}`{_meant(close, by_name)}")
    chosen = [by_name[name] for name in dict.fromkeys(names)] or list(known)
    if not faults:
        return chosen
    can = {fault for each in chosen for fault in each.faults}
    for fault in faults:
        if fault not in can:
            close = get_close_matches(fault, can, 1)
            parser.error(f"no chosen hunt knows the fault `{fault}`{_meant(close, can)}")
    return [each for each in chosen if set(faults) & set(each.faults)]


def _meant(close: Sequence[str], allowed: object) -> str:
    if close:
        return f"; did you mean `{close[0]}`?"
    assert isinstance(allowed, dict | set)
    return f"; there are {', '.join(sorted(allowed)) or 'none'}"


if __name__ == "__main__":
    sys.exit(main())
