"""What a service is known to have is forgotten only when it cannot come again."""

from __future__ import annotations

from pathlib import Path

from ensue.federation.links.seen import Seen


def test_an_older_generation_goes_when_nothing_of_it_can_come_again() -> None:
    seen = Seen(3)
    seen.update(range(3))
    assert not seen.forget(False)
    assert seen.forget(True)
    seen.update(range(3, 6))
    assert all(each in seen for each in range(6))
    assert seen.forget(True)

    assert [each for each in range(6) if each in seen] == [3, 4, 5]


def test_the_latest_are_told_in_their_order_over_generations() -> None:
    seen = Seen(3)
    seen.update([5, 1, 4])
    seen.forget(True)
    seen.update([9, 2])

    assert seen.latest(2) == [9, 2]
    assert seen.latest(4) == [1, 4, 9, 2]


def test_a_killed_process_leaves_what_was_written(tmp_path: Path) -> None:
    file = tmp_path / "g.seen"
    seen = Seen(3, file)
    seen.update([1, 2, 3])
    seen.forget(True)
    seen.update([4, 5])
    seen.keep()
    seen.add(6)
    with file.open("ab") as torn:
        torn.write(b"abc")
    again = Seen(3, file)

    assert [each for each in range(8) if each in again] == [1, 2, 3, 4, 5]
    again.add(7)
    again.keep()
    assert 7 in Seen(3, file)
