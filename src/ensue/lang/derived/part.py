"""A part of a library: some correlations, and those whose outputs reach them.

In comes a checked library and the names of correlations whose outputs are wanted; out goes a
library with these and the ones before them, which are internal there: what they put out is read,
and goes nowhere else.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ensue.lang.checked import CheckedLibrary
from ensue.lang.derived.wiring import needed_for, readers_of
from ensue.lang.syntax import LibraryTree


def part_of(library: CheckedLibrary, names: Collection[str]) -> CheckedLibrary:
    """The library with the outputs of some of its correlations only."""
    tree = library.tree
    needed = needed_for(names, tree.correlations)
    kept = tuple(
        each if each.name in names else replace(each, role="internal")
        for each in tree.correlations
        if each.name in needed
    )
    return replace(
        library,
        tree=LibraryTree((*tree.types, *kept)),
        written=None,
        feeds=readers_of(kept),
        warnings=(),
    )
