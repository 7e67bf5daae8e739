"""What a configuration may say of Kafka, and what is refused before anything is started."""

from __future__ import annotations

import pytest

from ensue.errors import UsageError
from ensue.spark.streaming.config import parse_config

GOOD = """
[source]
format = "kafka"
servers = "one:9092,two:9092"
topics = ["readings"]

[stream]
checkpoint = "checkpoint"

[sink]
format = "kafka"
topic = "matches"
mode = "binary"

[late]
format = "kafka"
servers = "three:9092"
topic = "late"

[rejected]
format = "parquet"
path = "rejected"
"""


def test_sinks_are_on_the_servers_of_the_source_unless_they_say_otherwise() -> None:
    config = parse_config(GOOD)

    assert config.late is not None
    assert config.servers_of(config.sink) == "one:9092,two:9092"
    assert config.servers_of(config.late) == "three:9092"
    assert config.uses_kafka


@pytest.mark.parametrize(
    ("part", "instead", "told"),
    [
        ('servers = "one:9092,two:9092"', "", "needs `servers`"),
        ('topics = ["readings"]', "", "either `topics`.*or `pattern`"),
        ('topics = ["readings"]', 'topics = ["a"]\npattern = "a.*"', "either `topics`"),
        ('topics = ["readings"]', 'topics = ["a"]\npath = "a"', "`path`.*no meaning.*`kafka`"),
        ('topics = ["readings"]', 'topics = ["a"]\nstart = "now"', "invalid enum value"),
        ('topic = "matches"', "", r"`\[sink\]` of format `kafka` needs a `topic`"),
        ('mode = "binary"', 'mode = "avro"', r"in `\[sink.mode\]`"),
        ('[late]\nformat = "kafka"', '[late]\nformat = "kafak"', "`kafak`.*`kafka`"),
        ('path = "rejected"', 'topic = "rejected"', "`topic`.*no meaning.*`parquet`"),
        ("[stream]", "[columns]\ntype = 'kind'\n[stream]", "`\\[columns\\]` is for sources"),
        ("[stream]", "[stream]\narrival = 'offset'", "`arrival` is for sources"),
    ],
)
def test_a_mistake_is_told_with_its_place(part: str, instead: str, told: str) -> None:
    assert part in GOOD

    with pytest.raises(UsageError, match=told):
        parse_config(GOOD.replace(part, instead, 1))


@pytest.mark.parametrize("table", ["late", "rejected"])
def test_a_topic_of_outputs_needs_other_places_for_what_is_no_output(table: str) -> None:
    without = GOOD[: GOOD.index(f"[{table}]")]
    without += GOOD[GOOD.index("[rejected]") :] if table == "late" else ""

    with pytest.raises(UsageError, match=rf"add `\[{table}\]`"):
        parse_config(without)
