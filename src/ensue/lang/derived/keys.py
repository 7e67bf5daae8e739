"""What a key is called: the attributes that stand for it.

In come the keys after `by`; out go the names by which an event or an output has each of them. An
attribute of an ECL output that is named like a key is filled with it, for ECL carries no data.
"""

from __future__ import annotations

from collections.abc import Sequence

from ensue.lang.syntax import CommonKey, Key


def key_places(by: Sequence[Key]) -> dict[str, int]:
    """Every name of a key, with the place of that key; the first key has a name before others."""
    places: dict[str, int] = {}
    for place, key in enumerate(by):
        names = [key.name] if isinstance(key, CommonKey) else [name for _, name in key.parts]
        for name in names:
            places.setdefault(name, place)
    return places
