"""Conditions that can never hold: `where` and `having`, as far as linear arithmetic decides it."""

from ensue.machine.analyses.conditions.rules import NeverHolds, conditions_that_never_hold

__all__ = ["NeverHolds", "conditions_that_never_hold"]
