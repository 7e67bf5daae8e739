"""What a micro-batch leaves behind that is run a second time, as after a crash at its very end."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random

from tests.spark.streaming.sensors import expected, found, heartbeat, readings

from .readings import record
from .test_pipeline import TO_FILES, TO_TOPICS, config_of, run
from .topics import Kafka, Plain

Topic = Callable[[str], str]


def written(kafka: Kafka, topic: Topic) -> list[tuple[object, ...]]:
    rows = readings(30, Random(8))
    sent = [record(row, "binary", 0) for row in rows]
    end = record(heartbeat(rows[-1]["time"] + 30_000_000), "binary", 0)
    kafka.write(topic("readings"), [*sent, Plain(b"hello", partition=0), end])
    return expected(rows)


def forget_that_the_last_one_was_done(folder: Path) -> None:
    """As if the driver had been killed between the writing of a micro-batch and its commit."""
    commits = folder / "checkpoint" / "commits"
    last = max(
        (each for each in commits.iterdir() if each.name.isdigit()), key=lambda p: int(p.name)
    )
    last.unlink()
    (commits / f".{last.name}.crc").unlink(missing_ok=True)


def test_a_reader_of_a_topic_that_drops_ids_it_has_seen_gets_each_output_once(
    kafka: Kafka, topic: Topic, tmp_path: Path
) -> None:
    wanted = written(kafka, topic)
    config = config_of(TO_TOPICS.replace('mode = "binary"', ""), kafka, topic, tmp_path)
    run(kafka, config)
    forget_that_the_last_one_was_done(tmp_path)
    run(kafka, config)

    events = [json.loads(each.value or b"") for each in kafka.read(topic("matches"))]
    rejected = kafka.read(topic("rejected"))

    assert len(events) == 2 * len(wanted)
    seen = {
        (event["id"], event["source"], event["correlation"], event["trigger"]): event
        for event in events
    }
    once = [{**event, **event["data"], "causes": event["causes"]} for event in seen.values()]
    assert found([{"Sensor": None, "Rise": None, **event} for event in once]) == wanted
    assert len({json.dumps(event, sort_keys=True) for event in events}) == len(wanted)
    assert {each.header["ensue_offset"] for each in rejected} == {"30"}


def test_folders_of_a_micro_batch_that_is_run_again_are_replaced(
    kafka: Kafka, topic: Topic, tmp_path: Path
) -> None:
    wanted = written(kafka, topic)
    config = config_of(TO_FILES, kafka, topic, tmp_path)
    run(kafka, config)
    forget_that_the_last_one_was_done(tmp_path)
    run(kafka, config)

    got = kafka.spark.read.parquet(str(tmp_path / "matches")).collect()
    rejected = kafka.spark.read.parquet(str(tmp_path / "rejected")).collect()

    assert found([row.asDict() for row in got]) == wanted
    assert [(row["offset"], bytes(row["value"])) for row in rejected] == [(30, b"hello")]
