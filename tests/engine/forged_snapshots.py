"""Snapshots that were changed on purpose, with a digest that is right again.

In comes a snapshot and a seed; out goes another, in which one field, at any depth, is another
value: a number that there is none of, a text, a list cut short, a byte of an Arrow stream. Bytes
that hold msgpack or Arrow themselves are opened, changed inside and closed again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from random import Random
from typing import Any

import msgspec
import pyarrow as pa

Place = tuple[Any, ...]

NUMBERS = (0, 1, -1, 2, 7, 255, 2**31, -(2**31), 2**62, -(2**62), 2**63 - 1, -(2**63))
OTHERS: tuple[Any, ...] = (None, True, "", "x", "A", [], {}, b"", 1.5, [0], {"x": 1})


def forged(snapshot: bytes, seed: int) -> bytes:
    """The snapshot with one thing changed, or two."""
    random = Random(seed)
    head, version, _, body, *rest = msgspec.msgpack.decode(snapshot)
    for _ in range(random.choice((1, 1, 1, 2))):
        body = changed(body, random)
    digest = hashlib.sha256(body).digest()
    return msgspec.msgpack.encode([head, version, digest, body, *rest])


def changed(data: bytes, random: Random) -> bytes:
    """Bytes of a state with one thing in them changed, however deep it stands."""
    opened = _opened(data)
    if opened is None:
        return _changed_bytes(data, random)
    if isinstance(opened, pa.Table):
        return _changed_arrow(data, opened, random)
    places = list(_places(opened, ()))
    if not places:
        return _changed_bytes(data, random)
    place = random.choice(places)
    value = _at(opened, place)
    if isinstance(value, bytes) and value and random.random() < 0.9:
        new: Any = changed(value, random)
    else:
        new = _other(value, random)
    return msgspec.msgpack.encode(_with(opened, place, new))


def _opened(data: bytes) -> Any:
    try:
        return pa.ipc.open_stream(data).read_all()
    except (pa.ArrowException, OSError):
        pass
    try:
        found = msgspec.msgpack.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return found if isinstance(found, list | dict) else None


def _places(value: Any, here: Place) -> Iterator[Place]:
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for name, each in inner:
        yield (*here, name)
        if isinstance(each, list | dict):
            yield from _places(each, (*here, name))


def _at(value: Any, place: Place) -> Any:
    for name in place:
        value = value[name]
    return value


def _with(value: Any, place: Place, new: Any) -> Any:
    holder = _at(value, place[:-1])
    holder[place[-1]] = new
    return value


def _other(value: Any, random: Random) -> Any:
    if random.random() < 0.2:
        return random.choice(OTHERS)
    match value:
        case bool():
            return not value
        case int():
            near = [value + 1, value - 1, -value, value * 1000]
            return random.choice([*NUMBERS, *(n for n in near if -(2**63) <= n < 2**63)])
        case str():
            return random.choice(["", value + "x", value[:-1], "deadline", "table", "linear"])
        case list() if value:
            at = random.randrange(len(value))
            return random.choice(
                [value[:at], value[at:], value + value, value[::-1], [*value, value[at]]]
            )
        case dict() if value:
            name = random.choice(list(value))
            return random.choice([{k: v for k, v in value.items() if k != name}, {**value, "x": 1}])
        case bytes():
            return _changed_bytes(value, random) if value else b"x"
    return random.choice(OTHERS)


def _changed_bytes(data: bytes, random: Random) -> bytes:
    if not data:
        return b"x"
    at = random.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :]


def _changed_arrow(data: bytes, table: pa.Table, random: Random) -> bytes:
    if random.random() < 0.3 or not table.num_columns:
        return _changed_bytes(data, random)
    at = random.randrange(table.num_columns)
    name, column = table.schema.names[at], table.column(at)
    choice = random.random()
    if choice < 0.1:
        table = table.drop_columns([name])
    elif choice < 0.2:
        table = table.slice(0, random.randrange(len(table) + 1))
    elif choice < 0.3:
        table = pa.concat_tables([table, table])
    elif choice < 0.4:
        table = table.set_column(at, name, pa.nulls(len(table)))
    elif choice < 0.5:
        table = table.rename_columns([*table.schema.names[:at], "x", *table.schema.names[at + 1 :]])
    elif len(table):
        values = column.to_pylist()
        row = random.randrange(len(values))
        values[row] = random.choice([None, _other(values[row], random)])
        try:
            other = pa.array(values, column.type)
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            other = pa.nulls(len(values), column.type)
        table = table.set_column(at, name, other)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())
