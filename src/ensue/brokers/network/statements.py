"""The statements of both sides of a link: its own, sent again after a break, and those received.

A connection begins with all that a side says; changes follow. So nothing is lost with a connection,
and what changed while there was none is told in its newest form. In come statements, out go the
differences; what they mean is decided in `links`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ensue.brokers.weakening import needs_of
from ensue.channel.links.faults import LinkFault, LinkFaultError
from ensue.channel.links.messages import SPOKEN_A_STATEMENT, FilterStatement, Spoken
from ensue.errors import EnsueError
from ensue.subscriptions import Filter

MOST_SPOKEN = 1_000_000
"""The most subscriptions, advertisements and brokers that are heard from one neighbour."""
MOST_CHARACTERS = 128 * 1024 * 1024
"""As many characters of them, at most."""

Words = tuple[Spoken, ...]


class PendingStatements:
    """What a neighbour has yet to be told: the last word on each filter."""

    def __init__(self, advertised: bool) -> None:
        self._advertised = advertised
        self._is_complete = False
        self._words: dict[Spoken, bool] = {}

    def __bool__(self) -> bool:
        return self._is_complete or bool(self._words)

    def add(self, news: FilterStatement) -> None:
        if news.is_complete:
            self._is_complete = True
            self._words = {}
        for each in news.said:
            self._words[each] = True
        for each in news.taken_back:
            if self._is_complete:
                self._words.pop(each, None)
            else:
                self._words[each] = False

    def take(self) -> list[FilterStatement]:
        """Statements of a bounded size: all that is said, then all that is taken back."""
        said = [each for each, is_said in self._words.items() if is_said]
        taken_back = [each for each, is_said in self._words.items() if not is_said]
        parts: list[tuple[Words, Words]] = [(part, ()) for part in _cut(said)]
        parts += [((), part) for part in _cut(taken_back)]
        is_complete = self._is_complete
        if is_complete and not parts:
            parts = [((), ())]
        last = len(parts) - 1
        self._is_complete, self._words = False, {}
        return [
            FilterStatement(self._advertised, is_complete, is_complete and number < last, *part)
            for number, part in enumerate(parts)
        ]


class Hearing:
    """What the other side of a link says at present."""

    def __init__(self) -> None:
        self._said: dict[Spoken, Filter | None] = {}
        self._collected: dict[Spoken, Filter | None] | None = None
        self._characters = self._collected_characters = 0

    def hear(self, statement: FilterStatement) -> FilterStatement | None:
        """The part of a statement that is new; None while more parts of the statement are to come.

        Raises `LinkFaultError` for a filter that cannot be read, and for too many.
        """
        if statement.is_complete:
            if self._collected is None:
                self._collected_characters = 0
            collected = {} if self._collected is None else self._collected
            self._collected_characters += _characters(statement.said)
            _check_count(collected, self._collected_characters)
            collected.update((each, self._read(each)) for each in statement.said)
            self._collected = collected if statement.goes_on else None
            if statement.goes_on:
                return None
            new = [each for each in collected if each not in self._said]
            gone = [each for each in self._said if each not in collected]
            fresh = collected
        else:
            new = [each for each in statement.said if each not in self._said]
            gone = [each for each in statement.taken_back if each in self._said]
            fresh = {each: self._read(each) for each in new}
        self._said.update(fresh)
        self._characters += _characters(new)
        _check_count(self._said, self._characters)
        return FilterStatement(statement.advertised, False, False, tuple(new), tuple(gone))

    def begin(self) -> None:
        """A connection stands, and the other side says everything from the beginning."""
        self._collected = None

    def filter_of(self, spoken: Spoken) -> Filter:
        found = self._said[spoken]
        assert found is not None
        return found

    def forget(self, gone: Sequence[Spoken]) -> None:
        self._characters -= _characters(gone)
        for each in gone:
            del self._said[each]

    @property
    def brokers(self) -> list[str]:
        return [each.text for each in self._said if each.topic == "broker"]

    def _read(self, spoken: Spoken) -> Filter | None:
        if spoken.topic == "broker":
            return None
        known = self._said.get(spoken)
        if known is not None:
            return known
        try:
            heard = Filter.parse(spoken.text)
        except (EnsueError, RecursionError, ValueError):
            raise LinkFaultError(LinkFault.BAD_ADVERT) from None
        if needs_of(heard) != (heard,):
            # It asks a history, and those of other brokers are not asked.
            raise LinkFaultError(LinkFault.BAD_ADVERT)
        return heard


def _cut(words: list[Spoken]) -> Iterator[Words]:
    for start in range(0, len(words), SPOKEN_A_STATEMENT):
        yield tuple(words[start : start + SPOKEN_A_STATEMENT])


def _characters(words: Sequence[Spoken]) -> int:
    return sum(len(each.text) for each in words)


def _check_count(said: dict[Spoken, Filter | None], characters: int) -> None:
    if len(said) > MOST_SPOKEN or characters > MOST_CHARACTERS:
        raise LinkFaultError(LinkFault.BAD_ADVERT)
