"""Text files with a few bytes changed are read the same in columns and record by record.

Every round writes files of JSON lines, of plain objects by a mapping and of CSV, from the rows of
`tests/events/files/test_agreement.py`, changes up to four bytes of each, and reads them in blocks
and parts of any size. Both readers must find the same events, and refuse the same records with the
same problems.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from ensue.events.bounds import Bounds
from ensue.events.event import Rejected
from tests.events.files import test_agreement as rows

SHORT = (1, 2)
FILES_IN_A_ROUND = 8
SIGNS = b'{}[]",:;\\u0129.eE+-tfn \n\r\x00\xff\xc3'


def hunt(seed: int) -> Mapping[str, int]:
    draw = Random(seed)
    tried = Counter[str]()
    with TemporaryDirectory() as folder:
        for number in range(FILES_IN_A_ROUND):
            path = Path(folder) / f"{number}.{draw.choice(['jsonl', 'csv'])}"
            bounds = Bounds(
                block_bytes=draw.choice([50, 700, 1 << 23]),
                part_bytes=draw.choice([1, 100, 1 << 20]),
            )
            mapping = None
            if path.suffix == ".csv":
                cells = [row.encode() for row in draw.choices(rows.ROWS, k=draw.randint(1, 12))]
                text = rows.HEADER.encode() + b"\n" + damaged(draw, cells)
            elif draw.random() < 0.3:
                mapping = rows.MAPPED
                text = damaged(draw, [rows.line(each) for each in draw.choices(rows.OBJECTS, k=6)])
            else:
                text = damaged(draw, draw.choices(rows.LINES, k=draw.randint(1, 12)))
            path.write_bytes(text)
            found = rows.agree(path, mapping=mapping, bounds=bounds)
            tried["records"] += len(found)
            tried["refused"] += sum(isinstance(each, Rejected) for each in found)
    return tried


def damaged(draw: Random, records: Sequence[bytes]) -> bytes:
    """The records as lines, with up to four bytes changed."""
    text = bytearray(b"\n".join(records))
    for _ in range(draw.randint(0, 4)):
        if text:
            text[draw.randrange(len(text))] = draw.choice(SIGNS)
    return bytes(text)
