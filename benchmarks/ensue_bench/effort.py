"""How much a measurement may cost: sizes and repeats, in full or to see that it runs at all."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Effort:
    """`quick` says that the figures do not matter, only that there are some, within seconds.

    `stores` are the stores that histories are compared over, if that is what is asked.
    """

    quick: bool = False
    repeats: int = 7
    stores: tuple[str, ...] = ()

    def size(self, full: int, quick: int) -> int:
        return quick if self.quick else full

    def times(self, most: int | None = None) -> int:
        """How many repeats: those asked for, or fewer where one of them takes long."""
        if self.quick:
            return min(self.repeats, 2)
        return self.repeats if most is None else min(self.repeats, most)
