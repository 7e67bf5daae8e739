"""A dispatcher played by brute force: one thread, turns that are not interrupted, real phases.

It shares nothing with the analyses: in come the declarations and the priorities, out go the longest
response times that were seen. Consumers follow the paper's rule for rates event by event: of any
type, at each event; of all, when the slowest has come.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import Any

MILLISECOND = 1_000


def random_tables(seed: int, with_consumers: bool) -> dict[str, Any]:
    """A few suppliers, and perhaps consumers of what they and each other supply."""
    draw = Random(seed)
    operations: list[dict[str, Any]] = []
    for number in range(draw.randint(1, 4)):
        period = draw.choice([4, 5, 6, 8, 10, 12, 15, 20])
        operations.append(_operation(draw, f"s{number}", f"T{number}", period=f"{period} ms"))
    types = [each["supplies"][0] for each in operations]
    for number in range(draw.randint(1, 3) if with_consumers else 0):
        taken = draw.sample(types, min(len(types), draw.randint(1, 2)))
        consumes = {draw.choice(["all", "any"]): taken}
        operations.append(_operation(draw, f"c{number}", f"U{number}", consumes=consumes))
        types.append(f"U{number}")
    strategy = draw.choice(["rate-monotonic", "maximum-urgency"])
    return {"schedule": {"strategy": strategy}, "operation": operations}


def _operation(draw: Random, name: str, type_: str, **more: Any) -> dict[str, Any]:
    made = {"name": name, "worst": f"{draw.randint(1, 3)} ms", "supplies": [type_], **more}
    if draw.random() < 0.4:
        made["deadline"] = f"{draw.randint(2, 20)} ms"
    if draw.random() < 0.2:
        made["critical"] = True
    return made


def milliseconds(text: str) -> int:
    return int(text.removesuffix(" ms")) * MILLISECOND


class Dispatching:
    """One thread that dispatches the operations of some tables by given priorities."""

    def __init__(
        self, tables: Mapping[str, Any], priorities: Mapping[str, tuple[int, int]]
    ) -> None:
        self._operations = {each["name"]: each for each in tables["operation"]}
        self._priorities = priorities
        self.longest: Counter[str] = Counter()
        self._slowest = {
            name: _slowest(self._operations, each)
            for name, each in self._operations.items()
            if "all" in each.get("consumes", {})
        }

    def play(self, phases: Mapping[str, int], until: int) -> None:
        """Release every supplier from its phase on; note the response times of all operations."""
        releases = [
            (at, name)
            for name, phase in phases.items()
            for at in range(phase, until, milliseconds(self._operations[name]["period"]))
        ]
        releases.sort()
        ready: list[tuple[int, int, int, str, int]] = []
        now = came = at = 0
        while at < len(releases) or ready:
            if not ready:
                now = max(now, releases[at][0])
            while at < len(releases) and releases[at][0] <= now:
                came += 1
                heapq.heappush(ready, self._entry(releases[at][1], came, releases[at][0]))
                at += 1
            *_, name, released = heapq.heappop(ready)
            now += milliseconds(self._operations[name]["worst"])
            self.longest[name] = max(self.longest[name], now - released)
            while at < len(releases) and releases[at][0] <= now:
                came += 1
                heapq.heappush(ready, self._entry(releases[at][1], came, releases[at][0]))
                at += 1
            for consumer in self._woken_by(name):
                came += 1
                heapq.heappush(ready, self._entry(consumer, came, released))

    def _entry(self, name: str, came: int, released: int) -> tuple[int, int, int, str, int]:
        priority, sub_priority = self._priorities[name]
        return -priority, -sub_priority, came, name, released

    def _woken_by(self, name: str) -> list[str]:
        supplied = set(self._operations[name]["supplies"])
        woken = []
        for consumer, each in self._operations.items():
            consumes = each.get("consumes", {})
            taken = [self._slowest[consumer]] if "all" in consumes else consumes.get("any", [])
            woken += [consumer for type_ in taken if type_ in supplied]
        return woken


def _slowest(operations: Mapping[str, Any], consumer: Mapping[str, Any]) -> str:
    """The type of a consumer of all that comes least often; of equals the last."""
    chosen: str = min(
        reversed(consumer["consumes"]["all"]), key=lambda type_: rate(operations, type_)
    )
    return chosen


def rate(operations: Mapping[str, Any], type_: str) -> float:
    """How often a type comes in a millisecond."""
    return sum(
        _rate_of(operations, each) for each in operations.values() if type_ in each["supplies"]
    )


def _rate_of(operations: Mapping[str, Any], operation: Mapping[str, Any]) -> float:
    if "period" in operation:
        return MILLISECOND / milliseconds(operation["period"])
    consumes = operation["consumes"]
    if "all" in consumes:
        return min(rate(operations, type_) for type_ in consumes["all"])
    return sum(rate(operations, type_) for type_ in consumes["any"])


def telling_phases(suppliers: list[str], draw: Random, count: int) -> list[dict[str, int]]:
    """All together; each just before the others; and some at random."""
    phases = [dict.fromkeys(suppliers, 0)]
    phases += [{each: int(each != first) for each in suppliers} for first in suppliers]
    for _ in range(count):
        step = draw.choice([1, MILLISECOND])
        phases.append({each: draw.randrange(20_000 // step) * step for each in suppliers})
    return phases
