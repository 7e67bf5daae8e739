"""What Spark raises when it fails, and what of it a person needs to read.

In come exceptions of PySpark, of the bridge to Java below it, or what Spark wrote of a failure; out
go one sentence and, for a whole job, an `EnsueError`. Causes that Java knows and Python does not
come as a text with two languages' traces in it: the outermost says what was being done, the
innermost why it failed, or a worker's last line does. Failures with a known cure are told by it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException

from ensue.errors import JobError

FAILURES: tuple[type[Exception], ...] = (PySparkException,)
try:
    from py4j.protocol import Py4JError
except ModuleNotFoundError:
    # A client that only speaks with a server has no Java beside it.
    pass
else:
    FAILURES += (Py4JError,)

_CURES = {
    "UnknownTopicOrPartitionException": "a topic of `[source]` is not on its servers: look at"
    " `topics`, or create it; if it was deleted while it was read, create it again and start from"
    " a new `checkpoint`, with a new `path` in `[sink]`",
    "not available in Kafka any more": "records that the checkpoint counts on are no longer in the"
    " topic, or it was deleted and made anew: keep records longer there, or set"
    ' `options = { failOnDataLoss = "false" }` in `[source]` and go on without them',
}
"""By what is in a failure, what a person needs to know of it."""

_CALL = re.compile(r"^An error occurred while calling [^\n]*\n:? ?")
_CLASS = re.compile(r"^(?:[a-z][\w$]*\.)*[A-Z][\w$.]*(?:Error|Exception|Interrupt)(?:: |$)")
# The numbers of stage and task differ from one attempt to the next, and say nothing of the reason.
_TASK = re.compile(r"^Job aborted due to stage failure: .*? \(TID \d+\) \([^)]*\): ")
_CONDITION = re.compile(r"^\[[A-Z][\w.]*\] ")
_STATE = re.compile(r"\s*SQLSTATE: \w+.*$")
_CAUSE = "Caused by: "
_TRACEBACK = "Traceback (most recent call last):"


@contextmanager
def in_words(doing: str) -> Iterator[None]:
    """Raises `JobError` for what fails on Spark within; `doing` says what was asked of it."""
    try:
        yield
    except FAILURES as failure:
        raise JobError(f"{doing} has failed on Spark: {reason_of(failure)}") from None


def reason_of(failure: Exception | str) -> str:
    """Why it failed, without Spark's codes and traces."""
    text = str(failure)
    for sign, words in _CURES.items():
        if sign in text:
            return words
    if worker := _ends_of_tracebacks(text):
        return _plain(worker[-1])
    lines = [line.strip() for line in _CALL.sub("", text).splitlines() if line.strip()]
    if not lines:
        return "no reason was given"
    first = _plain(lines[0])
    causes = [_plain(line.removeprefix(_CAUSE)) for line in lines if line.startswith(_CAUSE)]
    if causes and causes[-1] and causes[-1] not in first:
        return f"{first.rstrip('.')} ({causes[-1].rstrip('.')})"
    return first.rstrip(".")


def _ends_of_tracebacks(text: str) -> list[str]:
    """What Python raised in workers, the innermost first."""
    ends: list[str] = []
    for part in text.split(_TRACEBACK)[1:]:
        ends += [line for line in part.splitlines() if line[:1].strip()][:1]
    return ends


def _plain(line: str) -> str:
    """A line without the class, the task, the condition and the state that it was raised with."""
    while (found := _CLASS.match(line) or _TASK.match(line)) is not None:
        line = line[found.end() :]
    return _STATE.sub("", _CONDITION.sub("", line)).strip()
