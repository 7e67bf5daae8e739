"""Port predicates that ask an ontology, on Spark."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import ensue
from ensue.knowledge import SAMPLES, Ontology
from ensue.spark import correlate, explain

RULES = """
eventtype Sale { attribute string wine; attribute sequence<string> basket; attribute string shop; };
eventtype Pair { attribute string first, second; };
Pair correlation RedThenDry (Sale a where wine IS_A wine:RedWine,
                             Sale b where ONTPROP<wine:hasSugar>(wine) = wine:Dry)
    a ; b by shop
{ case true: push new Pair { first = a.wine, second = b.wine }; }

Pair correlation WhiteBaskets (Sale c where basket IS_A ONLY (WhiteWine, RoseWine)) c
{ case true: push new Pair { first = c.wine }; }
"""
WINES = [
    *("wine:HouseRed", "ClosDuMoulinChablis", "http://example.org/wine#CascinaBellaBarolo"),
    *("beer", "SummerRose", "<http://example.org/wine#KettenRiesling>", None),
]
START = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
SCHEMA = "id string, type string, time timestamp, wine string, basket array<string>, shop string"


def _rows() -> list[tuple[Any, ...]]:
    rows = []
    for number in range(200):
        wine = WINES[number * 7 % 5 if number % 3 else number % 7]
        basket = [each for each in WINES[number % 4 : number % 4 + number % 3] if each]
        time = START + timedelta(seconds=number)
        rows.append((f"e{number}", "Sale", time, wine, basket, f"s{number % 3}"))
    return rows


def _found(outputs: DataFrame) -> list[tuple[Any, ...]]:
    columns = ["correlation", "trigger", "causes", "first", "second"]
    return sorted(tuple(row) for row in outputs.select(*columns).collect())


def test_concepts_are_asked_on_spark_as_in_the_reference_engine(spark: SparkSession) -> None:
    library = ensue.parse(RULES, ontology=Ontology.load(SAMPLES / "wine.ttl"))
    rows = _rows()
    events = [
        {
            "id": id_,
            "source": "s",
            "type": type_,
            "time": time.isoformat(),
            "data": {"wine": wine, "basket": basket, "shop": shop},
        }
        for id_, type_, time, wine, basket, shop in rows
    ]
    expected = sorted(
        (
            str(each.extensions["correlation"]),
            str(each.extensions["trigger"]),
            str(each.extensions["causes"]),
            each.data["first"],
            each.data.get("second"),
        )
        for each in library.run(events, engine="reference")
    )

    found = _found(correlate(spark.createDataFrame(rows, SCHEMA), library))

    assert len(expected) > 40
    assert found == expected


def test_concepts_of_a_text_are_a_set_that_spark_looks_up(spark: SparkSession) -> None:
    library = ensue.parse(RULES, ontology=Ontology.load(SAMPLES / "wine.ttl"))

    frame = spark.createDataFrame(_rows(), SCHEMA)
    plan = explain(frame, library, correlations=["RedThenDry"], spark_plan=True)

    assert "wine#HouseRed" in plan
    assert "INSET" in plan
    assert "in Python" not in plan
