"""The invariants of every channel: published = delivered + counted.

For each consumer: what it wanted, and what its step put out, was delivered, was read by the step,
waits, or is counted as dropped. For channels that are linked only to each other: each destination
of each event was reached, is in transit, or is counted. What a link had sent when it ended is in
doubt: counted as unconfirmed it may have arrived all the same, and sent again by another way it may
arrive twice (and is delivered once). That is the only slack.

`unbalanced` says what is wrong with the counts of channels that have come to rest. A fixture checks
it after every test of this folder, for every channel that the test made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from ensue.channel import Channel
from ensue.channel.figures.values import ConsumerFigures, Figures
from ensue.channel.policies import Reason
from tests.channel.making import eventually

LINK_REASONS = {Reason.UNSENT, Reason.UNROUTED, Reason.UNCONFIRMED}


@contextmanager
def balanced() -> Iterator[None]:
    """Check every channel that is made meanwhile, once all of them have come to rest."""
    made: list[Channel] = []
    begin = Channel.__init__

    def begin_and_note(self: Channel, *given: Any, **named: Any) -> None:
        begin(self, *given, **named)
        made.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Channel, "__init__", begin_and_note)
        yield
    eventually(lambda: not unbalanced(made), seconds=5.0)
    assert not unbalanced(made)


def unbalanced(channels: Sequence[Channel]) -> list[str]:
    """One line for each sum that is not right."""
    faults = []
    for channel in channels:
        figures = channel.figures()
        of_links = sum(count for reason, count in figures.dropped.items() if reason in LINK_REASONS)
        faults += _compared(f"channel {channel.name}", figures, of_links)
        for each in figures.consumers.values():
            faults += _compared(f"consumer {each.name} of {channel.name}", each, 0)
    return [*faults, *_unbalanced_links(channels)]


def _unbalanced_links(channels: Sequence[Channel]) -> list[str]:
    linked = [each._federation for each in channels if each._federation is not None]
    ids = {each.id for each in linked}
    sessions = [
        session
        for each in linked
        for listener in each._listeners
        for session in listener._sessions.values()
    ] + [link.session for each in linked for link in each._dialling]
    if any(each.neighbour is not None and each.neighbour not in ids for each in sessions):
        # A channel of another process keeps counts of its own.
        return []
    addressed = sum(each.addressed for each in linked)
    repeated = sum(each.repeated for each in linked)
    arrived = sum(each.received for each in linked)
    in_transit = sum(each.in_transit for each in linked)
    counted: Counter[Reason] = Counter()
    for each in linked:
        counted.update(each.dropped())
    went = arrived + in_transit + counted.total()
    if addressed <= went <= addressed + repeated + counted[Reason.UNCONFIRMED]:
        return []
    return [
        f"links: {addressed} were addressed, {repeated} again; {arrived} arrived,"
        f" {in_transit} are in transit, counted are {dict(counted)}"
    ]


def _compared(name: str, figures: Figures | ConsumerFigures, of_links: int) -> list[str]:
    dropped = sum(figures.dropped.values()) - of_links
    came = figures.wanted + figures.made
    went = figures.delivered + figures.read + figures.waiting + dropped
    return [] if came == went else [f"{name}: {came} came and {went} went: {figures}"]
