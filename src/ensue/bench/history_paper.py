"""What the paper on temporal knowledge-based networking has measured, as far as its text says.

Its figures did not survive; the text names these. A publication is matched for fifty subscribers,
by a Java broker over Oracle on the same machine. The aims are ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

FIRST_TEST: Final = (
    "grows with what is stored in all three of its stores, to nearly 7 s at 250 in the largest"
)
TEMPORAL: Final = "the paper: 10 to 63 ms on average"
LIMITS: Final[Mapping[int, str]] = {
    200: "about 200",
    500: "almost linear in the limit",
    1_000: "almost linear in the limit",
    2_000: "almost linear in the limit",
    5_000: "more than linear",
}
AIMS: Final = {"temporal": 1.0, "FILTER": 2.0, "growth": 2.0, "writes": 20_000}
"""Milliseconds an event at 50,000 stored; times as long at more of them; writes a second."""
