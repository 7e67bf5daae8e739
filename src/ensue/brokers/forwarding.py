"""Which filters travel over one link: the most general of all that are asked for.

In come filters that are wanted and no longer wanted; out goes what to say over the link. A filter
that another one covers is not said, and waits behind it; when the cover goes, what it covered is
looked at again. New filters are said before old ones are taken back, so that at no moment an event
that is wanted finds no subscriber.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ensue.brokers.candidates import CandidateFilters
from ensue.brokers.covering import Covering
from ensue.subscriptions import Filter


@dataclass
class Changes:
    """What to say over a link: first what is new, then what is taken back."""

    said: list[Filter] = field(default_factory=list)
    taken_back: list[Filter] = field(default_factory=list)

    @classmethod
    def together(cls, parts: Iterable[Changes]) -> Changes:
        """What is left of changes that follow each other, each filter at most once."""
        balance: Counter[Filter] = Counter()
        for each in parts:
            balance.update(each.said)
            balance.subtract(each.taken_back)
        return cls(
            [each for each, count in balance.items() if count > 0],
            [each for each, count in balance.items() if count < 0],
        )


class Forwarding:
    """The filters of one direction of one link."""

    def __init__(self, covering: Covering) -> None:
        self._covers = covering.surely_covers
        self._candidates = CandidateFilters(covering)
        self._behind: dict[Filter, dict[Filter, None]] = {}
        self._cover: dict[Filter, Filter] = {}

    @property
    def said(self) -> list[Filter]:
        """The filters that have been sent to the other side."""
        return list(self._behind)

    def __contains__(self, wanted: object) -> bool:
        return wanted in self._behind or wanted in self._cover

    def __iter__(self) -> Iterator[Filter]:
        yield from self._behind
        yield from self._cover

    def want(self, wanted: Filter) -> Changes:
        if wanted in self:
            return Changes()
        for said in self._candidates.that_may_cover(wanted):
            if self._covers(said, wanted):
                self._put(wanted, said)
                return Changes()
        candidates = self._candidates.that_may_be_covered_by(wanted)
        narrower = [said for said in candidates if self._covers(wanted, said)]
        self._behind[wanted] = {}
        self._candidates.add(wanted)
        for said in narrower:
            self._candidates.remove(said)
            for each in (said, *self._behind.pop(said)):
                self._put(each, wanted)
        return Changes([wanted], narrower)

    def drop(self, wanted: Filter) -> Changes:
        cover = self._cover.pop(wanted, None)
        if cover is not None:
            del self._behind[cover][wanted]
            return Changes()
        if wanted not in self._behind:
            return Changes()
        changes = Changes([], [wanted])
        orphans = self._behind.pop(wanted)
        self._candidates.remove(wanted)
        for each in orphans:
            del self._cover[each]
        return Changes.together([changes, *map(self.want, orphans)])

    def _put(self, wanted: Filter, behind: Filter) -> None:
        self._cover[wanted] = behind
        self._behind[behind][wanted] = None
