"""Two reports of `ensue bench`, figure by figure: what got better, what got worse beyond noise.

    python benchmarks/compare.py OLD.json NEW.json

A ratio above 1 is better, whichever way the figure counts. A figure is a regression if it is worse
by more than its noise (the spreads of both reports together, and at least a tenth), both as it
stands and when the speed of the machine, by the yardstick in the reports, is taken out. Exit codes:
0 no regression, 1 regressions, 2 reports that cannot be compared.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LEAST_NOISE = 0.1
TIMED = ("events/s", "s", "ms", "µs", "µs/event")
"""Units that depend on how fast the machine was; ratios and bytes do not."""
LEAST = 1e-9
"""What stands for a figure of nothing at all, of which no ratio could be taken."""
STEEPER = 0.15
"""By how much a slope may grow before it is a finding."""


class UnusableError(Exception):
    """A file that is no report, or two that are not about the same thing."""


@dataclass(frozen=True)
class Change:
    """`ratio` is above 1 if the new figure is better; `noise` is a part of it."""

    name: str
    old: str
    new: str
    ratio: float
    noise: float
    verdict: str


def read_report(path: Path) -> dict[str, Any]:
    try:
        report = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UnusableError(f"`{path}` cannot be read as a report: {error}") from None
    if not isinstance(report, dict) or report.get("format") != "ensue-bench":
        raise UnusableError(f"`{path}` is no report of `ensue bench`")
    return report


def compare(old: dict[str, Any], new: dict[str, Any]) -> list[Change]:
    """The figures and curves that both reports have, in the order of the new one."""
    for member in ("subject", "version", "quick"):
        if old[member] != new[member]:
            raise UnusableError(
                f"the reports differ in `{member}`: {old[member]} and {new[member]}"
            )
    speed = slowdown(old, new)
    known = {each["name"]: each for each in old["figures"]}
    changes = [
        change_of(known[each["name"]], each, speed)
        for each in new["figures"]
        if each["name"] in known
    ]
    curves = {(each["plot"], each["name"]): each for each in old["curves"]}
    for each in new["curves"]:
        before = curves.get((each["plot"], each["name"]))
        if before is not None:
            changes += changes_of_curve(before, each, speed)
    return changes


def slowdown(old: dict[str, Any], new: dict[str, Any]) -> float:
    """How many times longer the yardstick took in the new report."""
    first, second = (float(each["environment"]["yardstick_seconds"]) for each in (old, new))
    return second / first


def change_of(old: dict[str, Any], new: dict[str, Any], speed: float) -> Change:
    ratio = max(new["median"], LEAST) / max(old["median"], LEAST)
    if new["better"] == "lower":
        ratio = 1 / ratio
    noise = max(LEAST_NOISE, old["spread"] + new["spread"])
    scaled = ratio * speed if new["unit"] in TIMED else ratio
    verdict = judged(ratio, scaled, noise)
    unit = new["unit"]
    shown = [f"{each['median']:,.4g} {unit}" for each in (old, new)]
    return Change(new["name"], shown[0], shown[1], ratio, noise, verdict)


def judged(ratio: float, scaled: float, noise: float) -> str:
    if max(ratio, scaled) < 1 / (1 + noise):
        return "WORSE"
    return "better" if min(ratio, scaled) > 1 + noise else ""


def changes_of_curve(old: dict[str, Any], new: dict[str, Any], speed: float) -> list[Change]:
    """The cost at the largest size that both have, and the slope."""
    name = f"{new['plot']}, {new['name']}"
    points = {each["size"]: each for each in old["points"]}
    shared = [each for each in new["points"] if each["size"] in points]
    found = []
    if shared:
        last = {**shared[-1], "name": f"{name} at {shared[-1]['size']:,.0f}"}
        kind = {"unit": new["unit"], "better": "lower"}
        found.append(change_of(points[last["size"]] | kind, last | kind, speed))
    steeper = new["slope"] - old["slope"]
    verdict = "WORSE" if steeper > STEEPER else "better" if steeper < -STEEPER else ""
    slopes = f"slope {old['slope']:.2f}", f"slope {new['slope']:.2f}"
    found.append(Change(name, *slopes, 1 - steeper, STEEPER, verdict))
    return found


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("old", type=Path, metavar="OLD")
    options.add_argument("new", type=Path, metavar="NEW")
    given = options.parse_args()
    try:
        old, new = read_report(given.old), read_report(given.new)
        changes = compare(old, new)
    except UnusableError as error:
        print(f"compare: {error}", file=sys.stderr)
        return 2
    rows = [("figure", "old", "new", "ratio", "noise", "")]
    rows += [
        (each.name, each.old, each.new, f"{each.ratio:.2f}", f"±{each.noise:.0%}", each.verdict)
        for each in changes
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(6)]
    for row in rows:
        cells = (
            cell.ljust(width) if column in (0, 5) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        print("  ".join(cells).rstrip())
    worse = sum(each.verdict == "WORSE" for each in changes)
    speed = slowdown(old, new)
    print(f"\nthe yardstick took {speed:.2f} times as long; {worse} of {len(changes)} are worse")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
