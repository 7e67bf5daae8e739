"""Pairs of rules whose relation is known because of how they were made, drawn at random.

A rule is rewritten by laws that change nothing, in one language or from one into the other. Then
branches are added that wait for ports which the rule does not have: each puts out where the other
rule does not, at the end of a witness whose length is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import pytest

from . import rules

PAIRS = 25
PORTS = "A a, B b, C c, D d from 'y', D e from 'z'".replace("'", '"')
NAMES = "abc"


@dataclass(frozen=True)
class Tree:
    """A port, or parts joined by a sign."""

    sign: str
    parts: tuple[Tree, ...] = ()

    def __str__(self) -> str:
        if not self.parts:
            return self.sign
        return f"({f' {self.sign} '.join(map(str, self.parts))})"

    @property
    def ecl(self) -> str:
        if not self.parts:
            return self.sign
        word = {"+": "accumulate", "|": "select", ";": "sequential"}[self.sign]
        return f"{word} {{ {', '.join(part.ecl for part in self.parts)} }}"


def drawn(random: Random, depth: int = 3) -> Tree:
    if depth == 0 or random.random() < 0.2:
        return Tree(random.choice(NAMES))
    parts = tuple(drawn(random, depth - 1) for _ in range(2))
    return Tree(random.choice("+|;"), parts)


def rewritten(x: Tree, random: Random) -> Tree:
    """The tree after a few laws were applied to parts of it; a window changes none of them."""
    if x.parts:
        x = Tree(x.sign, tuple(rewritten(part, random) for part in x.parts))
    return law(x, random) if random.random() < 0.6 else x


def law(x: Tree, random: Random) -> Tree:
    if not x.parts:
        beside = Tree(random.choice(NAMES))
        absorbed = [
            Tree("|", (x, Tree("+", (x, beside)))),
            Tree("+", (x, Tree("|", (beside, x)))),
            Tree("|", (Tree(";", (x, beside, x)), x)),
            Tree("+", (x, x)),
        ]
        return random.choice(absorbed)
    one, other = x.parts[0], x.parts[-1]
    if x.sign != ";" and random.random() < 0.5:
        return Tree(x.sign, x.parts[::-1])
    if x.sign in "+;" and len(x.parts) == 2 and other.sign == "|":
        return Tree("|", tuple(Tree(x.sign, (one, each)) for each in other.parts))
    if x.sign in "+;" and len(x.parts) == 2 and one.sign == "|":
        return Tree("|", tuple(Tree(x.sign, (each, other)) for each in one.parts))
    if x.sign == "+" and len(x.parts) == 2 and not one.parts and not other.parts and one != other:
        return Tree("|", (Tree(";", (one, other)), Tree(";", (other, one))))
    if x.sign == "|":
        return Tree("|", (*x.parts, Tree("+", x.parts)))
    return x


def check(first: str, second: str, relation: str, lengths: list[int]) -> None:
    library = rules.library(first, second, PORTS)
    found = rules.compare_in(library)

    assert (found.relation, found.reason) == (relation, None), (first, second)
    assert [len(each) for each in found.witnesses] == lengths, (first, second)
    rules.verify(library, found)


@pytest.mark.parametrize("window", ["", "within 5 s"])
def test_a_rule_is_equal_to_itself_rewritten(window: str) -> None:
    for seed in range(PAIRS):
        random = Random(seed)
        x = drawn(random)
        again = rewritten(x, random)

        check(f"{x} => {window}", f"{again} => {window}", "equivalent", [])


def test_a_rule_is_equal_to_itself_rewritten_in_the_other_language() -> None:
    for seed in range(100, 100 + PAIRS):
        random = Random(seed)
        x = drawn(random)
        again = rewritten(x, random)

        check(f"{x}", f"ecl repeat {{ notify {{ {again.ecl} }} }}", "equivalent", [])


@pytest.mark.parametrize("window", ["", "within 5 s"])
def test_branches_for_events_of_their_own_tell_rules_apart_in_known_steps(window: str) -> None:
    """A branch beside a rule puts out whatever the rule does; it is shown by its shortest match."""
    for seed in range(200, 200 + PAIRS):
        random = Random(seed)
        x = drawn(random, 2)
        again = rewritten(x, random)
        count, other = random.randint(1, 4), random.randint(1, 4)

        more = f"{again} || d{{{count}}} => {window}"
        check(f"{x} => {window}", more, "contained", [count])
        check(more, f"{x} => {window}", "contains", [count])
        check(more, f"e{{{other}}} || {x} => {window}", "different", [count, other])


def test_parts_beside_an_expression_tell_it_apart_in_known_steps() -> None:
    for seed in range(300, 300 + PAIRS):
        random = Random(seed)
        x = drawn(random, 2)
        again = rewritten(x, random)
        count = random.randint(1, 4)
        beside = f"sequential {{ {', '.join(['d'] * count)}, notify {{ e }} }}"
        both = f"ecl parallel {{ repeat {{ notify {{ {again.ecl} }} }}, {beside} }}"

        check(f"{x}", both, "contained", [count + 1])


def test_a_narrower_case_is_contained_and_the_missing_label_is_the_witness() -> None:
    """Of `l1:x | l2:d{n}` what `case l1` leaves out is that the other label completes."""
    for seed in range(400, 400 + PAIRS):
        random = Random(seed)
        x = drawn(random, 2)
        again = rewritten(x, random)
        count = random.randint(1, 4)
        narrow = f"l1:{x} | l2:d{{{count}}} => {{ case l1: push new Out {{}}; }}"
        wide = f"{again} | d{{{count}}}"
        unless = f"do {{ {again.ecl} }} unless {{ sequential {{ {', '.join(['d'] * count)} }} }}"

        check(narrow, wide, "contained", [count])
        if count > 1:
            check(narrow, f"ecl repeat {{ notify {{ {unless} }} }}", "equivalent", [])
