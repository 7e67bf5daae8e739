"""The scanner of CSV: it finds the places of the cells of each record in a block of bytes.

In come bytes that begin with a record; out go, for each record, the places of the record and of its
cells. The dialect is that of Python's `csv` in its strict form. A record with another number of
cells, with a quote or a line break at a wrong place, or with a NUL is flagged, and ends where
Python ends it; it is then read singly.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ensue.events.kernels.compiling import inner, uncounted
from ensue.events.kernels.words import HIGHEST, ONES, first_marked, marks_of, repeated

BEYOND_ASCII = 4


_LINE_BREAKS, _RETURNS, _QUOTES = map(repeated, b'\n\r"')


@inner
def end_of_cell(data: Any, words: Any, place: int, size: int, delimiter: int) -> Any:
    """The next byte that may end an unquoted cell, or is a NUL or beyond ASCII."""
    delimiters = ONES * np.uint64(delimiter)
    while place + 8 <= size:
        word = words[place]
        marks = (
            word
            | (word - ONES) & ~word
            | marks_of(word, delimiters)
            | marks_of(word, _LINE_BREAKS)
            | marks_of(word, _RETURNS)
        )
        if marks & HIGHEST != 0:
            return place + first_marked(marks)
        place += 8
    while place < size:
        sign = data[place]
        if sign == delimiter or sign == 10 or sign == 13 or sign == 0 or sign >= 128:
            break
        place += 1
    return place


@inner
def end_of_quoted(data: Any, words: Any, place: int, size: int) -> Any:
    """The next byte of a quoted cell that is a quote, a line break, a NUL or beyond ASCII."""
    while place + 8 <= size:
        word = words[place]
        marks = (
            word | (word - ONES) & ~word | marks_of(word, _QUOTES) | marks_of(word, _LINE_BREAKS)
        )
        if marks & HIGHEST != 0:
            return place + first_marked(marks)
        place += 8
    while place < size:
        sign = data[place]
        if sign == 34 or sign == 10 or sign == 0 or sign >= 128:
            break
        place += 1
    return place


@uncounted
def scan_records(
    data: Any,
    words: Any,
    size: int,
    delimiter: int,
    width: int,
    is_last: bool,
    records: Any,
    values: Any,
) -> tuple[int, int, int]:
    """Scan complete records, up to the room for them: their number, their lines, and their end.

    A record that does not end in the block is left for the next block, unless this is the last.
    The kind of a cell in which quotes are doubled is 1. A record with another number of cells is
    flagged with 1, and with 2 if it may be no record at all. Blank records are left out.
    """
    record_begins, record_ends, line_numbers, flagged, notes = records
    quoted, begins, ends = values
    rows, lines, position = 0, 0, 0
    while position < size and rows < len(flagged):
        begin = position
        place = position
        first_line = lines + 1
        cell = 0
        is_good = True
        is_whole = False
        note = 0
        new_lines = 0
        while True:
            # At the beginning of a cell.
            has_doubled = False
            if place < size and data[place] == 34:
                place += 1
                cell_begin = place
                while True:
                    place = end_of_quoted(data, words, place, size)
                    if place >= size:
                        break
                    sign = data[place]
                    if sign == 34:
                        if place + 1 < size and data[place + 1] == 34:
                            has_doubled = True
                            place += 2
                            continue
                        break
                    if sign == 10:
                        new_lines += 1
                    elif sign == 0:
                        is_good = False
                    note |= 4 if sign >= 128 else 0
                    place += 1
                if place >= size or (place + 1 >= size and not is_last):
                    # The quote is not closed in this block, or may be a doubled quote.
                    if is_last:
                        is_good = False
                        is_whole = True
                        place = size
                    break
                cell_end = place
                place += 1
            else:
                cell_begin = place
                while True:
                    place = end_of_cell(data, words, place, size, delimiter)
                    if place >= size:
                        break
                    sign = data[place]
                    if sign == delimiter or sign == 10 or sign == 13:
                        break
                    if sign == 0:
                        is_good = False
                    note |= 4 if sign >= 128 else 0
                    place += 1
                cell_end = place
            if cell < width:
                begins[cell, rows] = cell_begin
                ends[cell, rows] = cell_end
                quoted[cell, rows] = has_doubled
            cell += 1
            if place < size and data[place] == delimiter:
                place += 1
                continue
            # The end of the record, or of the part that can be read.
            while place < size and data[place] == 13:
                place += 1
            if place >= size:
                is_whole = is_last
                break
            if data[place] != 10:
                # Python reports an error here, and goes on with the next line.
                is_good = False
                while place < size and data[place] != 10:
                    place += 1
                if place >= size and not is_last:
                    break
            if place < size:
                place += 1
                new_lines += 1
            is_whole = True
            break
        if not is_whole:
            break
        position = place
        lines += new_lines
        if is_good and cell == 1:
            at = begins[0, rows]
            is_blank = True
            while at < ends[0, rows]:
                sign = data[at]
                if not (sign == 32 or 9 <= sign <= 13 or 28 <= sign <= 31):
                    is_blank = False
                    # Unicode has more kinds of space.
                    if sign >= 128:
                        is_good = False
                at += 1
            if is_blank:
                continue
        record_begins[rows], record_ends[rows] = begin, place
        line_numbers[rows] = first_line
        flagged[rows] = 2 if not is_good else (1 if cell != width else 0)
        notes[rows] = note
        rows += 1
    return rows, lines, position
