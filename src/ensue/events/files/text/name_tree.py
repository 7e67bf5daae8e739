"""The wanted names of JSON lines, as a tree for the scanner.

In come paths; each has a number, its slot. Out go arrays for `kernels.json_lines`. A path that is
added twice has one slot.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ensue.events.kernels.json_lines import CLASHING, MIXED, NO_SLOT


class NameTree:
    """Paths from the members of a line down, each with a slot."""

    def __init__(self) -> None:
        self._children: list[dict[str, int]] = [{}]
        self._slots = [NO_SLOT]
        self.slots = 0

    def add(self, path: Sequence[str]) -> int:
        """Add a path of names to the tree; returns the slot of its values."""
        node = self._node(path)
        if self._slots[node] < 0:
            self._slots[node] = self.slots
            self.slots += 1
        return self._slots[node]

    def forbid(self, name: str) -> None:
        """Let the scanner mark lines with a member of this name."""
        if name not in self._children[0]:
            self._slots[self._node([name])] = CLASHING

    def _node(self, path: Sequence[str]) -> int:
        node = 0
        for name in path:
            if name not in self._children[node]:
                self._children[node][name] = len(self._children)
                self._children.append({})
                self._slots.append(NO_SLOT)
            node = self._children[node][name]
        return node

    def arrays(self, data_path: str) -> tuple[Any, int]:
        """The tree for the scanner, and the number of the node of `data_path` in it."""
        order = [0]
        for node in order:
            order += self._children[node].values()
        child_begins = np.zeros(len(order) + 1, np.int64)
        names: list[bytes] = []
        for place, node in enumerate(order):
            child_begins[place] = len(names)
            names += [name.encode() for name in self._children[node]]
        child_begins[len(order)] = len(names)
        name_begins = np.cumsum([0, *map(len, names)])
        digests = np.array([_digest(name) for name in names], np.uint64)
        below = [self._below(node) for node in order]
        below_begins = np.cumsum([0, *map(len, below)])
        tree = (
            child_begins,
            digests,
            name_begins,
            np.frombuffer(b"".join(names) or b"\0", np.uint8),
            np.array([self._slots[node] for node in order], np.int64),
            np.zeros(len(order), np.int64),
            below_begins,
            np.array([slot for slots in below for slot in slots] or [0], np.int64),
        )
        found = self._children[0].get(data_path)
        return tree, -1 if found is None else order.index(found)

    def _below(self, node: int) -> list[int]:
        slots = []
        for child in self._children[node].values():
            if self._slots[child] >= 0:
                slots.append(self._slots[child])
            slots += self._below(child)
        return slots


def _digest(name: bytes) -> int:
    """The digest of a name, as in the scanner's `digest_of`."""
    first = int.from_bytes(name[:8], "little")
    last = int.from_bytes(name[-8:], "little") if len(name) > 8 else 0
    return (first ^ last * MIXED) & 0xFFFF_FFFF_FFFF_FFFF
