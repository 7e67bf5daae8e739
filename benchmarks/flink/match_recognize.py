"""The rule of `ensue bench spark` in Flink SQL: `a ; b ; c` by key, reset by `d`.

    python match_recognize.py EVENTS REPEATS MODE SECONDS JAR...

Runs in Flink's own environment and knows nothing of Ensue. EVENTS is the folder of Parquet files
that Spark reads too; MODE is `batch` or `streaming`. A stream drops what comes behind its
watermark, and files are read side by side: by so many SECONDS of event time may one be behind
another. A batch knows all there is, and needs no such allowance. Writes one line of JSON a repeat:
the seconds of a bare scan of the columns that the rule needs and of the rule, and how many matches
there were. The first repeat warms up the virtual machine, and is marked so. A stream would tell
every change of a count; with mini-batches, as Flink advises for aggregations, it tells a few, so
that what is timed is the rule.
"""

from __future__ import annotations

import json
import sys
import time
from datetime import timedelta

from pyflink.table import EnvironmentSettings, TableEnvironment

CORES = 2

EVENTS = """
CREATE TABLE events (
    id STRING,
    `type` STRING,
    millis BIGINT,
    `Key` INT,
    moment AS TO_TIMESTAMP_LTZ(millis, 3),
    WATERMARK FOR moment AS moment{behind}
) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'parquet')
"""

SCAN = "SELECT COUNT(id), COUNT(`type`), MAX(millis), COUNT(`Key`) FROM events"

RULE = """
SELECT COUNT(*), COUNT(first_id), COUNT(last_id) FROM (
    SELECT * FROM (SELECT * FROM events WHERE `type` IN ('A', 'B', 'C', 'D'))
    MATCH_RECOGNIZE (
        PARTITION BY `Key`
        ORDER BY moment
        MEASURES a.id AS first_id, b.id AS middle_id, c.id AS last_id
        ONE ROW PER MATCH
        AFTER MATCH SKIP PAST LAST ROW
        PATTERN (a before_b*? b before_c*? c)
        DEFINE
            a AS a.`type` = 'A',
            before_b AS before_b.`type` <> 'B' AND before_b.`type` <> 'D',
            b AS b.`type` = 'B',
            before_c AS before_c.`type` <> 'C' AND before_c.`type` <> 'D',
            c AS c.`type` = 'C'
    )
)
"""


def environment(mode: str, jars: list[str]) -> TableEnvironment:
    settings = EnvironmentSettings.new_instance()
    chosen = settings.in_batch_mode() if mode == "batch" else settings.in_streaming_mode()
    tables = TableEnvironment.create(chosen.build())
    options = tables.get_config()
    options.set("parallelism.default", str(CORES))
    options.set("pipeline.jars", ";".join(f"file://{jar}" for jar in jars))
    options.set("pipeline.object-reuse", "true")
    options.set("taskmanager.memory.managed.size", "1g")
    options.set("taskmanager.memory.network.max", "256m")
    if mode == "streaming":
        options.set("table.exec.mini-batch.enabled", "true")
        options.set("table.exec.mini-batch.allow-latency", "5 s")
        options.set("table.exec.mini-batch.size", "1000000")
    return tables


def timed(tables: TableEnvironment, query: str) -> tuple[float, int]:
    """Seconds, and the first number of the last row: a stream tells every change of it."""
    begin = time.perf_counter()
    first = 0
    with tables.execute_sql(query).collect() as rows:
        for row in rows:
            first = row[0]
    return time.perf_counter() - begin, first


def main() -> None:
    path, repeats, mode, seconds, *jars = sys.argv[1:]
    tables = environment(mode, jars)
    behind = f" - INTERVAL '{timedelta(seconds=int(seconds))}' HOUR TO SECOND"
    behind = behind if mode == "streaming" else ""
    tables.execute_sql(EVENTS.format(path=path, behind=behind))
    for number in range(int(repeats) + 1):
        scan, events = timed(tables, SCAN)
        rule, matches = timed(tables, RULE)
        found = {"scan": scan, "rule": rule, "events": events, "matches": matches}
        print(json.dumps({**found, "warming_up": number == 0}), flush=True)


if __name__ == "__main__":
    main()
