"""The rule of `ensue bench spark` in Flink SQL: `a ; b ; c` by key, reset by `d`.

    python match_recognize.py --events FOLDER --format parquet --mode batch --repeats 2 JAR...

Runs in Flink's own environment and knows nothing of Ensue. The folder has the files that Spark
reads too, of Parquet or of CSV with a header; the mode is `batch` or `streaming`. A stream drops
what comes behind its watermark, and files are read side by side: by so many seconds of event time
(`--behind`) may one be behind another. A batch knows all there is, and needs no such allowance.
Writes one line of JSON a repeat: the seconds of a bare scan of the columns that the rule needs and
of the rule, and how many matches there were. The first repeat warms up the virtual machine, and is
marked so. With `--rule-only` the rule runs once, for the time of the whole process. A stream would
tell every change of a count; with mini-batches, as Flink advises for aggregations, it tells a few,
so that what is timed is the rule.
"""

from __future__ import annotations

import argparse
import json
import time
from datetime import timedelta

from pyflink.table import EnvironmentSettings, TableEnvironment

CORES = 2

EVENTS = """
CREATE TABLE events (
    id STRING,
    `type` STRING,
    {moment}
    millis BIGINT,
    `Key` INT,
    `Value` DOUBLE,
    moment AS TO_TIMESTAMP_LTZ(millis, 3),
    WATERMARK FOR moment AS moment{behind}
) WITH ('connector' = 'filesystem', 'path' = '{path}', {format})
"""

FORMATS = {
    "parquet": "'format' = 'parquet'",
    # Columns of CSV are told by their places. Flink knows no header: it is a row whose numbers are
    # null, which no rule wants.
    "csv": "'format' = 'csv', 'csv.ignore-parse-errors' = 'true'",
}

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
    options = argparse.ArgumentParser()
    options.add_argument("--events", required=True)
    options.add_argument("--format", choices=[*FORMATS], required=True)
    options.add_argument("--mode", choices=["batch", "streaming"], required=True)
    options.add_argument("--repeats", type=int, default=1)
    options.add_argument("--behind", type=int, default=0)
    options.add_argument("--rule-only", action="store_true")
    options.add_argument("jars", nargs="*")
    given = options.parse_args()
    tables = environment(given.mode, given.jars)
    behind = f" - INTERVAL '{timedelta(seconds=given.behind)}' HOUR TO SECOND"
    tables.execute_sql(
        EVENTS.format(
            path=given.events,
            moment="`time` STRING," if given.format == "csv" else "",
            behind=behind if given.mode == "streaming" else "",
            format=FORMATS[given.format],
        )
    )
    if given.rule_only:
        rule, matches = timed(tables, RULE)
        print(json.dumps({"rule": rule, "matches": matches}), flush=True)
        return
    for number in range(given.repeats + 1):
        scan, events = timed(tables, SCAN)
        rule, matches = timed(tables, RULE)
        found = {"scan": scan, "rule": rule, "events": events, "matches": matches}
        print(json.dumps({**found, "warming_up": number == 0}), flush=True)


if __name__ == "__main__":
    main()
