"""The names of keys: the attributes of events that are keys.

In come the keys after `by`; out go the names of each key. An attribute of an ECL output with the
name of a key is filled with the key, since ECL carries no other data.
"""

from __future__ import annotations

from collections.abc import Sequence

from ensue.lang.syntax import CommonKey, Key


def key_places(by: Sequence[Key]) -> dict[str, int]:
    """Every name of a key with the place of the key; a name of several keys is of the first."""
    places: dict[str, int] = {}
    for place, key in enumerate(by):
        names = [key.name] if isinstance(key, CommonKey) else [name for _, name in key.parts]
        for name in names:
            places.setdefault(name, place)
    return places
