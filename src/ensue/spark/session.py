"""The Spark session of a command: the active one, that of `spark-submit`, or a local one.

In come settings for a local session; out goes a `SparkSession`. The messages that Java writes while
it starts are shown only if the start fails, or if `ENSUE_SPARK_LOG` asks for them.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from threading import Thread

from pyspark.sql import SparkSession

from ensue.errors import JobError
from ensue.spark.class_archive import archive_options
from ensue.spark.failures import FAILURES, as_job_error, reason_of

LOG = "ENSUE_SPARK_LOG"
"""The environment variable with the log level of a local Spark, as `WARN`."""
_CHOSEN_ELSEWHERE = ("SPARK_REMOTE", "MASTER", "PYSPARK_GATEWAY_PORT")
"""Environment variables of a Spark that was chosen outside; the last is set by `spark-submit`."""
_SHORT_LIVED_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SHORT_LIVED = {
    # Java would compile for longer than it runs.
    "spark.driver.extraJavaOptions": _SHORT_LIVED_JAVA,
}


@contextmanager
def temporary_session() -> Iterator[SparkSession]:
    """A session for one short job, stopped at its end unless it was active before."""
    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    started = open_session(SHORT_LIVED)
    try:
        yield started
    finally:
        started.stop()


@contextmanager
def session_beside(settings: Mapping[str, str] | None = None) -> Iterator[Future[SparkSession]]:
    """As `open_session`, beside what is done in the block, which must write no messages.

    Java takes seconds to start, in which Python can import what the session is used with.
    """
    opened: Future[SparkSession] = Future()

    def start() -> None:
        try:
            opened.set_result(open_session(settings))
        except BaseException as failure:
            opened.set_exception(failure)

    thread = Thread(target=start, daemon=True)
    thread.start()
    try:
        yield opened
    finally:
        thread.join()


def open_session(settings: Mapping[str, str] | None = None) -> SparkSession:
    """The active session, that of `spark-submit`, or a quiet local one over all cores.

    `settings` apply to a local session only. Raises `JobError` if no session can be started.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("ensue")
    if any(name in os.environ for name in _CHOSEN_ELSEWHERE):
        with as_job_error("the start of a session"):
            return builder.getOrCreate()
    # A local Spark needs no address that other machines could reach.
    os.environ.setdefault("SPARK_LOCAL_HOSTNAME", "localhost")
    cores = os.cpu_count() or 1
    level = os.environ.get(LOG)
    builder = (
        builder.master(f"local[{cores}]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", level or "OFF")
        .config("spark.sql.shuffle.partitions", str(cores))
        # Spark's own choice is a type of Parquet that has no zone and is given up by other tools.
        .config("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        # With any limit, Spark works out the size of a batch at every row of it.
        .config("spark.sql.execution.arrow.maxBytesPerBatch", str(2**31 - 1))
        .config(map=dict(settings or {}))
    )
    with _java_options(), nullcontext() if level else _java_output_hidden():
        return builder.getOrCreate()


@contextmanager
def _java_options() -> Iterator[None]:
    """Options for the Java that starts, besides options that the user may have set.

    They are for that Java only, and not for processes that its workers may start.
    """
    added = {"SPARK_SUBMIT_OPTS": archive_options(), "SPARK_LAUNCHER_OPTS": _SHORT_LIVED_JAVA}
    before = {name: os.environ.get(name) for name in added}
    for name, options in added.items():
        os.environ[name] = f"{before[name] or ''} {options}".strip()
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _java_output_hidden() -> Iterator[None]:
    """Hides what Java writes while it starts, unless the start fails.

    Only the Java process inherits the hidden output; later failures come as exceptions. Java may
    live on for a moment when this process has ended, and would hold its pipes open.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    with tempfile.TemporaryFile() as output:
        standard_output, standard_error = os.dup(1), os.dup(2)
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
        try:
            yield
        except FAILURES as failure:
            output.seek(0)
            text = output.read().decode(errors="replace").strip()
            raise JobError(f"Spark cannot be started: {reason_of(failure)}\n{text}") from None
        except ConnectionError:
            # Java ends itself where it finds no place for its files.
            raise JobError(
                f"Spark cannot be started: its Java ended at once. `{LOG}=WARN` shows what it says;"
                " mostly it cannot write to the folder for its files, which is that of"
                " `SPARK_LOCAL_DIRS`, or else of Java's temporary files"
            ) from None
        finally:
            os.dup2(standard_output, 1)
            os.dup2(standard_error, 2)
            os.close(standard_output)
            os.close(standard_error)
