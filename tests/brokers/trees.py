"""Random trees of brokers, filters and events, and what one broker would deliver."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from ensue.brokers import Broker, link
from ensue.events.event import Event
from ensue.history import History
from ensue.knowledge import Ontology
from ensue.subscriptions import Filter

WINES = ["HouseRed", "HouseWhite", "wine:Barolo", "Claret", "beer"]
CONCEPTS = ["RedWine", "WhiteWine", "Wine", "Nebbiolo", "Claret"]


def random_tree(random: Random, size: int, make: Callable[[str], Broker]) -> list[Broker]:
    """Brokers linked to a tree, in a random order."""
    brokers = [make(f"b{number}") for number in range(size)]
    pairs = [(random.randrange(number), number) for number in range(1, size)]
    random.shuffle(pairs)
    for one, other in pairs:
        link(brokers[one], brokers[other])
    return brokers


def random_filter(random: Random, with_concepts: bool = False) -> str:
    count = random.choice([1, 1, 2, 3])
    terms = [_term(random, with_concepts) for _ in range(count)]
    return f" {random.choice(['AND', 'AND', 'OR'])} ".join(terms)


def random_temporal_filter(random: Random) -> str:
    inner = random_filter(random)
    if random.random() < 0.3:
        inner = f"({inner}) AND start AFTER(3 s) ({_term(random, False)})"
    term = random.choice(
        [
            f"start AFTER({random.randint(1, 8)} s) ({inner})",
            f"start AFTER({random.randint(2, 9)} s, 2 TIMES) ({inner})",
            f"n FILTER({random.choice(['<', '=', '>'])}, {random.randint(1, 4)}) ({inner})",
            f"NOT start AFTER(4 s) ({inner})",
        ]
    )
    sign = random.choice(["AND", "OR", "XOR"])
    return random.choice([term, f"{_term(random, False)} {sign} {term}", f"NOT ({term})"])


def _term(random: Random, with_concepts: bool) -> str:
    if with_concepts and random.random() < 0.5:
        word = random.choice(["IS_A", "IS_A", "SUBSUMES", "SAME_AS"])
        concept = random.choice(CONCEPTS)
        return random.choice([f"wine {word} {concept}", "ONTPROP<hasColor>(wine) = Red"])
    number = random.randrange(10)
    return random.choice(
        [
            f"n {random.choice(['<', '<=', '>', '>=', '=', '!='])} {number}",
            f"n > {number}",
            f"s = '{random.choice('abc')}'",
            f"s LIKE '{random.choice('abc')}%'",
            "EXISTS s",
            f"NOT n < {number}",
            f"n IN ({number}, {number + 2})",
        ]
    )


def random_event(random: Random, number: int) -> Event:
    data: dict[str, Any] = {}
    if random.random() < 0.9:
        data["n"] = random.randrange(10)
    if random.random() < 0.8:
        data["s"] = random.choice(["a", "b", "c", "ab", "ca"])
    if random.random() < 0.8:
        data["wine"] = random.choice(WINES)
    return Event(str(number), "test", "E", number * 1_000_000, data)


class OneBroker:
    """The definition: every filter is asked of every event, over one history of all of them."""

    def __init__(self, history: History | None = None, ontology: Ontology | None = None) -> None:
        self.filters: dict[str, Filter] = {}
        self._history, self._ontology = history, ontology

    def publish(self, event: Event) -> set[str]:
        found = {
            name
            for name, each in self.filters.items()
            if each.matches(event, self._history, self._ontology)
        }
        if self._history is not None:
            self._history.add(event)
        return found
