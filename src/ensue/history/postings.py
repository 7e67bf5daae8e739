"""Keys under which a store finds publications by the values of their attributes.

In comes an event; out go its keys, one for each name that a filter can ask for: the name, and the
value in a form whose bytes sort as the values do. Values that CESQL may find equal after a cast
(`5`, `5.0` and `'5'`; `true` and `'TRUE'`) have one key, so that a search by key finds every
publication that could match, and perhaps others. What really matches is told by the filter itself.
"""

from __future__ import annotations

import re
import struct
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final, NamedTuple

from ensue.events.event import CONTEXT, Event
from ensue.lang.expressions.values import FaultError, to_number

LONGEST_NAME: Final = 120
LONGEST_VALUE: Final = 64
"""In bytes; the rest of a longer text is left to the filter."""
MOST_NAMES: Final = 64
"""Names of one publication that have a key. One with more of them is found by `OVERFLOW` too."""

_NUMBER: Final = b"\x01"
_TEXT: Final = b"\x02"
_OTHER: Final = b"\x03"
_LAST: Final = b"\xff"
OVERFLOW: Final = b"\x00"
_UNLISTED: Final = frozenset(
    {"id", "time", "specversion", "phase", "endtime", "timeuntil", "endtimeuntil"}
)
_FLAT: Final = frozenset({str, int, float, bool, type(None)})
_pack = struct.Struct(">Q").pack
_double = struct.Struct(">d").pack
_integer = struct.Struct(">Q").unpack


class KeyRange(NamedTuple):
    """The keys from `low` to `high`, both included; one key where they are equal."""

    low: bytes
    high: bytes


def keys_of(event: Event) -> list[bytes]:
    """The keys of a publication, each once."""
    keys = [_key("type", event.type), _key("source", event.source)]
    extensions = event.extensions
    for name, value in extensions.items():
        if name not in _UNLISTED and value is not None:
            keys.append(_key(name, value))
    data = event.data
    if isinstance(data, Mapping):
        # An attribute of CloudEvents hides one of the data.
        hidden = CONTEXT.union(extensions) if extensions else CONTEXT
        _list_data(data, "", hidden, keys)
    if len(keys) > MOST_NAMES:
        keys[MOST_NAMES:] = [OVERFLOW]
    return list(dict.fromkeys(keys))


def entries_of(events: Iterable[Event], first: int) -> dict[bytes, list[int]]:
    """The numbers of publications under each of their keys; `first` is that of the first.

    Data with the same names are taken column by column, and values are gathered before keys are
    made of them, since most of them come often.
    """
    entries: defaultdict[bytes, list[int]] = defaultdict(list)
    gathered: _Gathered = defaultdict(lambda: defaultdict(list))
    groups, others = _groups(list(events), first)
    for numbers, alike in groups:
        columns = _columns(alike)
        if columns is None:
            others += zip(numbers, alike, strict=True)
            continue
        for name, column in columns.items():
            _gather(numbers, column, gathered[name])
    for number, event in others:
        for key in keys_of(event):
            entries[key].append(number)
    for name, values in gathered.items():
        for value, found in values.items():
            if value is None:
                continue
            key = _key(name, value)
            # Values that share a key, as `5` and `'5'`, have come apart.
            entries[key] = [*entries[key], *found] if key in entries else found
    if len(groups) > 1 or others or len(entries) < sum(map(len, gathered.values())):
        return {key: sorted(set(numbers)) for key, numbers in entries.items()}
    return entries


_Gathered = defaultdict[str, defaultdict[str | float | None, list[int]]]
"""By name and value, the numbers of publications."""


def _groups(
    events: list[Event], first: int
) -> tuple[list[tuple[Sequence[int], list[Event]]], list[tuple[int, Event]]]:
    """Events whose data have the same names, with their numbers; and those without plain data."""
    groups: defaultdict[frozenset[str], tuple[list[int], list[Event]]]
    groups = defaultdict(lambda: ([], []))
    others: list[tuple[int, Event]] = []
    for number, event in enumerate(events, first):
        data = event.data
        if event.extensions or type(data) is not dict:
            others.append((number, event))
        else:
            numbers, alike = groups[frozenset(data)]
            numbers.append(number)
            alike.append(event)
    return list(groups.values()), others


def alike_columns(events: list[Event]) -> dict[str, list[Any]] | None:
    """The values that have keys, by name; None unless all events have the same names.

    None too where there are extensions, or values that are nested, or too many of them.
    """
    if not events or [event for event in events if event.extensions]:
        return None
    data = [event.data for event in events]
    if set(map(type, data)) != {dict} or len(set(map(len, data))) > 1:
        return None
    try:
        return _columns(events, data)
    except KeyError:
        return None


def key_of_value(name: str, value: str | float | None) -> bytes | None:
    """The key of a value of a column; None has none."""
    return None if value is None else _key(name, value)


def _columns(
    alike: list[Event], data: list[dict[str, Any]] | None = None
) -> dict[str, list[Any]] | None:
    """The values that have keys, by name; None where values are nested, or too many."""
    data = [event.data for event in alike] if data is None else data
    names = tuple(data[0])
    if len(names) > MOST_NAMES - 2:
        return None
    columns = {name: list(map(itemgetter(name), data)) for name in names}
    if not all(_FLAT.issuperset(map(type, each)) for each in columns.values()):
        return None
    # An attribute of CloudEvents hides one of the data.
    for hidden in CONTEXT:
        columns.pop(hidden, None)
    columns["type"] = [event.type for event in alike]
    columns["source"] = [event.source for event in alike]
    return columns


def _gather(
    numbers: Sequence[int],
    column: list[str | float | None],
    under: defaultdict[str | float | None, list[int]],
) -> None:
    """Add numbers under the values of a column."""
    if column.count(column[0]) == len(column):
        under[column[0]] += numbers
        return
    for number, value in zip(numbers, column, strict=True):
        under[value].append(number)


def _list_data(
    data: Mapping[str, Any], above: str, hidden: AbstractSet[str], keys: list[bytes]
) -> None:
    for name, value in data.items():
        if len(keys) > MOST_NAMES:
            return
        if value is None or (not above and name in hidden):
            continue
        keys.append(_key(above + name, value))
        if type(value) is dict:
            _list_data(value, f"{above}{name}.", hidden, keys)


def _key(name: str, value: Any) -> bytes:
    kind = type(value)
    if kind is str:
        # A long text would stay in memory with its key.
        is_short = len(value) <= LONGEST_VALUE
        return _scalar_key(name, value) if is_short else _prefix(name) + _encoded_text(value)
    if kind is int or kind is float or kind is bool:
        return _scalar_key(name, value)
    return _prefix(name) + _OTHER


@lru_cache(maxsize=16_384)
def _scalar_key(name: str, value: str | float) -> bytes:
    """The key of a text or a number. Numbers that are equal (`1`, `1.0`, `true`) have one key."""
    return _prefix(name) + encoded(value)


def encoded(value: Any) -> bytes:
    """A value as bytes that sort as numbers do; texts that are no numbers follow, cut off."""
    kind = type(value)
    if kind is str:
        return _encoded_text(value)
    if kind is int or kind is float or kind is bool:
        return _NUMBER + sortable(_as_double(value))
    return _OTHER


def _encoded_text(text: str) -> bytes:
    if _is_number(text):
        with suppress(FaultError):
            return _NUMBER + sortable(float(to_number(text)))
    elif len(text) <= 5 and text.lower() in ("true", "false"):
        return _NUMBER + sortable(float(text.lower() == "true"))
    return _TEXT + text.encode("utf-8", "surrogatepass")[:LONGEST_VALUE]


_is_number = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?").fullmatch
_NUMERIC_STARTS = frozenset("+-0123456789")


def sortable(number: float) -> bytes:
    """Eight bytes that sort as doubles do; both zeros are one."""
    bits: int = _integer(_double(number + 0.0))[0]
    return _pack(bits ^ (0xFFFFFFFFFFFFFFFF if bits >> 63 else 0x8000000000000000))


def is_listed(name: tuple[str, ...]) -> bool:
    """Whether publications have keys for a name."""
    return len(name) > 1 or name[0].lower() not in _UNLISTED


def at_value(name: tuple[str, ...], value: Any) -> list[KeyRange]:
    """Where publications are found whose value may be equal to a constant."""
    return [
        KeyRange(prefix + encoded(value), prefix + encoded(value)) for prefix in _prefixes(name)
    ] + [_OVERFLOWN]


def between(name: tuple[str, ...], low: float, high: float) -> list[KeyRange]:
    """Where publications are found whose value may be a number of a range."""
    return [
        KeyRange(prefix + _NUMBER + sortable(low), prefix + _NUMBER + sortable(high))
        for prefix in _prefixes(name)
    ] + [_OVERFLOWN]


def beginning(name: tuple[str, ...], text: str) -> list[KeyRange] | None:
    """Where texts are found that begin so; None where numbers or booleans may begin so too."""
    if not text or text[0] in _NUMERIC_STARTS or text[0] in "tTfF":
        return None
    start = _TEXT + text.encode("utf-8", "surrogatepass")[:LONGEST_VALUE]
    return [KeyRange(prefix + start, prefix + start + _LAST * 4) for prefix in _prefixes(name)] + [
        _OVERFLOWN
    ]


def present(name: tuple[str, ...]) -> list[KeyRange]:
    """Where publications are found that have a value of any kind."""
    return [KeyRange(prefix, prefix + _LAST) for prefix in _prefixes(name)] + [_OVERFLOWN]


_OVERFLOWN = KeyRange(OVERFLOW, OVERFLOW)


def _prefixes(name: tuple[str, ...]) -> list[bytes]:
    # A name that is no attribute of the data is looked for once more in lower case.
    spellings = [".".join(name)]
    if len(name) == 1 and name[0].lower() != name[0]:
        spellings.append(name[0].lower())
    return [_prefix(each) for each in spellings]


@lru_cache(maxsize=4096)
def _prefix(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")[:LONGEST_NAME] + b"\x00"


def _as_double(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
