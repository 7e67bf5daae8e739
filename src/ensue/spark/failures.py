"""Failures of Spark in one sentence: why it failed, and what to do where that is known.

In come exceptions of PySpark or of its bridge to Java, or the text of a failure; out go a reason
and, for a whole job, a `JobError`. A text with tracebacks of Java and Python is searched for the
cause: the outermost Java exception says what was being done, the innermost why it failed; the last
line of a Python worker goes before both. Known signs in the text select advice.
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

_KNOWN_REASONS = {
    "UnknownTopicOrPartitionException": "a topic of `[source]` is not on its servers: look at"
    " `topics`, or create it; if it was deleted while it was read, create it again and start from"
    " a new `checkpoint`, with a new `path` in `[sink]`",
    "not available in Kafka any more": "records that the checkpoint counts on are no longer in the"
    " topic, or it was deleted and made anew: keep records longer there, or set"
    ' `options = { failOnDataLoss = "false" }` in `[source]` and go on without them',
}
"""Reasons in full, by a sign in the text of a failure."""

_CHECKPOINT = (
    "the checkpoint `{checkpoint}` is damaged or belongs to another query: put back a copy of it,"
    " or start from a new `checkpoint`, with a new `path` in `[sink]`"
)
_MISSING = (
    "files that a micro-batch was planned with have to stay until it is done: put them back, or set"
    ' `options = {{ ignoreMissingFiles = "true" }}` in `[source]` and go on without them'
)
_STREAM_ADVICE = {
    "No space left on device": "make room, and start the same command again: it goes on from where"
    " it was",
    "Multiple streaming jobs": "another stream runs from the checkpoint `{checkpoint}`: stop one"
    " of them, or give each a checkpoint and a sink of its own",
    "Failed to read log file": _CHECKPOINT,
    "MALFORMED_LOG_FILE": _CHECKPOINT,
    "loading state": _CHECKPOINT,
    "state directory is empty": _CHECKPOINT,
    "operator name does not match": "the checkpoint `{checkpoint}` was written by a version of"
    " Ensue that kept states otherwise, or belongs to another query: go on with that version, or"
    " start from a new `checkpoint`, with a new `path` in `[sink]`",
    "state metadata": _CHECKPOINT,
    "doesn't exist": _CHECKPOINT,
    "No usable value for": _CHECKPOINT,
    "Unrecognized token": _CHECKPOINT,
    "FileNotFoundException": _MISSING,
    "FILE_NOT_EXIST": _MISSING,
    "mismatches when reading": "all files of `[source]` need the columns of the first one: write it"
    " again with these types, or take it away and set"
    ' `options = {{ ignoreMissingFiles = "true" }}` in `[source]`',
    "rror while reading file": "put a whole file in its place, or set"
    ' `options = {{ ignoreCorruptFiles = "true" }}` in `[source]` and go on without it',
    "worker exited unexpectedly": "a worker was ended from outside, mostly for want of memory: give"
    " workers more, or make micro-batches smaller by `options` in `[source]`",
    "No module named 'ensue'": "workers need ensue: install it there, or send it with"
    " `--py-files`, as `ensue.spark.package()` makes it",
}
"""Advice for streams, by a sign in the text of a failure; the first sign that is found counts."""

_CALL = re.compile(r"^An error occurred while calling [^\n]*\n:? ?")
_CLASS = re.compile(r"^(?:[a-z][\w$]*\.)*[A-Z][\w$.]*(?:Error|Exception|Interrupt)(?:: |$)")
# The numbers of stage and task differ from one attempt to the next, and say nothing of the reason.
_TASK = re.compile(r"^Job aborted due to stage failure: .*? \(TID \d+\) \([^)]*\): ")
_CONDITION = re.compile(r"^\[[A-Z][\w.]*\] ")
_STATE = re.compile(r"\s*SQLSTATE: \w+.*$")
_CAUSE = "Caused by: "
_SEVERAL = "Multiple failures"
_FIRST_OF_SEVERAL = "1. "
_TRACEBACK = "Traceback (most recent call last):"


@contextmanager
def as_job_error(doing: str) -> Iterator[None]:
    """Raises `JobError` for a failure of Spark inside the block; `doing` names the block."""
    try:
        yield
    except FAILURES as failure:
        raise JobError(f"{doing} has failed on Spark: {reason_of(failure)}") from None


def reason_of(failure: Exception | str) -> str:
    """The reason of a failure, without error codes and tracebacks."""
    text = str(failure)
    for sign, words in _KNOWN_REASONS.items():
        if sign in text:
            return words
    if worker := _ends_of_tracebacks(text):
        return _without_codes(worker[-1])
    lines = [line.strip() for line in _CALL.sub("", text).splitlines() if line.strip()]
    if not lines:
        return "no reason was given"
    first = _without_codes(lines[0])
    causes = [
        _without_codes(line.removeprefix(_CAUSE)) for line in lines if line.startswith(_CAUSE)
    ]
    if first.startswith(_SEVERAL):
        # Stages that were under way together have failed: any of them says why.
        each = (line for line in lines if line.startswith((_FIRST_OF_SEVERAL, _CAUSE)))
        first = _without_codes(
            next(each, first).removeprefix(_FIRST_OF_SEVERAL).removeprefix(_CAUSE)
        )
    if causes and causes[-1] and causes[-1] not in first:
        return f"{first.rstrip('.')} ({causes[-1].rstrip('.')})"
    return first.rstrip(".")


def reason_with_advice(failure: Exception, checkpoint: str) -> str:
    """Why a stream has failed, and what to do about it where that is known."""
    text = _with_java_causes(failure)
    reason = reason_of(text)
    for sign, words in _STREAM_ADVICE.items():
        if sign in text:
            return f"{reason}; {words.format(checkpoint=checkpoint)}"
    return reason


def _with_java_causes(failure: Exception) -> str:
    """The text of a failure and, where Java runs beside this process, Java's stack trace."""
    cause = getattr(failure, "_cause", None)
    trace = getattr(cause, "_stackTrace", None)
    return f"{failure}\n{trace}" if isinstance(trace, str) else str(failure)


def _ends_of_tracebacks(text: str) -> list[str]:
    """The exceptions of Python workers, the innermost first."""
    ends: list[str] = []
    for part in text.split(_TRACEBACK)[1:]:
        ends += [line for line in part.splitlines() if line[:1].strip()][:1]
    return ends


def _without_codes(line: str) -> str:
    """A line without exception class, task numbers, error condition and SQL state."""
    while (found := _CLASS.match(line) or _TASK.match(line)) is not None:
        line = line[found.end() :]
    return _STATE.sub("", _CONDITION.sub("", line)).strip()
