"""Which ports of many rules an event matches at a site: each distinct predicate is asked once.

In come the rules that have an outpost at the site; out goes, for an event, which of their ports it
matches. A few predicates are asked one by one, and many through the index of `lang.matching`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping

from ensue.engine.ports import Ports
from ensue.events.event import Event
from ensue.events.types import TypeSystem
from ensue.lang.expressions import Expression
from ensue.lang.expressions.evaluation import holds
from ensue.lang.expressions.nesting import nodes_in
from ensue.lang.expressions.tree import Term
from ensue.lang.matching.index import PredicateIndex
from ensue.lang.syntax import Correlation, EventPort

FEWEST_TO_INDEX = 24
"""From so many distinct predicates on an index is worth what it takes to prepare it."""


class SitePredicates:
    """The predicates of all rules at one site."""

    def __init__(self, rules: Mapping[str, Correlation], types: TypeSystem) -> None:
        self._ports = {name: _AskedPorts(rule, types) for name, rule in rules.items()}
        wheres = [where for each in self._ports.values() for where in each.wheres.values()]
        numbers: dict[Expression, int] = {}
        for where in wheres:
            if not _asks_others(where):
                numbers.setdefault(where, len(numbers))
        self._index: PredicateIndex | None = None
        if len(numbers) >= FEWEST_TO_INDEX:
            self._index = PredicateIndex()
            for where, number in numbers.items():
                self._index.add(number, where)
            for each in self._ports.values():
                each.numbers = {
                    port: numbers[where] for port, where in each.wheres.items() if where in numbers
                }
        self._asking: dict[int, list[str]] = defaultdict(list)
        """The rules that ask each predicate of the index."""
        self._others: list[str] = []
        """The rules that have a port without one."""
        for name, ports in self._ports.items():
            for number in set(ports.numbers.values()):
                self._asking[number].append(name)
            if len(ports.numbers) < len(ports.key_names):
                self._others.append(name)

    def ports(self, rule: str) -> Ports:
        return self._ports[rule]

    def matched(
        self, event: Event, rules: Collection[str], author: str | None = None
    ) -> Iterator[tuple[str, list[str]]]:
        """The rules with a port that an event matches, each with these ports in their order.

        `author` is the correlation that has put the event out, if one has.
        """
        if self._index is None or not rules:
            for rule in rules:
                if found := self._ports[rule].matched(event, author):
                    yield rule, found
            return
        holding = frozenset(self._index.match(event))
        asking = {rule for number in holding for rule in self._asking[number]}
        for rule in asking.union(self._others).intersection(rules):
            if found := self._ports[rule].among(event, author, holding):
                yield rule, found


class _AskedPorts(Ports):
    """The ports of a rule, with the numbers under which their predicates are indexed."""

    def __init__(self, rule: Correlation, types: TypeSystem) -> None:
        super().__init__(rule, types)
        events = [port for port in rule.ports if isinstance(port, EventPort)]
        self.wheres = {port.name: port.where for port in events if port.where is not None}
        self.numbers: Mapping[str, int] = {}

    def among(self, event: Event, author: str | None, holding: frozenset[int]) -> list[str]:
        found = []
        for port in self.fitting(event, author):
            number = self.numbers.get(port)
            if number is not None:
                if number in holding:
                    found.append(port)
            elif port not in self.wheres or holds(self.wheres[port], event):
                found.append(port)
        return found


def _asks_others(predicate: Expression) -> bool:
    """Whether a predicate has a term that an ontology or a list of names answers."""
    return any(isinstance(each, Term) for each in nodes_in(predicate))
