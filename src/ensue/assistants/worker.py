"""Runs tools in a process of their own, so that one that takes too long can be ended.

In come the name of a tool and its arguments, out comes its answer, or a `ToolFailure` with a text
that says what to do. A process serves call after call; after its time it is killed, and the next
call starts another. It ends with the server, however that ends. Its memory is bounded where the
system can do that. The process leaves the standard output alone, over which the protocol runs.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from ensue.assistants.reach import Reach
from ensue.errors import EnsueError, LibraryError

MOST_MEMORY = 4 << 30
"""Bytes that a tool may take, data and code that is made included."""


class ToolFailure(Exception):  # noqa: N818 - it is an answer, not a mistake of ours
    """A call that could not be answered, in words for a model."""


class ToolProcess:
    """One process at a time; calls wait for each other."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._lock = threading.Lock()
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The answer of a tool. Raises `ToolFailure`."""
        with self._lock:
            pipe = self._started()
            try:
                pipe.send((tool, arguments))
                if not pipe.poll(self._reach.seconds):
                    self._end()
                    raise ToolFailure(
                        f"`{tool}` was stopped after {self._reach.seconds:g} s: ask for fewer"
                        " events, a shorter span of time, or a smaller library"
                    )
                good, answer = pipe.recv()
            except (EOFError, OSError):
                self._end()
                raise ToolFailure(f"`{tool}` used more than this machine allows") from None
        if good:
            return dict(answer)
        raise ToolFailure(answer)

    def close(self) -> None:
        with self._lock:
            self._end()

    def _started(self) -> Connection:
        if self._process is not None and self._pipe is not None and self._process.is_alive():
            return self._pipe
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self._reach), daemon=True)
        self._process.start()
        theirs.close()
        # Its imports take a moment, which is not the tool's.
        if not self._pipe.poll(60) or self._pipe.recv() != "ready":
            self._end()
            raise ToolFailure("the process for tools does not start on this machine")
        return self._pipe

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
        if self._pipe is not None:
            self._pipe.close()
        self._process = self._pipe = None


def _serve(pipe: Connection, reach: Reach) -> None:
    """Answer calls until the other end is gone."""
    threading.Thread(target=_end_with_server, daemon=True).start()
    _leave_streams_alone()
    _bound_memory()
    from ensue.assistants.tools import TOOLS

    pipe.send("ready")
    while True:
        try:
            tool, arguments = pipe.recv()
        except (EOFError, OSError):
            return
        pipe.send(_answered(TOOLS[tool], reach, arguments))


def _answered(tool: Any, reach: Reach, arguments: dict[str, Any]) -> tuple[bool, Any]:
    try:
        return True, tool(reach, **arguments)
    except LibraryError as error:
        count = len(error.diagnostics)
        return False, f"the library has mistakes ({count}); mend them and ask again:\n\n{error}"
    except EnsueError as error:
        return False, str(error)
    except OSError as error:
        return False, f"{error.filename or 'a file'}: {(error.strerror or str(error)).lower()}"
    except MemoryError:
        return False, (
            f"it takes more than {MOST_MEMORY >> 30} GiB of memory: ask for fewer events, or a"
            " smaller library"
        )
    except RecursionError:
        return False, "the input is nested too deep: make it simpler"
    except Exception as error:
        return False, f"this is a mistake in ensue itself ({type(error).__name__}: {error})"


def _end_with_server() -> None:
    """End this process once the server is gone, since nothing would read its answer."""
    server = multiprocessing.parent_process()
    if server is not None:
        server.join()
        os._exit(1)


def _bound_memory() -> None:
    # Not every system has it, or counts by it.
    with suppress(ImportError, ValueError, OSError):
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        bound = MOST_MEMORY if most == resource.RLIM_INFINITY else min(MOST_MEMORY, most)
        resource.setrlimit(resource.RLIMIT_DATA, (bound, most))


def _leave_streams_alone() -> None:
    """The standard streams carry the protocol: what is printed here goes to the standard error."""
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
