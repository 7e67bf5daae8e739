"""Typed columns from places in a block of bytes.

In come, for each row, the place and the form of a value; out go an Arrow array, and the rows whose
value was not read. A value that is read here is exactly what `conformance` and
`columns.convert_text` make of it; rows with other values are left to them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ensue.events.arrow_types import arrow_type
from ensue.events.files.chunk import Mask
from ensue.events.kernels import json_lines, texts
from ensue.events.kernels.values import parse_whole_numbers
from ensue.events.kernels.words import WORD, words_of
from ensue.events.mapping.instants import TIME, instants_in, times_in_text
from ensue.events.types import ValueType

_REAL = r"^-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"


class Typed(NamedTuple):
    """A column; `unread` are the rows with a value that the column does not have."""

    column: pa.Array
    unread: Mask


@dataclass(frozen=True)
class ValuePlaces:
    """The places of the values of one name. `kinds` is for JSON, `quoted` for CSV.

    `present` are the rows with a value that is not null.
    """

    data: Any
    begins: Any
    ends: Any
    present: Mask
    kinds: Any = None
    quoted: Any = None

    def __len__(self) -> int:
        return len(self.begins)

    def typed(self, type_: ValueType, zone: ZoneInfo | None) -> Typed:
        """The column of an attribute of a type."""
        if not self.present.any():
            return Typed(pa.nulls(len(self), arrow_type(type_)), np.zeros(len(self), np.bool_))
        match type_.kind:
            case "integer":
                found = self._whole_numbers()
            case "real":
                found = self._reals()
            case "boolean":
                found = self._booleans()
            case "timestamp":
                found = self.times(zone)
            case _:
                found = self.texts()
        wanted = arrow_type(type_)
        if found.column.type == wanted or type_.kind == "integer":
            # The range of integers is checked later, by their type.
            return found
        return Typed(found.column.cast(wanted), found.unread)

    def texts(self) -> Typed:
        """The values as a column of text."""
        is_text = self._is_kind(json_lines.TEXT, json_lines.ESCAPED)
        column, wrong = self._copied(is_text)
        return Typed(column, (self.present & ~is_text) | wrong)

    def written(self) -> tuple[pa.Array, Mask]:
        """Texts and numbers as they are written, and the rows that have one."""
        kinds = (json_lines.TEXT, json_lines.ESCAPED, json_lines.WHOLE, json_lines.REAL)
        is_written = self._is_kind(*kinds)
        column, wrong = self._copied(is_written)
        return column, is_written & ~wrong

    def times(self, zone: ZoneInfo | None, unit: str | None = None) -> Typed:
        """Times from RFC 3339 text, or from numbers in a unit."""
        if unit is not None:
            column, is_written = self.written()
            found = instants_in(column, unit, None)
            unread = (self.present & ~is_written) | found.unread
            gone = ~self.present | unread
            return Typed(pa.array(found.values, pa.int64(), mask=gone).cast(TIME), unread)
        is_text = self._is_kind(json_lines.TEXT) & self._is_plain()
        values, unread = times_in_text(self.data, self.begins, self.ends, zone)
        gone = unread | ~is_text
        return Typed(pa.array(values, pa.int64(), mask=gone).cast(TIME), self.present & gone)

    def _whole_numbers(self) -> Typed:
        values, ok = np.empty(len(self), np.int64), np.empty(len(self), np.bool_)
        parse_whole_numbers(self.data, self.begins, self.ends, values, ok)
        ok &= self._is_kind(json_lines.WHOLE) & self._is_plain()
        return Typed(pa.array(values, mask=~ok), self.present & ~ok)

    def _reals(self) -> Typed:
        ok = self._is_kind(json_lines.WHOLE, json_lines.REAL) & self._is_plain()
        column, _ = self._copied(ok)
        try:
            return Typed(column.cast(pa.float64()), self.present & ~ok)
        except pa.ArrowInvalid:
            matches = pc.fill_null(pc.match_substring_regex(column, _REAL), False)
            held = pc.if_else(matches, column, pa.scalar(None, column.type)).cast(pa.float64())
            return Typed(held, self.present & ~np.asarray(matches))

    def _booleans(self) -> Typed:
        if self.kinds is not None:
            ok = self._is_kind(json_lines.TRUE, json_lines.FALSE)
            return Typed(pa.array(self.kinds == json_lines.TRUE, mask=~ok), self.present & ~ok)
        column, _ = self._copied(self.present)
        lowered = pc.ascii_lower(column)
        true = np.asarray(pc.fill_null(pc.equal(lowered, "true"), False))
        ok = true | np.asarray(pc.fill_null(pc.equal(lowered, "false"), False))
        return Typed(pa.array(true, mask=~ok), self.present & ~ok)

    def _is_kind(self, *kinds: int) -> Mask:
        if self.kinds is None:
            return self.present
        found: Mask = self.kinds == kinds[0]
        for kind in kinds[1:]:
            found |= self.kinds == kind
        return found

    def _is_plain(self) -> Any:
        return True if self.quoted is None else ~self.quoted

    def _copied(self, wanted: Mask) -> tuple[pa.Array, Mask]:
        """The bytes of wanted rows as texts, null in others; and the rows that were not read."""
        if self.kinds is not None:
            how = (self.kinds == json_lines.ESCAPED).astype(np.uint8) * texts.JSON_ESCAPES
        else:
            how = self.quoted.astype(np.uint8) * texts.DOUBLED_QUOTES
        size = texts.total_length(self.begins, self.ends, wanted)
        out, offsets = np.empty(size + WORD, np.uint8), np.empty(len(self) + 1, np.int32)
        wrong = np.zeros(len(self), np.bool_)
        used = texts.copy_texts(
            (self.data, words_of(self.data)),
            self.begins,
            self.ends,
            wanted,
            how,
            (out, words_of(out)),
            offsets,
            wrong,
        )
        valid = None
        if not wanted.all() or wrong.any():
            valid = pa.array(wanted & ~wrong).buffers()[1]
        buffers = [valid, pa.py_buffer(offsets), pa.py_buffer(out[:used])]
        return pa.Array.from_buffers(pa.string(), len(self), buffers), wrong
