"""The invariant of every channel: what was wanted is delivered, waits, or is counted.

`unbalanced` says what is wrong with the counts of channels of this process, once they have come to
rest. A fixture checks it after every test of this folder, for every channel that the test made.
"""

from __future__ import annotations

from collections.abc import Sequence

from ensue.channel import Channel
from ensue.channel.figures.values import ConsumerFigures, Figures
from ensue.channel.policies import Reason

LINK_REASONS = {Reason.UNSENT, Reason.UNROUTED}


def unbalanced(channels: Sequence[Channel]) -> list[str]:
    """One line for each sum that is not right."""
    faults = []
    for channel in channels:
        figures = channel.figures()
        of_links = sum(count for reason, count in figures.dropped.items() if reason in LINK_REASONS)
        faults += _compared(f"channel {channel.name}", figures, of_links)
        for each in figures.consumers.values():
            faults += _compared(f"consumer {each.name} of {channel.name}", each, 0)
    return faults


def _compared(name: str, figures: Figures | ConsumerFigures, of_links: int) -> list[str]:
    dropped = sum(figures.dropped.values()) - of_links
    came = figures.wanted + figures.made
    went = figures.delivered + figures.read + figures.waiting + dropped
    return [] if came == went else [f"{name}: {came} came and {went} went: {figures}"]
