"""How databases look for publications: by the index that each kind of question has, never by all.

Every statement that a question runs is planned again by the database itself, with its values. A
plan that scans a table is a failure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event

from ensue.history import History
from tests.history.test_publications import publication

X = publication(99_999, 59, data={"n": 1, "kind": "k1"}, endtime="2024-01-01T01:00:00Z")
STORED = 3_000


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[History]:
    path = tmp_path_factory.mktemp("plans") / "history.db"
    with History.open(f"sqlite:{path}") as history:
        history.add_all(_publications())
        yield history


def _publications() -> Iterator[dict[str, Any]]:
    for number in range(STORED):
        second = number % 59
        data = {"n": number, "kind": f"k{number % 7}"}
        end = f"2024-01-01T00:{second // 2:02}:59Z"
        yield publication(number, second, data=data, endtime=end)


@pytest.mark.parametrize(
    ("text", "indexes"),
    [
        ("start AFTER(10 s) (n = -1)", {"ensue_events_finish"}),
        ("end AFTER (n < -1 OR kind = 'none')", {"ensue_events_finish", "ensue_entries"}),
        ("end BEFORE(10 s) (TRUE)", {"ensue_events_start"}),
        ("start DURING (kind = 'none')", {"ensue_events_span", "ensue_entries"}),
        ("OVERLAPPED_BY (kind LIKE 'none%')", {"ensue_events_span", "ensue_entries"}),
        ("MEETS (TRUE)", {"ensue_events_start"}),
        ("n FILTER(=, 200) (kind = 'k3' AND n > 2990)", {"ensue_entries"}),
        ("n FILTER(>) (kind = 'none')", {"ensue_entries"}),
    ],
)
def test_a_term_is_answered_by_indexes(text: str, indexes: set[str], filled: History) -> None:
    with _planned(filled) as plans:
        filled.matches(text, X)

    assert indexes <= _indexes_in(plans), plans
    assert not [line for line in plans if "SCAN ensue_" in line], plans


@pytest.mark.parametrize(
    ("ask", "index"),
    [
        (lambda history: history.find("n = 17"), "ensue_entries"),
        (lambda history: history.find("kind LIKE 'k3%' AND n < 40"), "ensue_entries"),
        (lambda history: history.find("n IN (1, 2, 3)"), "ensue_entries"),
        (
            lambda history: history.find(since="2024-01-01T00:00:30Z", limit=5),
            "ensue_events_start",
        ),
        (
            lambda history: history.joined(publication(5, 50, phase="end")),
            "ensue_recent USING PRIMARY KEY (half",
        ),
    ],
)
def test_a_search_is_answered_by_indexes(
    ask: Callable[[History], object], index: str, filled: History
) -> None:
    with _planned(filled) as plans:
        ask(filled)

    assert index in " ".join(plans), plans
    assert not [line for line in plans if "SCAN ensue_" in line], plans


def test_a_publication_has_no_index_of_its_number_beside_its_row(tmp_path: Path) -> None:
    with History.open(f"sqlite:{tmp_path / 'history.db'}") as history, _planned(history) as plans:
        history.add_all(publication(number, number) for number in range(9))
        history.find("type = 'Reading'")

    assert not [line for line in plans if "autoindex_ensue_events_2" in line]


@pytest.mark.parametrize("server", ["postgresql", "mysql"])
def test_a_server_plans_by_indexes_too(server: str, address: Callable[[str], str]) -> None:
    with History.open(address("mariadb" if server == "mysql" else server)) as history:
        history.add_all(_publications())
        engine: Engine = history._store._engine  # type: ignore[attr-defined]
        with engine.connect() as connection:
            analyze = "ANALYZE TABLE" if server == "mysql" else "ANALYZE"
            for table in ("ensue_events", "ensue_entries"):
                connection.exec_driver_sql(f"{analyze} {table}")
            connection.commit()
        with _planned(history, "EXPLAIN ") as plans:
            history.matches("start AFTER(2 s) (n = -1)", X)
            history.find("n = 17")

    whole = " ".join(plans)
    assert "ensue_events_finish" in whole, plans
    assert "ensue_entries_pkey" in whole or "PRIMARY" in whole, plans


@contextmanager
def _planned(history: History, explain: str = "EXPLAIN QUERY PLAN ") -> Iterator[list[str]]:
    """The lines of the plans of all SELECTs that run meanwhile."""
    engine: Engine = history._store._engine  # type: ignore[attr-defined]
    plans: list[str] = []

    def plan(
        connection: Any, cursor: Any, statement: str, values: Any, context: Any, is_many: bool
    ) -> None:
        if statement.lstrip("( \n").startswith("SELECT") and "ensue_state" not in statement:
            other = connection.connection.cursor()
            other.execute(explain + statement, values)
            plans.extend(" ".join(map(str, row)) for row in other.fetchall())
            other.close()

    event.listen(engine, "before_cursor_execute", plan)
    try:
        yield plans
    finally:
        event.remove(engine, "before_cursor_execute", plan)


def _indexes_in(plans: list[str]) -> set[str]:
    tables = ("ensue_events_start", "ensue_events_finish", "ensue_events_span")
    found = {each for each in tables if any(each in line for line in plans)}
    if any("SEARCH ensue_entries USING PRIMARY KEY (entry" in line for line in plans):
        found.add("ensue_entries")
    return found
