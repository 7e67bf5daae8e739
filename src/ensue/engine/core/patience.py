"""When a table is left for the form that is linear in the expression."""

from __future__ import annotations

from ensue.engine.core.rule_table import RuleTable

FREE_MOVES = 1024
EVENTS_A_MOVE = 64


class Patience:
    """How many moves of a table may be worked out for the events that have been read.

    A move costs about as much as stepping the machine for some hundreds of events. A table that is
    still growing after its first moves is better left, if that is possible.
    """

    def __init__(self, free: int = FREE_MOVES, events_a_move: int = EVENTS_A_MOVE) -> None:
        self.free = free
        self._events_a_move = events_a_move
        self.events = 0

    def is_over(self, table: RuleTable, more: int) -> bool:
        """Asked when so many events have been read on top of those that were counted before."""
        return table.moves_made > self.free + (self.events + more) // self._events_a_move
