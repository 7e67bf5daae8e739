"""Read-ahead in a thread: while one chunk is processed, the next is read.

In comes an iterator; out come its items, in order. At most `depth` items wait, so that memory stays
bounded. Errors of the iterator are raised here; the iterator is closed at the end.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Iterator
from typing import Any, TypeVar

Item = TypeVar("Item")

_END = object()
_LOOK_SECONDS = 0.1
_MOST_SECONDS = 1.0


def ahead(items: Iterator[Item], depth: int = 1) -> Generator[Item, None, None]:
    waiting: queue.Queue[Any] = queue.Queue(depth)
    stopped = threading.Event()

    def put(item: Any) -> bool:
        while not stopped.is_set():
            try:
                waiting.put(item, timeout=_LOOK_SECONDS)
            except queue.Full:
                continue
            return True
        return False

    def work() -> None:
        try:
            for item in items:
                if not put((item, None)):
                    return
            put((_END, None))
        except BaseException as error:
            put((_END, error))
        finally:
            if isinstance(items, Generator):
                items.close()

    thread = threading.Thread(target=work, name="ensue-reading", daemon=True)
    thread.start()
    try:
        while True:
            item, error = waiting.get()
            if error is not None:
                raise error
            if item is _END:
                return
            yield item
    finally:
        stopped.set()
        # A thread that waits for a pipe is not waited for.
        thread.join(_MOST_SECONDS)
