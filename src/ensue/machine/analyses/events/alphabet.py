"""Alphabets: the sets of ports and predicates that one event can satisfy together.

In come correlations; out come alphabets of symbols. A symbol is a kind of event: the ports of each
correlation that it matches, and the atoms of each machine. Ports exclude each other by type (an
event has one declared type), by source and by predicate. For predicates, a few values of each
attribute are combined in all ways (`sampling`), and the predicates are evaluated: each symbol that
is found exists, and keeps an event that shows it.

Where predicates are plain, these are *all* symbols. Where they are not (arithmetic, functions, a
comparison of two attributes, more combinations than the budget), an alphabet has two sets that must
not be mixed up: `symbols`, which certainly exist, for witnesses; and `possible` ones, a superset of
all that exist: a search over them that finds nothing is a proof.

With `by`, an analysis follows one key. If predicates ask about the key, other events are possible
under other keys, so that there is one alphabet for each kind of key. If two correlations have
different keys, each is still followed under one key: an event that only one of them reads under its
key is like an event that lacks the other's key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any

from msgspec.structs import replace

from ensue.events.event import Event
from ensue.events.types import TypeSystem
from ensue.lang.derived.wiring import rules_named, sources_asked, takes
from ensue.lang.expressions import Expression
from ensue.lang.expressions.evaluation import MISSING, Scope
from ensue.lang.syntax import CommonKey, Correlation, EventPort, Key
from ensue.machine.analyses.behaviour import Behaviour
from ensue.machine.analyses.deadline import UndecidableError, poll
from ensue.machine.analyses.events.mentions import CLOCK_AND_IDENTITY
from ensue.machine.analyses.events.sampling import Sample, SampleEvents

FREE_PREDICATES = 8
"""The most predicates whose truth is guessed, in all combinations."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """A kind of event: for each correlation the ports that it matches and the atoms it satisfies.

    `event` is an example; None if no such event is known to exist. `author` is the correlation that
    puts it out, where it does not come from outside.
    """

    ports: tuple[frozenset[str], ...]
    atoms: tuple[frozenset[int], ...]
    event: Event | None
    author: str | None = None


@dataclass(frozen=True)
class Alphabet:
    """`gaps` says in words why `possible` may have more than `symbols`; empty if it has not."""

    symbols: tuple[Symbol, ...]
    possible: tuple[Symbol, ...]
    gaps: tuple[str, ...] = ()

    @property
    def is_exact(self) -> bool:
        return not self.gaps


def alphabets(behaviours: Sequence[Behaviour], types: TypeSystem) -> list[Alphabet]:
    """The alphabets of correlations that read the same events: one for each kind of key."""
    return _Alphabets(behaviours, types).all()


def keys_of(correlation: Correlation) -> tuple[Key, ...]:
    """The keys of a correlation; `by a.x = b.x` is `by x`."""
    return tuple(
        CommonKey(names[0]) if len(set(names := _names_in(key))) == 1 else key
        for key in correlation.clauses.by
    )


def _names_in(key: Key) -> list[str]:
    return [key.name] if isinstance(key, CommonKey) else [name for _, name in key.parts]


class _Truth(Mapping[Expression, bool]):
    """The truth of each predicate.

    A predicate can have thousands of terms, so that it is found by its `id` and not by its value.
    """

    def __init__(self, numbers: Mapping[int, int], holding: Sequence[bool]) -> None:
        self._numbers = numbers
        self._holding = holding

    def __getitem__(self, predicate: Expression) -> bool:
        return self._holding[self._numbers[id(predicate)]]

    def __iter__(self) -> Iterator[Expression]:
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self._holding)


class _Alphabets:
    """The alphabets of some behaviours while they are made."""

    def __init__(self, behaviours: Sequence[Behaviour], types: TypeSystem) -> None:
        self._behaviours = behaviours
        self._types = types
        correlations = [each.correlation for each in behaviours]
        self._ports = [each.event_ports for each in behaviours]
        self._asked = list(chain(*(each.predicates_and_wheres for each in behaviours)))
        numbers = {each: number for number, each in enumerate(dict.fromkeys(self._asked))}
        self._predicates = list(numbers)
        self._numbers = {id(each): numbers[each] for each in self._asked}
        self._keys = [keys_of(each) for each in correlations]
        self._keyed = any(self._keys)
        self._same_keys = all(each == self._keys[0] for each in self._keys)
        keys = self._keys[0] if self._same_keys else dict.fromkeys(chain(*self._keys))
        self._key_names = [_names_in(key) for key in keys]
        for name in chain(*self._key_names):
            if "." in name:
                raise UndecidableError(f"`by {name}` is a key inside of nested data")
            if name.lower() in CLOCK_AND_IDENTITY:
                raise UndecidableError(f"`by {name}` gives each event a key of its own")
        sources = [s for port in chain(*self._ports) for s in sorted(sources_asked(port) or ())]
        named = dict.fromkeys(name for p in chain(*self._ports) for name in rules_named(p))
        self._authors: list[str | None] = [None, *named]
        self._samples = SampleEvents(
            self._predicates, sources, self._key_names, self._same_keys, types
        )
        if not self._same_keys:
            self._check_keys_that_differ()
        self._ports_by_type: dict[str, list[list[EventPort]]] = {}

    def all(self) -> list[Alphabet]:
        known: _Symbols = {}
        possible: _Symbols = {}
        concrete = list(
            dict.fromkeys(
                name for port in chain(*self._ports) for name in self._types.subtypes(port.type)
            )
        )
        points = [self._samples.points(name) for name in concrete]
        self._samples.check_size(max((each.size for each in points), default=0))
        free = self._free_predicates()
        for point in points:
            for places in self._samples.combinations(point):
                poll()
                for sample in self._samples.samples_at(point, places):
                    for author in self._authors:
                        self._take(sample, author, known, possible, free)
        return self._distinct(known, possible)

    def _take(
        self,
        sample: Sample,
        author: str | None,
        known: _Symbols,
        possible: _Symbols,
        free: list[int],
    ) -> None:
        """Keep the symbols of a sample of an author; they exist if it is real."""
        truth = _Truth(self._numbers, sample.holding)
        shown = self._put_out_by(author, sample.event) if sample.is_real else None
        for key, event_ports in self._under_keys(sample, truth, author):
            symbol = self._symbol(event_ports, truth, shown, author)
            if sample.is_real:
                _keep(known, key, symbol)
            _keep(possible, key, symbol)
        for guess in _guesses(free):
            guessed = _Truth(
                self._numbers, [guess.get(n, each) for n, each in enumerate(sample.holding)]
            )
            for key, event_ports in self._under_keys(sample, guessed, author):
                _keep(possible, key, self._symbol(event_ports, guessed, None, author))

    def _put_out_by(self, author: str | None, event: Event) -> Event:
        """The event as its author puts it out, as far as no predicate asks who that is."""
        if author is None or self._samples.asks_about("correlation"):
            return event
        return replace(event, extensions={**event.extensions, "correlation": author})

    def _check_keys_that_differ(self) -> None:
        """Raises `UndecidableError` unless one value and null are enough for key attributes."""
        for name in chain(*self._key_names):
            if name.lower() in {"source", "type"}:
                raise UndecidableError(f"only one of them is `by {name}`, which no event lacks")
            if self._samples.asks_about(name):
                raise UndecidableError(
                    f"predicates ask about `{name}`, and they are not by the same key"
                )
        # With one value for each attribute, all attributes of a key are equal.
        several = any(len(keys) > 1 for keys in self._keys)
        if several and not all(isinstance(each, CommonKey) for each in chain(*self._keys)):
            raise UndecidableError(
                "one of them is by several keys, and one by a key that differs from port to port"
            )

    def _distinct(self, known: _Symbols, possible: _Symbols) -> list[Alphabet]:
        """An alphabet for each key, without keys whose symbols another key has as well."""
        gaps = tuple(dict.fromkeys(self._samples.loose.values()))
        keys = sorted(possible, key=lambda key: (-len(possible[key]), repr(key)))
        kept: list[object] = []
        for key in keys:
            if not any(
                possible[key].keys() <= possible[other].keys()
                and known.get(key, {}).keys() <= known.get(other, {}).keys()
                for other in kept
            ):
                kept.append(key)
        return [
            Alphabet(
                tuple(known.get(key, {}).values()),
                tuple(possible[key].values()),
                gaps or self._unrealised(known.get(key, {}), possible[key]),
            )
            for key in kept
        ] or [Alphabet((), (), gaps)]

    def _unrealised(
        self,
        known: Mapping[tuple[object, ...], Symbol],
        possible: Mapping[tuple[object, ...], Symbol],
    ) -> tuple[str, ...]:
        """Why no event is known for some of the symbols; empty if there is one for each."""
        if known.keys() >= possible.keys():
            return ()
        names = ", ".join(f"`{name}`" for name in self._samples.derived)
        return (f"{names} {'is' if names.count(',') == 0 else 'are'} worked out from other data",)

    def _free_predicates(self) -> list[int]:
        """The numbers of predicates that samples do not decide."""
        free = [
            number for number, each in enumerate(self._predicates) if each in self._samples.loose
        ]
        if len(free) > FREE_PREDICATES:
            raise UndecidableError(
                f"{len(free)} predicates cannot be told apart, and {FREE_PREDICATES} can be guessed"
            )
        return free

    def _matched(
        self, event: Event, truth: Mapping[Expression, bool], author: str | None
    ) -> list[list[EventPort]]:
        return [
            [
                port
                for port in ports
                if takes(port, author, event.source) and (port.where is None or truth[port.where])
            ]
            for ports in self._ports_for(event.type)
        ]

    def _ports_for(self, type_name: str) -> list[list[EventPort]]:
        """The ports of each correlation that events of a type can match."""
        if type_name not in self._ports_by_type:
            above = set(self._types.lineage(type_name))
            self._ports_by_type[type_name] = [
                [port for port in ports if port.type in above] for ports in self._ports
            ]
        return self._ports_by_type[type_name]

    def _under_keys(
        self, sample: Sample, truth: Mapping[Expression, bool], author: str | None
    ) -> Iterator[tuple[object, list[frozenset[str]]]]:
        """Each key under which an event is read, with the ports that it matches there."""
        matched = self._matched(sample.event, truth, author)
        if not any(matched):
            return
        if not self._keyed:
            yield None, [frozenset(port.name for port in ports) for ports in matched]
            return
        keys = [
            {port.name: _key(port, sample.scope, own) for port in ports}
            for ports, own in zip(matched, self._keys, strict=True)
        ]
        if not self._same_keys:
            read = [frozenset(p for p, own in each.items() if own is not None) for each in keys]
            if any(read):
                yield None, read
            return
        asked = [each for each in dict.fromkeys(chain(*(k.values() for k in keys))) if each]
        for key in asked:
            yield key, [frozenset(p for p, own in each.items() if own == key) for each in keys]

    def _symbol(
        self,
        ports: list[frozenset[str]],
        truth: Mapping[Expression, bool],
        event: Event | None,
        author: str | None,
    ) -> Symbol:
        atoms = tuple(
            behaviour.atoms(names, truth)
            for behaviour, names in zip(self._behaviours, ports, strict=True)
        )
        return Symbol(tuple(ports), atoms, event, author)


def _key(port: EventPort, scope: Scope, keys: Iterable[Key]) -> tuple[Any, ...] | None:
    values = []
    for key in keys:
        name = key.name if isinstance(key, CommonKey) else dict(key.parts).get(port.name, "")
        value = scope.lookup((name,))
        if value is MISSING or isinstance(value, list | dict):
            return None
        values.append((isinstance(value, bool), value))
    return tuple(values)


_Symbols = dict[object, dict[tuple[object, ...], Symbol]]
"""The symbols under each key, by what they match and satisfy."""


def _keep(sets: _Symbols, key: object, symbol: Symbol) -> None:
    sets.setdefault(key, {}).setdefault((symbol.ports, symbol.atoms), symbol)


def _guesses(free: list[int]) -> Iterator[dict[int, bool]]:
    for count in range(len(free) + 1 if free else 0):
        for true in combinations(free, count):
            yield {each: each in true for each in free}
