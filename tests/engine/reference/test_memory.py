"""What the memory form remembers, and when it lets go."""

from __future__ import annotations

from ensue.engine.ports import Reading
from ensue.engine.reference.memory import BranchMemory
from ensue.lang.syntax import Labelled, PortRef, Then

SECOND = 1_000_000


def test_what_has_left_the_window_is_let_go_and_changes_no_answer() -> None:
    """The same questions over all that was read, and over what is kept, have the same answers."""
    expression = Then((PortRef("a"), Labelled("l", PortRef("b"))))
    kept, whole = BranchMemory(expression), BranchMemory(expression)
    for second in range(3_000):
        port = "b" if second % 7 == 3 else "a"
        reading = Reading(second * SECOND, frozenset({port}))
        kept.forget_before(kept.first_since((second - 10) * SECOND))
        kept.remember(reading)
        whole.remember(reading)
        if second == 1_500:
            for memory in (kept, whole):
                memory.abort("l")
                memory.revive("l")
        start, later = (m.first_since((second - 10) * SECOND) for m in (kept, whole))

        assert kept.matches(start) == whole.matches(later)
        assert kept.active_labels(start) == whole.active_labels(later)
        assert kept.bound(start, first=True) == whole.bound(later, first=True)
        assert kept.bound(start, first=False) == whole.bound(later, first=False)
    assert len(whole.readings) == 3_000
    assert len(kept.readings) < 600
