"""The saved states of rules, taken apart and put together by keys.

In comes what an engine has saved of a rule: a table of keys and one of the events that are bound
(`KeyColumns`), or plain data for each key (`SavedRule`). Both can be cut into the states of groups
of keys, each of which stands alone, and such states can be joined again, whichever of them are
needed. So keys can lie in many parts, of which few are read at a time.

What is said here of when a key has to be looked at again may be too early, and never too late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ensue.engine.batch.input.column import attribute_column
from ensue.engine.batch.input.key_hashes import hashes_of_columns, hashes_of_keys
from ensue.engine.batch.saved_states import ColumnState, SavedEvents, arrow_bytes, arrow_table
from ensue.engine.core.instances.keys import whole_key
from ensue.engine.core.jit import FAR
from ensue.engine.core.numbering import Instants, Rows, distinct
from ensue.engine.core.saved_rules import SavedExtra, SavedKey, SavedRule, restore_key
from ensue.engine.ports import Key, key_value
from ensue.errors import SnapshotError

Marked = tuple[str, Any]


@dataclass(frozen=True)
class KeyColumns:
    """The state of a rule in columns, open: see `ColumnState`."""

    state: ColumnState
    keys: pa.Table
    general: list[Key] | None
    kept: pa.Table
    objects: Mapping[str, list[Marked]]
    packed: pa.Table | None

    @classmethod
    def of(cls, state: ColumnState) -> KeyColumns:
        general = state.general_keys
        objects = {
            name: msgspec.msgpack.decode(data, type=list[Marked])
            for name, data in state.objects.items()
        }
        return cls(
            state,
            arrow_table(state.keys),
            None if general is None else msgspec.msgpack.decode(general, type=list[Key]),
            arrow_table(state.kept),
            objects,
            None if state.packed is None else arrow_table(state.packed),
        )

    def encode(self, write: Callable[[pa.Table], bytes] = arrow_bytes) -> ColumnState:
        pack = msgspec.msgpack.encode
        return msgspec.structs.replace(
            self.state,
            keys=write(self.keys),
            general_keys=None if self.general is None else pack(self.general),
            kept=write(self.kept),
            objects={name: pack(values) for name, values in self.objects.items()},
            packed=None if self.packed is None else write(self.packed),
        )

    @property
    def hashes(self) -> Instants:
        if self.general is not None:
            return hashes_of_keys(self.general)
        column = attribute_column(self.keys.column("key").combine_chunks())
        if column is None:
            raise SnapshotError("the checkpoint is damaged: a rule has keys that are none")
        return hashes_of_columns([column])

    @property
    def kept_count(self) -> int:
        if self.kept.num_columns:
            return len(self.kept)
        return len(next(iter(self.objects.values()))) if self.objects else 0

    @property
    def places(self) -> list[str]:
        return [name for name in self.keys.schema.names if name.startswith("place ")]

    def due(self) -> int:
        """When the first of its timers is due; `FAR` if none is."""
        timers = [name for name in self.keys.schema.names if name.startswith("due ")]
        found = [pc.min(self.keys.column(name)).as_py() for name in timers]
        return int(min([FAR, *(each for each in found if each is not None)]))

    def split(self, parts: Rows) -> Iterator[tuple[int, KeyColumns]]:
        """The states of the keys of each part; `parts` has the part of each key."""
        order = np.argsort(parts, kind="stable")
        found, firsts = np.unique(parts[order], return_index=True)
        ends = np.append(firsts[1:], len(order))
        rank = np.searchsorted(found, parts[order])
        keys = self.keys.take(pa.array(order)).combine_chunks()
        # A firing of a timer may be bound under keys of several parts: each keeps it.
        size = self.kept_count + 1
        bound = {name: _numbers(keys.column(name)) for name in self.places}
        owned = {name: np.where(at >= 0, rank * size + at, -1) for name, at in bound.items()}
        pairs = distinct(np.concatenate([np.empty(0, np.int64), *owned.values()]))
        pairs = pairs[pairs >= 0]
        begins = np.searchsorted(pairs, np.append(np.arange(len(found)), len(found)) * size)
        for name, owner in owned.items():
            at = np.searchsorted(pairs, owner) - begins[rank]
            place = pa.array(at.astype(np.int32), mask=owner < 0)
            keys = keys.set_column(keys.schema.get_field_index(name), name, place)
        kept_rows = pairs % size
        kept = self.kept.take(pa.array(kept_rows)) if self.kept.num_columns else self.kept
        kept = kept.combine_chunks()
        packed = None if self.packed is None else self.packed.take(pa.array(kept_rows))
        new = np.empty(len(order), np.int64)
        new[order] = np.arange(len(order)) - firsts[rank]
        counted: dict[int, list[tuple[int, str, int]]] = {}
        for key, trigger, number in self.state.counted:
            counted.setdefault(int(parts[key]), []).append((int(new[key]), trigger, number))
        for number, (part, first, end) in enumerate(
            zip(found.tolist(), firsts.tolist(), ends.tolist(), strict=True)
        ):
            begin, stop = int(begins[number]), int(begins[number + 1])
            rows = order[first:end].tolist()
            general = None if self.general is None else [self.general[row] for row in rows]
            own = self.state
            if own.counted:
                own = msgspec.structs.replace(own, counted=counted.get(part, []))
            yield (
                part,
                KeyColumns(
                    own,
                    _ranked(keys.slice(first, end - first)),
                    general,
                    kept.slice(begin, stop - begin) if kept.num_columns else kept,
                    {
                        name: [values[row] for row in kept_rows[begin:stop].tolist()]
                        for name, values in self.objects.items()
                    },
                    None if packed is None else packed.slice(begin, stop - begin),
                ),
            )


def _numbers(column: pa.ChunkedArray) -> Rows:
    """Numbers of rows, -1 for null."""
    found: Rows = column.cast(pa.int64()).fill_null(-1).to_numpy()
    return found


def _ranked(keys: pa.Table) -> pa.Table:
    """The order of the last events of keys, which counts among these keys only."""
    if "number" not in keys.schema.names:
        return keys
    order = np.argsort(keys.column("number").to_numpy(), kind="stable")
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return keys.set_column(keys.schema.get_field_index("number"), "number", pa.array(ranks))


def joined_columns(states: Sequence[KeyColumns]) -> KeyColumns:
    """One state of the keys of all states."""
    if len(states) == 1:
        return states[0]
    if any(each.general is not None for each in states) or len(_kinds_of_keys(states)) > 1:
        states = [_with_general_keys(each) for each in states]
    names = list(dict.fromkeys(name for each in states for name in each.kept.schema.names))
    objects = {name for each in states for name in each.objects}
    objects |= {name for name in names if len(_types(states, name)) > 1}
    moments = [each.state.counted_at for each in states if each.state.counted]
    latest = max((each for each in moments if each is not None), default=None)
    sets: dict[tuple[int, ...], int] = {}
    keys, kept, counted = [], [], []
    values: dict[str, list[Marked]] = {name: [] for name in sorted(objects)}
    packed: list[pa.Table] = []
    first_key = first_kept = 0
    for each in states:
        table = each.keys
        for name in each.places:
            place = pc.add(table.column(name).cast(pa.int64()), first_kept).cast(pa.int32())
            table = table.set_column(table.schema.get_field_index(name), name, place)
        if not each.state.stepped:
            codes = [sets.setdefault(tuple(own), len(sets)) for own in each.state.states]
            state = np.array(codes, np.uint32)[table.column("state").to_numpy()]
            table = table.set_column(
                table.schema.get_field_index("state"), "state", pa.array(state, pa.uint32())
            )
        if "key" in table.schema.names and pa.types.is_large_string(table.schema.field("key").type):
            at = table.schema.get_field_index("key")
            table = table.set_column(at, "key", table.column("key").cast(pa.string()))
        keys.append(table)
        count = each.kept_count
        for name, held in values.items():
            held += _marked(each, name, count)
        plain = [name for name in each.kept.schema.names if name not in objects]
        if plain:
            kept.append(each.kept.select(plain))
        elif count:
            others = [name for name in names if name not in objects]
            kept += [pa.table({name: pa.nulls(count) for name in others[:1]})] if others else []
        if each.packed is not None:
            packed.append(each.packed)
        if latest is not None and each.state.counted_at == latest:
            counted += [(key + first_key, id_, n) for key, id_, n in each.state.counted]
        first_key += len(each.keys)
        first_kept += count
    state = msgspec.structs.replace(
        states[0].state, states=[list(each) for each in sets], counted_at=latest, counted=counted
    )
    general = None
    if states[0].general is not None:
        general = [key for each in states for key in each.general or ()]
    return KeyColumns(
        state,
        pa.concat_tables(keys, promote_options="default"),
        general,
        pa.concat_tables(kept, promote_options="default") if kept else pa.table({}),
        values,
        pa.concat_tables(packed) if packed else None,
    )


def _kinds_of_keys(states: Sequence[KeyColumns]) -> set[bool]:
    return {pa.types.is_integer(each.keys.schema.field("key").type) for each in states}


def _types(states: Sequence[KeyColumns], name: str) -> set[pa.DataType]:
    found = {s.kept.schema.field(name).type for s in states if name in s.kept.schema.names}
    return {each for each in found if not pa.types.is_null(each)}


def _marked(state: KeyColumns, name: str, count: int) -> list[Marked]:
    """Values as the objects of a saved state are written."""
    if name in state.objects:
        return list(state.objects[name])
    if name not in state.kept.schema.names:
        return [("-", None)] * count
    column = attribute_column(state.kept.column(name).combine_chunks())
    if column is None:
        raise SnapshotError(f"the checkpoint is damaged: `{name}` of its events has no kind")
    missing = column.missing_mask().tolist()
    pairs = zip(column.to_list(), missing, strict=True)
    return [("-", None) if gone else ("=", value) for value, gone in pairs]


def _with_general_keys(state: KeyColumns) -> KeyColumns:
    if state.general is not None:
        return state
    general: list[Key] = [(key_value(each),) for each in state.keys.column("key").to_pylist()]
    return replace(state, keys=state.keys.drop_columns(["key"]), general=general)


# --- plain data -----------------------------------------------------------------------------------


def plain_hashes(rule: SavedRule) -> Instants:
    return hashes_of_keys([whole_key(restore_key(key)) for key, _, _ in rule.keys])


def split_plain(rule: SavedRule, parts: Rows) -> Iterator[tuple[int, SavedRule]]:
    """The states of the keys of each part; `parts` has the part of each key."""
    members: dict[int, list[int]] = {}
    for at, part in enumerate(parts.tolist()):
        members.setdefault(part, []).append(at)
    for part, rows in members.items():
        numbers: dict[int, int] = {}
        keys = []
        for at in rows:
            key, state, places = rule.keys[at]
            keys.append((key, numbers.setdefault(state, len(numbers)), places))
        yield (
            part,
            msgspec.structs.replace(
                rule,
                states=[rule.states[number] for number in numbers],
                keys=keys,
                extras={n: rule.extras[at] for n, at in enumerate(rows) if at in rule.extras},
            ),
        )


def joined_plain(rules: Sequence[SavedRule]) -> SavedRule:
    """One state of the keys of all states."""
    sets: dict[tuple[int, ...], int] = {}
    keys: list[tuple[SavedKey, int, Any]] = []
    extras: dict[int, SavedExtra] = {}
    for rule in rules:
        codes = [sets.setdefault(tuple(each), len(sets)) for each in rule.states]
        extras |= {at + len(keys): extra for at, extra in rule.extras.items()}
        keys += [(key, codes[state], places) for key, state, places in rule.keys]
    forms = {rule.form for rule in rules}
    form = "linear" if len(forms) > 1 else rules[0].form
    states = [list(each) for each in sets]
    return msgspec.structs.replace(rules[0], form=form, states=states, keys=keys, extras=extras)


def plain_due(rule: SavedRule, timeouts: Sequence[int], now: int) -> int:
    """When one of its keys may have to be called next; `FAR` if time alone changes nothing.

    `timeouts` are the durations of a rule that works by what it remembers: each begins with a
    reading that is remembered.
    """
    found = [FAR]
    for extra in rule.extras.values():
        found += [*extra.due.values(), *extra.timeouts.values()]
        for branch in extra.branches or ():
            times = [time for time, _, _ in branch.readings]
            found += [time + after for time in times for after in timeouts if time + after > now]
    return min(found)


def open_state(data: bytes) -> KeyColumns | SavedEvents:
    """What the batch engine has saved of a rule."""
    try:
        return KeyColumns.of(msgspec.msgpack.decode(data, type=ColumnState))
    except msgspec.ValidationError:
        return msgspec.msgpack.decode(data, type=SavedEvents)
