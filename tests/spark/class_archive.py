"""The classes of Spark as an archive, so that each Java that a test starts is there sooner.

A process of Spark spends most of its first seconds on reading and checking some fifteen thousand
classes. Java can write them into a file when it ends, and map that file into memory when it starts:
it is then ready in about half the time. In comes nothing; out go options for Java. The archive is
made once in an environment, by a short stream: by `python -m tests.spark.class_archive`, as
`make test` does, or when the first process wants it. Where it cannot be made, or does not fit, Java
does without it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock

# Java spends half of a short life on compiling what it will not run long enough to make up for.
_SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# An archive that does not fit is no news; what Java says of it would be among the lines of a test.
_SILENT = "-Xlog:disable"
_LONGEST_MAKING_SECONDS = 600
_STREAM = """
import sys
from pathlib import Path
from ensue.cli import main
from pyspark.sql import SparkSession

RULES = '''
eventtype A { attribute long K; };
eventtype Out { attribute long K; };
Out correlation Pairs (A a, A b) a ; b by K { case true: push new Out { K = b.K }; }
'''
CONFIG = '''
[source]
format = "parquet"
path = "{folder}/events"
[stream]
checkpoint = "{folder}/checkpoint"
lateness = "1 s"
buckets = 1
[spark]
"spark.sql.shuffle.partitions" = 1
[sink]
format = "parquet"
path = "{folder}/sink"
partition_by = ["correlation"]
'''

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    (folder / "rules.cor").write_text(RULES)
    (folder / "stream.toml").write_text(CONFIG.format(folder=folder))
    spark = SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate()
    rows = "select string(id) id, 'A' type, timestamp_seconds(id) time, int(id % 2) K"
    spark.sql(f"{rows} from range(9)").coalesce(1).write.parquet(f"{folder}/events")
    try:
        main(["stream", str(folder / "rules.cor"), str(folder / "stream.toml")])
    finally:
        spark.read.parquet(f"{folder}/events").orderBy("time").collect()
        spark.stop()
"""
_making = Lock()


def quick_start() -> str:
    """Options for a Java that lives for seconds, as `SPARK_SUBMIT_OPTS` takes them."""
    # Two threads that ask at once get one archive.
    with _making:
        archive = _archive()
    return _SHORT_LIVED if archive is None else f"{_SHORT_LIVED} {_use(archive)}"


def _use(archive: Path) -> str:
    return f"-XX:SharedArchiveFile={archive} {_SILENT}"


@cache
def _archive() -> Path | None:
    kept = Path(sys.prefix) / "spark.jsa"
    if not kept.exists():
        with TemporaryDirectory(prefix="ensue-classes-", dir=sys.prefix) as folder:
            made = _made(Path(folder))
            if made is not None:
                # Lanes that make one at the same time take each the one that was there last.
                made.replace(kept)
    return kept if kept.exists() else None


def _made(folder: Path) -> Path | None:
    archive = folder / "spark.jsa"
    making = f"{_SHORT_LIVED} -XX:ArchiveClassesAtExit={archive} {_SILENT}"
    try:
        # Java holds the pipe for as long as it writes, which is longer than Python lives.
        subprocess.run(
            [sys.executable, "-c", _STREAM, str(folder)],
            env={
                **os.environ,
                "PYSPARK_PYTHON": sys.executable,
                "SPARK_SUBMIT_OPTS": making,
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_LONGEST_MAKING_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
    return archive if archive.is_file() else None


if __name__ == "__main__":
    quick_start()
