"""What the rules of a board put out at an event: one volley for all that put out alike.

In come the groups of which rules have fired, each with who did and what counts for them; out come
their outputs. Rules that put out alike, of whatever groups, are put in the order of the library and
handed to one routine (`emitting`). Where there are several routines, their outputs are still to be
put in order: that is for the stream, which knows who else has put something out.

An id counts what a rule has put out at a trigger. Mostly that is nothing yet; where a trigger comes
again at the same time, or several branches of a rule fire at once, it is looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ensue.events.event import Event

if TYPE_CHECKING:
    from ensue.engine.step.boards import KeyState
    from ensue.engine.step.groups import Group

What = tuple[int, ...]
"""The number of a shape, a part of an action, the action; then the times of bound timers."""

Fires = tuple[What, int]
"""What fires, and of whom."""

Firing = Sequence[tuple["Group", Any]]
"""Groups, each with what it says of who has fired."""

Gathered = dict[Callable[..., None], list[Any]]
"""Members that put something out, by the routine that makes it."""

Own = list[tuple[int, int, int]]
"""Of which group, who puts something out at this trigger, and how much."""


def put_out(
    firing: Firing,
    groups: Sequence[Group | None],
    state: KeyState,
    event: Event,
    made: list[Event],
) -> int:
    """Make what follows; says in how many parts, each of them in order.

    `groups` are all groups of the board, by their places.
    """
    time, trigger = event.time, event.id
    if state.time != time:
        state.time = time
        state.made.clear()
    elif trigger in state.made:
        return _put_out_counted(firing, groups, state, event, made)
    own: Own = []
    by_routine: Gathered = {}
    is_in_order = len(firing) == 1
    for group, found in firing:
        in_order = group.gather(found, by_routine, own)
        if in_order is None:
            return _put_out_counted(firing, groups, state, event, made)
        is_in_order = is_in_order and in_order
    for routine, members in by_routine.items():
        if not is_in_order:
            members.sort()
        routine(made, members, state.last, state.text, time, trigger, None)
    if own:
        state.made[trigger] = own
    return len(by_routine)


def _put_out_counted(
    firing: Firing,
    groups: Sequence[Group | None],
    state: KeyState,
    event: Event,
    made: list[Event],
) -> int:
    """The same, where rules may have put something out at this trigger before."""
    time, trigger = event.time, event.id
    own = list(state.made.get(trigger, ()))
    before: dict[str, int] = {}
    for at, who, count in own:
        group = groups[at]
        assert group is not None, "what a group has made leaves with it"
        for bit in bits_of(who):
            name = group.members[bit].name
            before[name] = before.get(name, 0) + count
    parts = 0
    for group, found in firing:
        for what, who in group.fires(found):
            volley = group.volley(what)
            if volley is None:
                continue
            count, routine, members = volley
            chosen = group.chosen(who, members)
            routine(made, chosen, state.last, state.text, time, trigger, before)
            own.append((group.at, who, count))
            parts += 1
            for member in chosen:
                before[member[1]] = before.get(member[1], 0) + count
    if own:
        state.made[trigger] = own
    return parts


def bits_of(mask: int) -> Iterator[int]:
    """The numbers of the bits that are set, counted from 1, the highest first."""
    while mask:
        bit = mask.bit_length()
        yield bit
        mask ^= 1 << (bit - 1)
