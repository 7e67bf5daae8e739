"""What to do about a stream that has failed, beside why it has.

In comes what Spark raised or a query kept of its end; out goes a sentence for a person. The reason
is `failures`' own, looked for in all that Java knows of the causes; what to do is told by signs in
it. A failure without a known sign is told with its reason alone.
"""

from __future__ import annotations

from ensue.spark.failures import reason_of
from ensue.spark.streaming.config import PipelineConfig

_CHECKPOINT = (
    "the checkpoint `{checkpoint}` is damaged or belongs to another query: put back a copy of it,"
    " or start from a new `checkpoint`, with a new `path` in `[sink]`"
)
_MISSING = (
    "files that a micro-batch was planned with have to stay until it is done: put them back, or set"
    ' `options = {{ ignoreMissingFiles = "true" }}` in `[source]` and go on without them'
)
_ADVICE = {
    "No space left on device": "make room, and start the same command again: it goes on from where"
    " it was",
    "Multiple streaming jobs": "another stream runs from the checkpoint `{checkpoint}`: stop one"
    " of them, or give each a checkpoint and a sink of its own",
    "Failed to read log file": _CHECKPOINT,
    "MALFORMED_LOG_FILE": _CHECKPOINT,
    "loading state": _CHECKPOINT,
    "state directory is empty": _CHECKPOINT,
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
"""By a sign in a failure, what to do; the first that is found counts."""


def told(failure: Exception, config: PipelineConfig) -> str:
    """Why a stream has failed, and what to do about it as far as that is known."""
    text = _with_causes(failure)
    reason = reason_of(text)
    for sign, words in _ADVICE.items():
        if sign in text:
            return f"{reason}; {words.format(checkpoint=config.stream.checkpoint)}"
    return reason


def _with_causes(failure: Exception) -> str:
    """What it says, and what Java knows of its causes, if there is Java beside it."""
    cause = getattr(failure, "_cause", None)
    trace = getattr(cause, "_stackTrace", None)
    return f"{failure}\n{trace}" if isinstance(trace, str) else str(failure)
