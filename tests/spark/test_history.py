"""A `parquet:` history as a DataFrame, and a library replayed over it on Spark."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

import ensue
from ensue.errors import UsageError
from ensue.events.event import Event
from ensue.history import History
from ensue.spark import correlate
from ensue.spark.history import read_history, replayed

LIBRARY = ensue.parse("""
eventtype Login { attribute string user; attribute boolean failed; }
eventtype Alarm { attribute string user; }
Alarm correlation Guessing (Login wrong where failed = TRUE, Login right where failed = FALSE)
    tries:(wrong{2} ; right) within 10 s by user
{
    case tries: push new Alarm { user = right.user };
}
""")
SECOND = 1_000_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Several files; of the events of one second, the order of arrival is all that tells."""
    path, random = tmp_path_factory.mktemp("history"), Random(1)
    with History.open(f"parquet:{path}") as history:
        for first in range(0, 300, 50):
            history.add_all(
                Event(
                    f"e{number}",
                    "test",
                    "Login",
                    number // 10 * SECOND,
                    {"user": random.choice(("ann", "bob")), "failed": random.random() < 0.6},
                    {"rank": number} if number > 200 else {},
                )
                for number in range(first, first + 50)
            )
    return path


def test_spark_puts_out_what_every_engine_does(spark: SparkSession, folder: Path) -> None:
    with History.open(f"parquet:{folder}") as history:
        for since, until in ((None, None), (5 * SECOND, 20 * SECOND)):
            expected = list(history.backtest(LIBRARY, since, until))
            assert expected
            assert list(replayed(str(folder), LIBRARY, since, until)) == expected


def test_the_folder_is_a_dataframe_of_events(spark: SparkSession, folder: Path) -> None:
    events = read_history(spark, str(folder))
    found = correlate(events, LIBRARY, arrival="arrival")

    assert events.count() == 300
    assert events.where("ce_rank is not null").count() == 99
    assert {row["user"] for row in found.select("user").collect()} == {"ann", "bob"}


def test_rules_that_ask_the_history_are_not_for_spark(spark: SparkSession, folder: Path) -> None:
    asking = ensue.parse("""
    eventtype Login { attribute string user; }
    Login correlation Again (Login a where start AFTER(2 s) (user = 'ann')) x:(a)
    {
        case x: push a;
    }
    """)
    with pytest.raises(UsageError, match="not replayed on Spark"):
        list(replayed(str(folder), asking))
    with pytest.raises(UsageError, match="no history can be asked, event by event, and `Again`"):
        correlate(spark.read.parquet(str(folder)), asking)
