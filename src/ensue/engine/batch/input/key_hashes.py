"""Numbers of keys that are equal for equal keys in every process, by which keys are spread.

In come keys, as `ensue.engine.ports` has them or in columns; out goes a hash for each. Keys of one
text and keys of one whole number are hashed by compiled loops, whatever form they come in; any
other key by the text of its values. States that are kept go by these numbers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ensue.engine.batch.input.column import Column, Texts, attribute_column
from ensue.engine.batch.input.keys import hash_text, head_of, plain_column, tail_of
from ensue.engine.core.jit import compiled
from ensue.engine.core.numbering import MULTIPLIER, Instants
from ensue.engine.ports import Key, key_value
from ensue.lang.expressions.evaluation import MISSING
from ensue.lang.expressions.values import LARGEST_INTEGER, SMALLEST_INTEGER


@compiled
def _hash_texts(texts: Any, out: Any) -> None:
    data, offsets = texts
    for at in range(out.size):
        begin = np.int64(offsets[at])
        end = np.int64(offsets[at + 1])
        head, tail = head_of(data, begin, end), tail_of(data, begin, end)
        out[at] = hash_text(data, begin, end, head, tail)


def hash_texts(texts: pa.Array) -> npt.NDArray[np.uint64]:
    """Hashes that are equal for equal texts in every process; saved states go by them."""
    out = np.empty(len(texts), np.uint64)
    if out.size:
        _hash_texts(Texts.of(texts), out)
    return out


def hash_integers(values: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """As `hash_texts`, of 64-bit integers."""
    mixed = values.astype(np.int64).view(np.uint64) * MULTIPLIER
    mixed = (mixed ^ (mixed >> np.uint64(32))) * MULTIPLIER
    return mixed ^ (mixed >> np.uint64(32))


def bucket_of(key: Key) -> int:
    """A number that is equal for equal keys in every process."""
    return int(hashes_of_keys([key])[0])


def hashes_of_keys(keys: Sequence[Key]) -> Instants:
    """`bucket_of` for each key: of one text, of one integer, or of the text of any other key."""
    column = plain_column(keys) if keys else None
    plain = None if column is None else attribute_column(column)
    if plain is not None:
        return hashes_of_columns([plain])
    return np.fromiter(map(_general_hash, keys), np.int64, len(keys))


def hashes_of_columns(columns: Sequence[Column]) -> Instants:
    """As `hashes_of_keys`, of keys in columns; where a value is missing, any number."""
    if len(columns) == 1 and columns[0].kind in ("string", "integer"):
        values = columns[0].values
        found = hash_texts(values) if columns[0].kind == "string" else hash_integers(values)
        return _positive(found)
    known: dict[Key, int] = {}
    hashes = np.zeros(len(columns[0]), np.int64)
    for row, values in enumerate(zip(*(each.to_list() for each in columns), strict=True)):
        if not any(value is MISSING or isinstance(value, list | dict) for value in values):
            key = tuple(key_value(value) for value in values)
            if key not in known:
                known[key] = _general_hash(key)
            hashes[row] = known[key]
    return hashes


def _positive(hashes: Any) -> Instants:
    found: Instants = (hashes >> np.uint64(1)).astype(np.int64)
    return found


def _general_hash(key: Key) -> int:
    # One text or one whole number as in a column of such keys. To rules, 1 and 1.0 are one key.
    if len(key) == 1:
        kind: str
        value: Any
        ((kind, value),) = key
        if kind == "str":
            return int(_positive(hash_texts(pa.array([value], pa.string())))[0])
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        is_whole = kind == "number" and isinstance(value, int)
        if is_whole and SMALLEST_INTEGER <= value <= LARGEST_INTEGER:
            return int(_positive(hash_integers(np.array([value], np.int64)))[0])
    text = repr([_plain(kind, value) for kind, value in key])
    digest = hashlib.blake2b(text.encode(), digest_size=7)
    return int.from_bytes(digest.digest(), "big")


def _plain(kind: str, value: Any) -> tuple[str, str]:
    is_whole = isinstance(value, float) and value.is_integer()
    return kind, str(int(value) if is_whole else value)
