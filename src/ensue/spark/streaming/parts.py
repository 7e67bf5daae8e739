"""The keys of a bucket in parts, of which a micro-batch reads and writes those that it needs.

A part has the saved states of the keys that hash to its number (`key_states`). It is read for the
events of its keys, and when the first of its timers is due or the windows of its keys have passed;
so a micro-batch costs what its events cost, however many keys are held. The number of parts grows
with the bytes in them by linear hashing: a part in turn gives some of its keys to a new part.

What must be known of all parts is in `SavedParts`: when each of them is due, and how large it is.
Rules may change between two micro-batches. Then a part keeps its state until it is next read, and
loses what belongs to rules that have changed since it was written (`Era`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import msgspec
import numpy as np

from ensue.engine.batch.key_states import KeyColumns, plain_hashes, split_plain
from ensue.engine.batch.saved_states import ColumnState
from ensue.engine.core.jit import FAR
from ensue.engine.core.numbering import Instants, Rows, distinct
from ensue.engine.core.saved_rules import SavedRule
from ensue.errors import SnapshotError
from ensue.machine.records import MachineRecord
from ensue.spark.streaming.checkpoint.signing import signed, unsigned

RULES_OF_A_PART = 16
"""So many rules make a part twice as large, since each takes some bytes beside its keys."""
BYTES_OF_A_KEY = 256
"""Parts whose keys take more than this are not split for it, since most of it may be overhead."""
SPLITS_OF_OTHERS = 8
"""How many parts a micro-batch splits at the most that it has not read anyway."""

RuleState = KeyColumns | SavedRule
"""The open state of a rule under some keys, in columns or as plain data."""


class Era(msgspec.Struct):
    """The time between two changes of rules; `valid` names the rules unchanged since then."""

    valid: list[str]


class SavedParts(msgspec.Struct):
    """What a bucket knows of all its parts.

    `due`, `ends` (of windows), `sizes` (in bytes) and `keys` (their number) have a 64-bit integer
    for each part. `text` is that of the rules of the last era. `forms` has for rules with plain
    states their form and the machine that they run on, `clock` the time that engines have come to,
    and `read` and `apart` are those of `SavedStream`. `by_events` names the rules that have left
    their columns.
    """

    count: int
    due: bytes
    ends: bytes
    sizes: bytes
    keys: bytes
    text: str
    eras: list[Era]
    rule_bytes: dict[str, int] = {}
    forms: dict[str, tuple[str, MachineRecord | None]] = {}
    clock: int | None = None
    read: int = 1
    apart: bool = False
    by_events: list[str] = []


class _StateOfRule(msgspec.Struct, array_like=True, omit_defaults=True):
    columns: ColumnState | None = None
    plain: SavedRule | None = None


class _Part(msgspec.Struct, array_like=True):
    """The part of an era, with the bytes of each rule."""

    era: int
    rules: dict[str, bytes]


class Value(Protocol):
    """What Spark's `ValueState` is to us."""

    def exists(self) -> bool: ...
    def get(self) -> tuple[Any, ...]: ...
    def update(self, newValue: tuple[Any, ...]) -> None: ...  # noqa: N803


class ByNumber(Protocol):
    """What Spark's `MapState` is to us, by one integer."""

    def getValue(self, key: tuple[int]) -> tuple[Any, ...] | None: ...  # noqa: N802
    def updateValue(self, key: tuple[int], value: tuple[Any, ...]) -> None: ...  # noqa: N802
    def removeKey(self, key: tuple[int]) -> None: ...  # noqa: N802


class SignedMap:
    """Bytes by number in Spark's state store, each signed for its place; counts what it does."""

    def __init__(self, held: ByNumber, key: bytes | None, place: str) -> None:
        self._held, self._key, self._place = held, key, place
        self.read = self.written = 0

    def get(self, number: int) -> bytes:
        """Raises `SnapshotError` if it is missing, or not ours."""
        found = self._held.getValue((number,))
        if found is None:
            raise SnapshotError(f"the checkpoint is damaged: it lacks {self._named(number)}")
        self.read += 1
        return unsigned(bytes(found[0]), self._key, self._named(number))

    def put(self, number: int, data: bytes) -> None:
        self.written += 1
        self._held.updateValue((number,), (signed(data, self._key, self._named(number)),))

    def drop(self, number: int) -> None:
        self._held.removeKey((number,))

    def _named(self, number: int) -> str:
        return f"{self._place} {number}"


class Waits(Protocol):
    """What is known of rules about when keys have to be looked at again."""

    def due(self, rule: SavedRule, now: int) -> int: ...

    def windows_end(self, now: int, part: int, parts: int) -> int: ...


def parts_of(hashes: Instants, count: int) -> Rows:
    """The part of each key: the low bits of its hash, one more where a part is split already."""
    # The lowest bits have chosen the bucket.
    bits = hashes >> 20
    low = 1 << (count.bit_length() - 1)
    parts = bits & (low - 1)
    return np.where(parts < count - low, bits & (2 * low - 1), parts)


def _parent(part: int) -> int:
    """The part that gives some of its keys to a new part."""
    return part - (1 << (part.bit_length() - 1))


class Parts:
    """The parts of one bucket in one micro-batch."""

    def __init__(
        self, store: SignedMap, saved: SavedParts, bytes_of_a_part: int, is_keyed: bool
    ) -> None:
        self._store = store
        self.saved = saved
        self._is_keyed = is_keyed
        self._due = np.frombuffer(saved.due, np.int64).copy()
        self._ends = np.frombuffer(saved.ends, np.int64).copy()
        self._sizes = np.frombuffer(saved.sizes, np.int64).copy()
        self._keys = np.frombuffer(saved.keys, np.int64).copy()
        arrays = (self._due, self._ends, self._sizes, self._keys)
        lengths = {saved.count, *map(len, arrays)}
        if len(lengths) > 1 or not saved.count or not saved.eras:
            raise SnapshotError("the checkpoint is damaged: it has parts of which nothing is known")
        rules = len(saved.eras[-1].valid)
        self._most_bytes = bytes_of_a_part * (1 + rules / RULES_OF_A_PART)
        self._loaded: dict[int, _Part | None] = {}

    @classmethod
    def new(cls, text: str, rules: Iterable[str]) -> SavedParts:
        far = np.array([FAR], np.int64).tobytes()
        nothing = np.zeros(1, np.int64).tobytes()
        return SavedParts(1, far, far, nothing, nothing, text, [Era(list(rules))])

    def close(self) -> SavedParts:
        """What is to be kept. Where many parts are empty, the last ones of them go."""
        count, held = len(self._sizes), np.flatnonzero(self._sizes)
        wanted = 4 * int(self._sizes.sum()) / self._most_bytes
        while count > 1 and count > wanted and (not held.size or held[-1] < count - 1):
            count -= 1
        arrays = (self._due, self._ends, self._sizes, self._keys)
        due, ends, sizes, keys = (each[:count].tobytes() for each in arrays)
        return msgspec.structs.replace(
            self.saved, count=count, due=due, ends=ends, sizes=sizes, keys=keys
        )

    def needed(self, hashes: Instants | None, reads: bool, now: int) -> list[int]:
        """The parts of events with these keys, and those that are due."""
        due = np.flatnonzero((self._due <= now) | (self._ends <= now))
        if not reads:
            return [int(each) for each in due]
        if hashes is None or not self._is_keyed:
            return [0]
        found = distinct(np.append(parts_of(hashes, len(self._due)), due))
        return [int(each) for each in found]

    def load(self, numbers: Sequence[int]) -> dict[str, list[RuleState]]:
        """The states of rules under the keys of these parts."""
        states: dict[str, list[RuleState]] = {}
        self._loaded = {}
        for number in numbers:
            for name, state in self._open(number):
                states.setdefault(name, []).append(state)
        return states

    def _open(self, number: int) -> Iterator[tuple[str, RuleState]]:
        if not self._sizes[number]:
            self._loaded[number] = None
            return
        try:
            part = msgspec.msgpack.decode(self._store.get(number), type=_Part)
            valid = self.saved.eras[part.era].valid
            self._loaded[number] = part
            for name, data in part.rules.items():
                if name in valid:
                    yield name, _opened(data)
        except (msgspec.DecodeError, IndexError) as error:
            raise SnapshotError(f"the checkpoint is damaged: {error}") from None

    def save(
        self,
        states: Mapping[str, RuleState],
        read_by: Instants | None,
        now: int,
        waits: Waits,
    ) -> None:
        """Put the states of rules under all keys of the parts that were loaded into parts again.

        `read_by` has the keys of events that were read.
        """
        split = [states]
        if self._is_keyed:
            split += self._split_further(states)
        count = len(self._due)
        made: dict[int, dict[str, bytes]] = {}
        due: dict[int, int] = {}
        keys: dict[int, int] = {}
        for own in split:
            for name, state in own.items():
                for number, part in _split(state, count if self._is_keyed else 0):
                    made.setdefault(number, {})[name] = _closed(part)
                    moment = part.due() if isinstance(part, KeyColumns) else waits.due(part, now)
                    due[number] = min(due.get(number, FAR), moment)
                    keys[number] = max(keys.get(number, 0), len(part.keys))
        touched: set[int] = set()
        if read_by is not None:
            touched |= set(distinct(parts_of(read_by, count)).tolist()) if self._is_keyed else {0}
        for number in sorted(self._loaded.keys() | made.keys()):
            self._write(number, made.get(number, {}))
            self._due[number] = due.get(number, FAR)
            self._keys[number] = keys.get(number, 0)
            before = self._loaded.get(number)
            is_same = before is not None and before.rules == made.get(number)
            if number in made and (number in touched or not is_same):
                self._ends[number] = waits.windows_end(now, number, count)
            elif number not in made or self._ends[number] <= now:
                self._ends[number] = FAR
        self._loaded = {}

    def _write(self, number: int, rules: dict[str, bytes]) -> None:
        before = self._loaded.get(number)
        era = len(self.saved.eras) - 1
        held = self.saved.rule_bytes
        if before is not None:
            valid = self.saved.eras[before.era].valid
            for name, data in before.rules.items():
                held[name] = held.get(name, 0) - len(data) * (name in valid)
        for name, data in rules.items():
            held[name] = held.get(name, 0) + len(data)
        self._sizes[number] = sum(map(len, rules.values()))
        if not rules:
            if before is not None:
                self._store.drop(number)
        elif before is None or before.rules != rules or before.era != era:
            self._store.put(number, msgspec.msgpack.encode(_Part(era, rules)))

    def _split_further(self, states: Mapping[str, RuleState]) -> list[dict[str, RuleState]]:
        """Grow the number of parts with their bytes; returns what other parts have to be split."""
        others: list[dict[str, RuleState]] = []
        elsewhere = np.ones(len(self._due), np.bool_)
        elsewhere[list(self._loaded)] = False
        size = int(self._sizes[elsewhere].sum()) + sum(map(_size, states.values()))
        keys = max((len(each.keys) for each in states.values()), default=0)
        keys += int(self._keys[elsewhere].sum())
        count = len(self._due)
        wanted = min(size, keys * BYTES_OF_A_KEY) / self._most_bytes
        while count < wanted:
            parent = _parent(count)
            if parent not in self._loaded and parent < len(self._due):
                if len(others) == SPLITS_OF_OTHERS:
                    break
                others.append(dict(self._open(parent)))
            # Else its keys are at hand, or those of the part that it comes from.
            count += 1
        new = count - len(self._due)
        self._due = np.append(self._due, np.full(new, FAR))
        self._ends = np.append(self._ends, np.full(new, FAR))
        self._sizes = np.append(self._sizes, np.zeros(new, np.int64))
        self._keys = np.append(self._keys, np.zeros(new, np.int64))
        return others

    def clear(self) -> None:
        """Forget all keys."""
        for number in np.flatnonzero(self._sizes).tolist():
            self._store.drop(number)
        self._sizes[:] = self._keys[:] = 0
        self._due[:] = self._ends[:] = FAR
        self.saved.rule_bytes = {}


def _opened(data: bytes) -> RuleState:
    state = msgspec.msgpack.decode(data, type=_StateOfRule)
    if state.columns is not None:
        return KeyColumns.of(state.columns)
    if state.plain is None:
        raise msgspec.ValidationError("a rule has no state")
    return state.plain


def _closed(state: RuleState) -> bytes:
    if isinstance(state, KeyColumns):
        return msgspec.msgpack.encode(_StateOfRule(columns=state.encode()))
    return msgspec.msgpack.encode(_StateOfRule(plain=state))


def _size(state: RuleState) -> int:
    """About how many bytes a state has when it is written."""
    if isinstance(state, KeyColumns):
        return len(state.state.keys) + len(state.state.kept)
    return len(msgspec.msgpack.encode(state))


def _split(state: RuleState, count: int) -> Iterable[tuple[int, RuleState]]:
    """A state by parts; with a count of 0 there is one part for all of it."""
    if isinstance(state, KeyColumns):
        if not len(state.keys):
            return []
        return state.split(parts_of(state.hashes, count)) if count else [(0, state)]
    if not state.keys:
        return []
    return split_plain(state, parts_of(plain_hashes(state), count)) if count else [(0, state)]
