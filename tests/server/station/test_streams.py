"""Order and lateness of the stream; histories of other kinds; ontologies; changes that ask."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import httpx
import pytest

import ensue
from ensue.history import History
from ensue.knowledge import SAMPLES
from tests.server.live import RULES, ServerProcess, reading, serving, settings

ASKING = RULES.replace("celsius > 60", "celsius > 60 AND start AFTER(30 s) (celsius < 30)")


def ids(outputs: list[dict[str, Any]]) -> list[str]:
    return sorted(each["event"]["id"] for each in outputs)


def test_an_event_that_comes_too_late_is_kept_counted_and_in_the_stream() -> None:
    with serving(settings()) as live:
        live.put()
        live.publish([reading(1, "a", 20, 100), reading(2, "a", 70, 50), reading(3, "a", 70, 101)])
        assert live.client.get("/v1/libraries/heat").json()["late"] == 1
        assert live.client.get("/v1/figures").json()["late"] == 1
        assert [each["event"]["causes"] for each in live.outputs()] == ["e1,e3"]
        found = live.client.get("/v1/history").json()["events"]
        assert [each["id"] for each in found] == ["e2", "e1", "e3"]
        late = live.station.journal.page(0, 100)
        assert [each.id for each in late if each.kind == 3] == ["e2"]


def test_events_are_put_in_order_within_the_lateness_also_across_a_kill(tmp_path: Path) -> None:
    events = [reading(n, f"s{n % 5}", 20 if n // 5 % 2 else 70, n / 2) for n in range(300)]
    right = sorted(each.id for each in ensue.parse(RULES).run(events))
    rng = random.Random(3)
    shuffled = sorted(events, key=lambda each: int(each["id"][1:]) / 2 + rng.uniform(0, 4))
    last = reading(999, "end", 40, 500)
    server = ServerProcess(tmp_path, 'lateness = "5 s"\n')
    put = httpx.put(
        f"{server.url}/v1/libraries/heat", content=RULES, headers={"Content-Type": "text/plain"}
    )
    assert put.status_code == 201
    for begin in range(0, 300, 30):
        answer = httpx.post(f"{server.url}/v1/events", json=shuffled[begin : begin + 30])
        assert answer.json()["accepted"] == 30
        if begin in (60, 150, 210):
            server.kill()
            server = ServerProcess(tmp_path, 'lateness = "5 s"\n')
    httpx.post(f"{server.url}/v1/events", json=[last])
    outputs = httpx.get(f"{server.url}/v1/outputs?limit=1000").json()["outputs"]
    assert server.stop() == 0
    assert ids(outputs) == right


@pytest.mark.parametrize("url", ["memory:", "parquet:folder", "sqlite:own.db"])
def test_any_history_is_filled_asked_and_filled_again_after_a_restart(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = settings(tmp_path / "data", history={"url": url})
    events = [reading(n, "a", 20 if n % 2 else 70) for n in range(20)]
    with serving(given) as live:
        live.put(ASKING)
        live.publish(events[:10])
        first = ids(live.outputs())
    with serving(given) as live:
        live.publish(events[10:])
        found = live.client.get("/v1/history", params={"filter": "celsius > 60"}).json()["events"]
        assert [each["id"] for each in found] == [f"e{n}" for n in range(0, 20, 2)]
        outputs = ids(live.outputs())
    with History.open("memory:") as history:
        right = sorted(each.id for each in ensue.parse(ASKING).run(events, history=history))
    assert first
    assert set(first) <= set(right)
    assert outputs == right


def test_rules_keep_their_state_when_a_change_begins_and_ends_to_ask_the_history() -> None:
    more = (
        "\nReading correlation Other (Reading r where celsius > 99"
        " AND start AFTER(9 s) (celsius < 30)) r { case true: push r; }"
    )
    with serving(settings()) as live:
        live.put()
        live.publish([reading(1, "a", 20)])
        assert live.put(RULES + more)["kept"] == ["Rise"]
        assert live.station.asks
        live.publish([reading(2, "a", 70), reading(3, "b", 20), reading(4, "b", 100)])
        assert sorted(each["correlation"] for each in live.outputs()) == ["Other", "Rise", "Rise"]
        live.publish([reading(5, "c", 20)])
        assert live.put()["kept"] == ["Rise"]
        assert not live.station.line.call(lambda: live.station.asks).result(10)
        live.publish([reading(6, "c", 70)])
        assert len(live.outputs(correlation="Rise")) == 3
        found = live.client.get("/v1/history").json()["events"]
        assert len(found) == 6


def test_asking_needs_the_order_of_arrival() -> None:
    with serving(settings(lateness="1 s")) as live:
        answer = live.client.put(
            "/v1/libraries/heat", content=ASKING, headers={"Content-Type": "text/plain"}
        )
    assert answer.status_code == 422
    assert "lateness" in answer.text


def test_rules_and_filters_ask_the_ontology_and_it_is_read_again(tmp_path: Path) -> None:
    wine = tmp_path / "wine.ttl"
    wine.write_text((SAMPLES / "wine.ttl").read_text())
    rules = """
    eventtype Sold { attribute string kind; };
    eventtype Red { attribute string kind; };
    Red correlation Reds (Sold s where kind IS_A wine:RedWine) s {
        case true: push new Red { kind = s.kind };
    }
    """

    def sold(number: int, kind: str) -> dict[str, Any]:
        return {"id": str(number), "source": "shop", "type": "Sold", "data": {"kind": kind},
                "time": f"2026-01-01T00:00:0{number}Z"}  # fmt: skip

    with serving(settings(ontology={"files": [str(wine)]})) as live:
        about = live.client.get("/v1/ontology").json()
        assert about["loaded"]
        assert about["concepts"] > 10
        live.put(rules, "wines")
        live.publish([sold(1, "wine:Barolo"), sold(2, "wine:Riesling")])
        assert [each["event"]["data"]["kind"] for each in live.outputs()] == ["wine:Barolo"]
        query = {"filter": "kind IS_A wine:RedWine"}
        found = live.client.get("/v1/history", params=query).json()["events"]
        assert [each["id"] for each in found] == ["1"]
        again = live.client.post("/v1/ontology/reload").json()
        assert again["generation"] == about["generation"] + 1
        unknown = live.client.put(
            "/v1/libraries/x",
            content=rules.replace("wine:RedWine", "wine:RedWhine"),
            headers={"Content-Type": "text/plain"},
        )
        assert unknown.status_code == 422
        assert "RedWhine" in unknown.text
