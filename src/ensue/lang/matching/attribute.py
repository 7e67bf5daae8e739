"""One name of the index: tables from its values to the conjunctions that wait for them.

Every witness on a name is a key of one of the tables here, each for a view of the value (`tests`),
and leads to a bucket of conjunctions. `probe` finds the buckets for a value: equality by hash, IN
by the value's own kind, prefixes and suffixes by the hash of each length that occurs, substrings by
the hash of three characters, elements of bags, concepts by their codes, presence. Ranges are in
`intervals`. `note` writes the facts about a value that the compiled loops check.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from ensue.events.event import Event
from ensue.events.times import microseconds_of
from ensue.lang.expressions.asking import Ontology
from ensue.lang.expressions.comparing import comparison_kind
from ensue.lang.expressions.derived_names import derived_name
from ensue.lang.expressions.scopes import MISSING, EventScope
from ensue.lang.expressions.values import EXACT_IN_DOUBLES
from ensue.lang.matching.computed import ComputedName, reader_of
from ensue.lang.matching.intervals import Intervals
from ensue.lang.matching.packed import kernels as k
from ensue.lang.matching.tests import Parts, Test, View
from ensue.lang.matching.views import (
    number_view,
    pattern_view,
    text_view,
    time_view,
    truth_view,
)

GRAM = 3
LONGEST_END = 16
"""The most characters of a prefix or suffix in a key; longer ones are checked afterwards."""

CONSTANTS_TOLD_APART = 1024

Table = dict[Any, int]
"""From a value, or a part of a value, to a bucket."""


class ByLength(dict[Any, int]):
    """A table with texts as keys, and the lengths of these texts."""

    def __init__(self) -> None:
        super().__init__()
        self.lengths: Counter[int] = Counter()

    def __setitem__(self, text: str, bucket: int) -> None:
        if text not in self:
            self.lengths[len(text)] += 1
        super().__setitem__(text, bucket)

    def __delitem__(self, text: str) -> None:
        super().__delitem__(text)
        self.lengths[len(text)] -= 1
        if not self.lengths[len(text)]:
            del self.lengths[len(text)]


class AttributeIndex:
    """The tables of one name.

    `absent` belongs to the whole index: the buckets that wait for a name without a value.
    """

    def __init__(self, parts: Parts, slot: int, absent: Table) -> None:
        self.parts = parts
        self.slot = slot
        self.absent = absent
        self.read = _reader(parts)
        self.by_text: Table = {}
        self.by_pattern: Table = {}
        self.by_number: Table = {}
        self.by_truth: Table = {}
        self.by_time: Table = {}
        self.by_own_time: Table = {}
        self.listed: dict[str, Table] = {}
        self.prefixes = ByLength()
        self.suffixes = ByLength()
        self.grams = ByLength()
        self.bags: dict[str, Table] = {}
        self.concepts: Table = {}
        self.present: Table = {}
        self.numbers = Intervals()
        self.times = Intervals()
        self.own_times = Intervals()
        self.checked = [0] * k.CELLS
        """The number of atoms that the compiled loops check on each cell."""
        self._seen: dict[View, set[int]] = {}

    def see(self, test: Test) -> None:
        """Count the constants of a test, to estimate how likely each is."""
        seen = self._seen.setdefault(test.view, set())
        if len(seen) >= CONSTANTS_TOLD_APART:
            return
        match test.view:
            case View.LISTED:
                seen.update(map(hash, test.constant))
            case View.BAG:
                seen.update(map(hash, test.constant[1]))
            case _:
                seen.add(hash(test.constant))

    def chance(self, view: View) -> float:
        """An estimate of how likely a value equals one of the constants that were seen."""
        return 1 / max(1, len(self._seen.get(view, ())))

    @property
    def is_idle(self) -> bool:
        """Whether no conjunction waits for this name, and no atom is checked on it."""
        tables = (
            *(self.by_text, self.by_pattern, self.by_number, self.by_truth, self.by_time),
            *(self.by_own_time, self.prefixes, self.suffixes, self.grams, self.concepts),
            *(self.present, *self.listed.values(), *self.bags.values()),
        )
        ranges = (self.numbers, self.times, self.own_times)
        if any(self.checked) or self.slot in self.absent:
            return False
        return not any(tables) and not any(map(len, ranges))

    @property
    def is_numeric(self) -> bool:
        """Whether only the number and the presence of its values matter."""
        others = (
            *(self.by_text, self.by_pattern, self.by_truth, self.by_time, self.by_own_time),
            *(self.prefixes, self.suffixes, self.grams, self.concepts),
            *(*self.listed.values(), *self.bags.values()),
        )
        _, texts, truths, times, own_times, _ = self.checked
        ranges = len(self.times) or len(self.own_times)
        return not (texts or truths or times or own_times or ranges or any(others))

    def ranges(self, view: View) -> Intervals:
        if view is View.NUMBER:
            return self.numbers
        return self.times if view is View.TIME else self.own_times

    def probe(self, value: Any, buckets: list[int], ontology: Ontology | None) -> None:
        """Add the buckets for a value."""
        found = self.present.get(PRESENT)
        if found is not None:
            buckets.append(found)
        if self.by_text:
            text = text_view(value)
            if (found := self.by_text.get(text)) is not None:
                buckets.append(found)
        if self.by_number:
            number = number_view(value)
            if number is not None and (found := self.by_number.get(float(number))) is not None:
                buckets.append(found)
        if self.by_truth:
            truth = truth_view(value)
            if truth is not None and (found := self.by_truth.get(truth)) is not None:
                buckets.append(found)
        if self.by_time:
            instant = time_view(value)
            if (found := self.by_time.get(instant)) is not None:
                buckets.append(found)
        if self.by_own_time and isinstance(value, datetime):
            _open(self.by_own_time, (time_view(value),), buckets)
        if self.listed:
            self._probe_listed(self.listed, value, buckets)
        if self.by_pattern or self.prefixes or self.suffixes or self.grams:
            self._probe_text(pattern_view(value), buckets)
        if self.bags:
            for element in elements_of_bag(value):
                self._probe_listed(self.bags, element, buckets)
        if self.concepts and ontology is not None:
            for element in elements_of_bag(value):
                self._probe_concept(element, buckets, ontology)

    def _probe_listed(self, tables: Mapping[str, Table], value: Any, buckets: list[int]) -> None:
        kind = comparison_kind(value)
        table = tables.get(kind) if kind is not None else None
        if table is not None and (found := table.get(listed_key(kind, value))) is not None:
            buckets.append(found)

    def _probe_text(self, text: str | None, buckets: list[int]) -> None:
        if text is None:
            return
        if (found := self.by_pattern.get(text)) is not None:
            buckets.append(found)
        size = len(text)
        if self.prefixes:
            lengths = (each for each in self.prefixes.lengths if each <= size)
            _open(self.prefixes, (text[:each] for each in lengths), buckets)
        if self.suffixes:
            lengths = (each for each in self.suffixes.lengths if each <= size)
            _open(self.suffixes, (text[-each:] for each in lengths), buckets)
        for length in self.grams.lengths:
            grams = {text[at : at + length] for at in range(size - length + 1)}
            _open(self.grams, grams, buckets)

    def _probe_concept(self, element: Any, buckets: list[int], ontology: Ontology) -> None:
        code = ontology.code(element) if isinstance(element, str) else None
        if code is not None:
            _open(self.concepts, ontology.above(code), buckets)

    def stab(self, value: Any, stabbed: list[tuple[Intervals, float]]) -> None:
        """Add the intervals to search, each with the number to search for."""
        if len(self.numbers):
            number = number_view(value)
            if number is not None:
                stabbed.append((self.numbers, float(number)))
        if len(self.times):
            instant = time_view(value)
            if instant is not None:
                stabbed.append((self.times, float(instant)))
        if len(self.own_times) and isinstance(value, datetime):
            instant = time_view(value)
            if instant is not None:
                stabbed.append((self.own_times, float(instant)))

    def note(self, value: Any, facts: Any, codes: Mapping[str, int]) -> bool:
        """Write the cells of a value; true if a cell cannot hold it exactly."""
        cell = self.slot * k.CELLS
        facts[cell + k.PRESENT] = 1.0
        numbers, texts, truths, times, own_times, _ = self.checked
        odd = False
        if numbers:
            number = value if value.__class__ is float else number_view(value)
            if number is not None:
                if -EXACT_IN_DOUBLES < number < EXACT_IN_DOUBLES or number.__class__ is float:
                    facts[cell] = number
                    odd = number != number
                else:
                    odd = True
        if texts:
            text = text_view(value)
            if text is not None:
                facts[cell + k.TEXT] = codes.get(text, k.OTHER_TEXT)
            else:
                odd |= isinstance(value, datetime)
        if truths:
            truth = truth_view(value)
            if truth is not None:
                facts[cell + k.TRUTH] = truth
        if times or own_times:
            instant = time_view(value)
            if instant is not None:
                odd |= not -EXACT_IN_DOUBLES < instant < EXACT_IN_DOUBLES
                facts[cell + k.TIME] = instant
                if isinstance(value, datetime):
                    facts[cell + k.OWN_TIME] = instant
        return odd


PRESENT = "present"


def _open(table: Table, keys: Iterable[Any], buckets: list[int]) -> None:
    for key in keys:
        found = table.get(key)
        if found is not None:
            buckets.append(found)


def listed_key(kind: str | None, value: Any) -> Any:
    """A key that is equal for values of a kind that are equal in CESQL, and rarely for others."""
    if kind == "number":
        return float(value)
    return microseconds_of(value) if kind == "timestamp" else value


def elements_of_bag(value: Any) -> Sequence[Any]:
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return value
    return () if isinstance(value, Mapping) else (value,)


def _reader(parts: Parts) -> Callable[[Event], Any]:
    """`EventScope.lookup` for one name, prepared for many events."""
    name = parts[0]
    if isinstance(name, ComputedName):
        return reader_of(name.expression)
    if (
        len(parts) > 1
        or derived_name(parts)
        or name.lower() in ("id", "source", "type", "time", "specversion")
    ):
        return lambda event: EventScope(event).lookup(parts)
    lower = name.lower()

    def read(event: Event) -> Any:
        extensions = event.extensions
        if extensions and (found := extensions.get(name)) is not None:
            return found
        data = event.data
        if data.__class__ is dict or isinstance(data, Mapping):
            found = data.get(name)
            if found is not None:
                return found
        if lower != name and (found := extensions.get(lower)) is not None:
            return found
        return MISSING

    return read
