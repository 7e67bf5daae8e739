"""Conditions that never or always hold: `where` and `having`, as far as linear arithmetic knows."""

from ensue.machine.analyses.conditions.rules import (
    NeverHolds,
    conditions_that_never_hold,
    without_needless_having,
)

__all__ = ["NeverHolds", "conditions_that_never_hold", "without_needless_having"]
