"""What the paper on the TAO real-time event service has measured: its tables 1 and 2, as numbers.

Its machine had one processor of 300 MHz and nothing else to do, and its tests ran in the real-time
scheduling class. Microseconds, each as least, most and average.
"""

from __future__ import annotations

from typing import NamedTuple


class Latency(NamedTuple):
    least: int
    most: int
    average: int


Cell = tuple[Latency, Latency]

SUPPLIERS = (1, 2, 10)
CONSUMERS = (1, 5, 10, 20)
SIZES = tuple((suppliers, consumers) for suppliers in SUPPLIERS for consumers in CONSUMERS)


def _cells(*rows: tuple[tuple[int, int, int], tuple[int, int, int]]) -> dict[tuple[int, int], Cell]:
    found = [(Latency(*one), Latency(*other)) for one, other in rows]
    return dict(zip(SIZES, found, strict=True))


COLLOCATED = _cells(
    ((53, 93, 58), (53, 93, 58)),
    ((107, 189, 114), (197, 284, 206)),
    ((171, 230, 183), (379, 451, 393)),
    ((291, 340, 300), (741, 817, 760)),
    ((49, 67, 51), (49, 67, 51)),
    ((95, 124, 100), (180, 213, 187)),
    ((159, 281, 170), (360, 498, 374)),
    ((283, 333, 299), (758, 828, 781)),
    ((51, 303, 72), (51, 303, 72)),
    ((100, 211, 113), (187, 1210, 284)),
    ((167, 222, 176), (369, 2545, 576)),
    ((211, 310, 290), (741, 4895, 1137)),
)
"""Table 1, all in one process: the first and the last consumer of each cell."""

TWO_PROCESSES = _cells(
    ((57, 71, 63), (772, 1078, 820)),
    ((108, 207, 155), (765, 1995, 1283)),
    ((170, 598, 289), (795, 5853, 3544)),
    ((303, 819, 534), (756, 6047, 3084)),
    ((50, 95, 57), (1226, 2329, 1297)),
    ((101, 214, 152), (1274, 4577, 2330)),
    ((167, 421, 274), (1226, 6676, 3448)),
    ((280, 821, 519), (1225, 20727, 6038)),
    ((49, 218, 60), (1406, 3969, 3102)),
    ((100, 1170, 172), (1477, 12773, 6282)),
    ((158, 2379, 310), (1258, 19153, 7904)),
    ((209, 4900, 596), (1266, 65449, 24345)),
)
"""Table 2, two processes: events of the same process and of the other."""

UTILISATION = {False: 0.99, True: 0.96}
"""Up to where no deadline was missed: single channel, and federated."""
RATE = 50
"""Events a second that its channel delivers without falling behind."""
