"""The filters of one topic at a broker: which link or client each came from, and which travel on.

The topics are subscriptions and advertisements. A filter is wanted over a link if a client on
another side of the broker has said it; which of the wanted ones travel is decided by `Forwarding`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from ensue.brokers.covering import Covering
from ensue.brokers.forwarding import Changes, Forwarding
from ensue.subscriptions import Filter

HERE = ""
"""The broker's own clients, as a source among the names of its neighbours."""

Tell = Callable[[str, Changes], None]
Gate = Callable[[str, Filter], bool]


class StandingFilters:
    """`gate(far, filter)` may hold a filter back from a link; `tell` sends what has changed."""

    def __init__(self, covering: Covering, tell: Tell, gate: Gate) -> None:
        self._covering = covering
        self._tell = tell
        self._gate = gate
        self._said_by: dict[str, Counter[Filter]] = {HERE: Counter()}
        self._forwarding: dict[str, Forwarding] = {}

    def connect(self, far: str) -> None:
        self._said_by[far] = Counter()
        self._forwarding[far] = Forwarding(self._covering)
        self.look_again(far)

    def disconnect(self, far: str) -> list[Filter]:
        """Forget a link. Returns the filters that had come over it."""
        gone = list(self._said_by[far])
        for each in gone:
            self.remove(far, each)
        del self._said_by[far], self._forwarding[far]
        return gone

    def add(self, source: str, filter_: Filter) -> bool:
        """Add a filter of a source. Returns whether it is new there."""
        self._said_by[source][filter_] += 1
        if self._said_by[source][filter_] > 1:
            return False
        for far, forwarding in self._forwarding.items():
            if far != source and self._gate(far, filter_):
                self._tell(far, forwarding.want(filter_))
        return True

    def remove(self, source: str, filter_: Filter) -> bool:
        """Whether the source no longer says it."""
        said = self._said_by[source]
        if filter_ not in said:
            return False
        said[filter_] -= 1
        if said[filter_]:
            return False
        del said[filter_]
        for far, forwarding in self._forwarding.items():
            if far != source and not self._is_wanted(far, filter_):
                self._tell(far, forwarding.drop(filter_))
        return True

    def start_over(self) -> None:
        """Choose anew which filters travel over each link: the covering relation has changed."""
        for far, old in list(self._forwarding.items()):
            new = self._forwarding[far] = Forwarding(self._covering)
            for each in old:
                new.want(each)
            before, after = dict.fromkeys(old.said), dict.fromkeys(new.said)
            said = [each for each in after if each not in before]
            self._tell(far, Changes(said, [each for each in before if each not in after]))

    def look_again(self, far: str) -> None:
        """What may pass the gate of a link has changed."""
        forwarding = self._forwarding[far]
        wanted = {each: None for each in self._from_others(far) if self._gate(far, each)}
        changes = [forwarding.want(each) for each in wanted]
        changes += [forwarding.drop(each) for each in list(forwarding) if each not in wanted]
        self._tell(far, Changes.together(changes))

    def said_by(self, source: str) -> list[Filter]:
        return list(self._said_by.get(source, ()))

    def said_to(self, far: str) -> list[Filter]:
        return self._forwarding[far].said

    def _from_others(self, far: str) -> Iterator[Filter]:
        others = [said for source, said in self._said_by.items() if source != far]
        return iter(dict.fromkeys(filter_ for said in others for filter_ in said))

    def _is_wanted(self, far: str, filter_: Filter) -> bool:
        return any(filter_ in said for source, said in self._said_by.items() if source != far)
