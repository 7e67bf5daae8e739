"""The gate of one key at a home: whether its readings may be read yet.

A gate is open while what the rule needs is matched at every site that holds events back, over the
events that have come. Readings that come while it is closed wait in it, in their order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ensue.engine.core.saved_rules import damaged
from ensue.engine.ports import Reading
from ensue.federation.placement.places import (
    Place,
)
from ensue.federation.placement.running.outposts import (
    Following,
    restored_readings,
    saved_readings,
)
from ensue.federation.placement.snapshots.saved import SavedGate

NEVER = -(1 << 62)


@dataclass
class KeyGate:
    """What is known of the sites that hold events of one key back, and what waits meanwhile."""

    followings: Mapping[str, Following]
    waiting: list[tuple[Place, Reading]] = field(default_factory=list)

    def is_open(self, now: int) -> bool:
        return all(each.is_matched(now) for each in self.followings.values())

    def is_idle(self, now: int) -> bool:
        """Whether nothing waits, and no site is on the way to what is needed."""
        return not self.waiting and all(
            each.starts.is_blank(NEVER if each.window is None else now - each.window)
            for each in self.followings.values()
        )

    def saved(self) -> SavedGate:
        followings = {site: each.saved() for site, each in self.followings.items()}
        return SavedGate(followings, saved_readings(self.waiting))

    def restore(self, saved: SavedGate) -> None:
        if saved.followings.keys() != self.followings.keys():
            raise damaged("a gate waits for other sites")
        for site, each in saved.followings.items():
            self.followings[site].restore(each)
        self.waiting = restored_readings(saved.waiting)

    def open_until(self) -> int | None:
        """Up to which time an open gate stays open, if nothing comes; None for ever."""
        ends = [each.until() for each in self.followings.values()]
        return min((end for end in ends if end is not None), default=None)
