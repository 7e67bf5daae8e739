"""What a link keeps that carries no events, until those that do are done with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ensue.federation.adapters.base import Incoming
from ensue.federation.links.receipts import Receipts


def in_a_loop(story: Callable[[], None]) -> None:
    async def told() -> None:
        story()

    asyncio.run(told())


def resting(count: int, *carriers: str) -> Receipts:
    made = Receipts()
    made.carry(carriers)
    for number in range(count):
        made.rest(Incoming(None, number), number, False)
    return made


def test_an_event_rests_until_every_neighbour_that_carries_is_done_with_it() -> None:
    def story() -> None:
        made = resting(3, "a", "b")
        made.carried("a", [0, 1])
        assert made.acknowledging() == []
        made.carried("b", [1, 0])

        assert made.acknowledging() == [0, 1]

    in_a_loop(story)


def test_what_a_late_neighbour_has_before_it_is_kept_however_long_that_takes() -> None:
    def story() -> None:
        made = resting(3, "a")
        later = asyncio.get_running_loop().time() + 1_000.0
        made.release(later)
        assert made.acknowledging() == []
        made.carried("a", [1])
        made.release(later)

        assert made.acknowledging() == [0, 1]
        assert [each.incoming.token for each in made.wake()] == [2]

    in_a_loop(story)


def test_a_link_that_is_to_carry_lets_go_of_nothing() -> None:
    def story() -> None:
        made = resting(2, "a")
        made.carry(())
        made.carried("a", [0, 1])

        assert made.acknowledging() == []
        made.carry(["a"])
        assert made.acknowledging() == [0, 1]

    in_a_loop(story)
