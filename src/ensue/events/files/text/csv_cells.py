"""The records of a block of CSV, and their cells in columns.

A block that is quoted as `csv` of Python wants it in its strict form is cut into records by its
quotes and line breaks, and parsed by `pyarrow.csv`; its odd rows (with another number of cells, or
no UTF-8) are flagged. Any other block is read record by record by `csv`, the judge of what a record
is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from ensue.errors import EventError
from ensue.events.bounds import Bounds
from ensue.events.files.chunk import Mask, Rows
from ensue.events.files.text.lines import LINE_BREAK, places_of
from ensue.events.records.text_record import CsvRecords

_QUOTE, _RETURN = ord('"'), ord("\r")


class Dialect(NamedTuple):
    """What a block is read by: its delimiter, the number of its columns, and bounds."""

    delimiter: str
    width: int
    bounds: Bounds


class Records(NamedTuple):
    """Records that are not blank, and their cells.

    For each record: its begin, its end, the number of its first line, and whether it is flagged:
    then it has no cells here. `used` is the end of the last record, and `lines` the number of lines
    up to there. `is_all` says that the rest of the block has no complete record.
    """

    begins: Rows
    ends: Rows
    numbers: Rows
    flagged: Mask
    cells: list[pa.Array]
    used: int
    lines: int
    is_all: bool

    def first(self, count: int) -> Records:
        """The records before one that is not read."""
        cells = [each[:count] for each in self.cells]
        begins, ends = self.begins[:count], self.ends[:count]
        numbers, flagged = self.numbers[:count], self.flagged[:count]
        used, lines = int(self.begins[count]), int(self.numbers[count]) - 1
        return Records(begins, ends, numbers, flagged, cells, used, lines, False)


class LinesOf:
    """The lines of a block, and the numbers of lines and bytes that have been taken."""

    def __init__(self, block: bytes) -> None:
        self._block = block
        self.used = 0
        self.count = 0

    def __iter__(self) -> Iterator[bytes]:
        while self.used < len(self._block):
            end = self._block.find(b"\n", self.used) + 1 or len(self._block)
            line = self._block[self.used : end]
            self.used = end
            self.count += 1
            yield line


def records_of(block: bytes, dialect: Dialect, is_last: bool, most: int | None) -> Records:
    """The first complete records of a block, `most` of them.

    A record that does not end in the block is left out, unless the block is the last.
    """
    ends = _ends(block, dialect, is_last)
    found = None if ends is None else _in_columns(block, dialect, ends, most)
    return _one_by_one(block, dialect, is_last, most) if found is None else found


def _ends(block: bytes, dialect: Dialect, is_last: bool) -> Rows | None:
    """The ends of records; None if the quotes or line breaks of the block are not regular."""
    if b"\0" in block or (b"\r" in block and block.count(b"\r") != block.count(b"\r\n")):
        return None
    data = np.frombuffer(block, np.uint8)
    breaks = places_of(LINE_BREAK, data)
    if b'"' in block:
        quotes = places_of(_QUOTE, data)
        if not _are_regular(data, quotes, ord(dialect.delimiter)):
            return None
        if is_last and len(quotes) % 2:
            return None
        breaks = breaks[np.searchsorted(quotes, breaks) % 2 == 0]
    ends = breaks + 1
    if is_last and len(block) and (not len(ends) or ends[-1] < len(block)):
        ends = np.append(ends, len(block))
    return ends


def _are_regular(data: Any, quotes: Rows, delimiter: int) -> bool:
    """Whether quotes open at the begin of a cell, and close at its end or are doubled."""
    before = np.zeros(256, np.bool_)
    before[[delimiter, LINE_BREAK]] = True
    behind = before.copy()
    behind[_RETURN] = True
    is_opening = np.arange(len(quotes)) % 2 == 0
    follows = np.zeros(len(quotes), np.bool_)
    follows[1:] = np.diff(quotes) == 1
    opens_well = before[data[quotes - 1]] | (quotes == 0) | follows
    is_followed = np.append(follows[1:], False)
    is_end = quotes == len(data) - 1
    closes_well = behind[data[np.minimum(quotes + 1, len(data) - 1)]] | is_end | is_followed
    return bool(np.where(is_opening, opens_well, closes_well).all())


def _in_columns(block: bytes, dialect: Dialect, ends: Rows, most: int | None) -> Records | None:
    """The records parsed by `pyarrow.csv`; None if this reads them otherwise."""
    is_all = True
    data = np.frombuffer(block, np.uint8)
    begins = np.append(0, ends[:-1]) if len(ends) else ends
    used = int(ends[-1]) if len(ends) else 0
    kept = _not_blank(data, begins, ends)
    if most is not None and len(kept) > most:
        kept, is_all = kept[:most], False
        used = int(ends[kept[-1]])
    breaks = places_of(LINE_BREAK, data[:used])
    lines = len(breaks) + int(used > 0 and block[used - 1] != LINE_BREAK)
    begins, ends = begins[kept], ends[kept]
    numbers = np.searchsorted(breaks, begins) + 1
    flagged = _not_utf8(block[:used], begins, ends)
    text = block[:used]
    if flagged.any():
        good = np.flatnonzero(~flagged).tolist()
        text = b"".join(block[begins[row] : ends[row]] for row in good)
    odd: list[int] = []
    cells = _parsed(text, dialect, odd) if len(text) and not flagged.all() else []
    whole = np.flatnonzero(~flagged)
    if odd:
        if odd[-1] > len(whole):
            return None
        flagged[whole[np.array(odd) - 1]] = True
        whole = np.flatnonzero(~flagged)
    if cells is None or (cells and len(cells[0]) != len(whole)):
        return None
    if not cells:
        cells = [pa.nulls(len(kept), pa.string())] * dialect.width
    elif flagged.any():
        places = np.cumsum(~flagged) - 1
        index = pa.array(places, mask=flagged)
        cells = [each.take(index) for each in cells]
    if dialect.width == 1 and _has_blank(cells[0], flagged):
        return None
    return Records(begins, ends, numbers, flagged, cells, used, lines, is_all)


def _not_blank(data: Any, begins: Rows, ends: Rows) -> Rows:
    """The places of records that are more than a line break."""
    lengths = ends - begins
    first = data[begins]
    is_blank = (lengths == 1) & (first == LINE_BREAK)
    is_blank |= (lengths == 2) & (first == _RETURN)
    return np.flatnonzero(~is_blank)


def _has_blank(cells: pa.Array, flagged: Mask) -> bool:
    """Whether a record of one cell is nothing but space, which is no record."""
    lengths = np.asarray(pc.fill_null(pc.binary_length(pc.utf8_trim_whitespace(cells)), 1))
    return bool(((lengths == 0) & ~flagged).any())


def _parsed(text: bytes, dialect: Dialect, odd: list[int]) -> list[pa.Array] | None:
    """The cells in columns; `odd` are the numbers of records with more or fewer cells."""
    names = [str(number) for number in range(dialect.width)]
    has_blank = False

    def skip(row: Any) -> str:
        nonlocal has_blank
        # A line of nothing but space is no record.
        has_blank |= not row.text.strip().strip('"').strip()
        odd.append(row.number)
        return "skip"

    try:
        table = pcsv.read_csv(
            pa.BufferReader(text),
            pcsv.ReadOptions(column_names=names, use_threads=False, block_size=len(text) + 1),
            pcsv.ParseOptions(
                delimiter=dialect.delimiter,
                newlines_in_values=True,
                invalid_row_handler=skip,
            ),
            pcsv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                strings_can_be_null=False,
                check_utf8=False,
            ),
        )
    except pa.ArrowException:
        return None
    if has_blank:
        return None
    return [column.combine_chunks() for column in table.columns]


def _not_utf8(block: bytes, begins: Rows, ends: Rows) -> Mask:
    """The records whose bytes are no UTF-8."""
    wrong = np.zeros(len(begins), np.bool_)
    if block.isascii():
        return wrong
    try:
        block.decode()
    except UnicodeDecodeError:
        for row, (begin, end) in enumerate(zip(begins.tolist(), ends.tolist(), strict=True)):
            try:
                block[begin:end].decode()
            except UnicodeDecodeError:
                wrong[row] = True
    return wrong


def _one_by_one(block: bytes, dialect: Dialect, is_last: bool, most: int | None) -> Records:
    """The records as `csv` reads them, one after the other."""
    lines = LinesOf(block)
    records = CsvRecords(lines, dialect.delimiter, dialect.bounds)
    begins, ends, numbers, rows = [], [], [], list[list[str] | None]()
    used = counted = 0
    is_all = True
    while most is None or len(rows) < most:
        cells: list[str] | None = None
        has_failed = False
        try:
            cells = records.next()
        except EventError:
            has_failed = True
        if cells is None and not has_failed:
            # Blank lines; one that has not ended yet may become a record.
            used = len(block) if is_last else block.rfind(b"\n") + 1
            counted = lines.count - int(used < len(block))
            break
        is_at_end = lines.used == len(block)
        if is_at_end and not is_last and (has_failed or not block.endswith(b"\n")):
            break
        begins.append(lines.used - records.size)
        ends.append(lines.used)
        numbers.append(records.number)
        rows.append(cells)
        used, counted = lines.used, lines.count
    else:
        is_all = False
    at = np.array(begins, np.int64), np.array(ends, np.int64), np.array(numbers, np.int64)
    flagged = _not_utf8(block[:used], at[0], at[1])
    flagged |= np.array([each is None or len(each) != dialect.width for each in rows], np.bool_)
    whole = [None if bad else row for row, bad in zip(rows, flagged.tolist(), strict=True)]
    cells_of = [
        pa.array([None if row is None else row[column] for row in whole], pa.string())
        for column in range(dialect.width)
    ]
    return Records(*at, flagged, cells_of, used, counted, is_all)
