"""Libraries that come, change and go while events flow; dry runs; machines; reasons."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.server.live import RULES, Live, reading, serving, settings

SECOND = (
    RULES
    + """
Hot correlation Twice (Reading high where celsius > 60) high{2} by sensor
{
    case true: push new Hot { sensor = high.sensor };
}
"""
)


@pytest.fixture
def live() -> Iterator[Live]:
    with serving(settings()) as running:
        yield running


def counts(live: Live) -> dict[str, int]:
    return {each["rule"]: each["outputs"] for each in live.client.get("/v1/rules").json()}


def test_a_put_takes_effect_at_once_and_unchanged_rules_keep_their_state(live: Live) -> None:
    first = live.put(RULES)
    assert (first["version"], first["added"]) == (1, ["Rise"])
    live.publish([reading(1, "a", 20)])

    second = live.put(SECOND)
    assert (second["version"], second["kept"], second["added"]) == (2, ["Rise"], ["Twice"])
    live.publish([reading(2, "a", 70)])
    assert counts(live) == {"Rise": 1, "Twice": 0}

    third = live.put(SECOND.replace("celsius < 30", "celsius < 25"))
    assert (third["kept"], third["changed"]) == (["Twice"], ["Rise"])
    live.publish([reading(3, "a", 71)])
    assert counts(live)["Twice"] == 1


def test_a_text_that_did_not_change_is_no_new_version(live: Live) -> None:
    live.put(RULES)
    again = live.put(RULES)

    assert (again["version"], again["is_new"]) == (1, False)
    assert len(live.client.get("/v1/libraries/heat/versions").json()) == 1


def test_a_put_with_mistakes_tells_all_of_them_and_changes_nothing(live: Live) -> None:
    live.put(RULES)
    answer = live.client.put(
        "/v1/libraries/heat",
        content=RULES.replace("Reading low", "Raeding low").replace("high.sensor", "hihg.sensor"),
        headers={"Content-Type": "text/plain"},
    )

    assert answer.status_code == 422
    found = {each["code"]: each for each in answer.json()["diagnostics"]}
    assert found["unknown-type"]["hint"] == "did you mean `Reading`?"
    assert len(found) == 2
    assert all(each["line"] and each["column"] for each in found.values())
    live.publish([reading(1, "a", 20), reading(2, "a", 70)])
    assert counts(live) == {"Rise": 1}


def test_a_put_tells_warnings(live: Live) -> None:
    never = RULES.replace("low ; high", "low ; (high + low)").replace(
        "celsius > 60", "celsius > 60 AND celsius < 10"
    )
    warnings = live.put(never)["warnings"]

    assert any(each["severity"] == "warning" for each in warnings)


def test_an_earlier_version_can_be_put_back(live: Live) -> None:
    live.put(RULES)
    live.put(SECOND)
    back = live.client.post("/v1/libraries/heat/rollback", json={"version": 1}).json()

    assert (back["version"], back["removed"], back["kept"]) == (3, ["Twice"], ["Rise"])
    versions = live.client.get("/v1/libraries/heat/versions").json()
    assert [(each["version"], each["in_force"]) for each in versions] == [
        (3, True),
        (2, False),
        (1, False),
    ]
    assert versions[0]["text"] == RULES
    missing = live.client.post("/v1/libraries/heat/rollback", json={"version": 9})
    assert missing.status_code == 404
    assert "there are 1 to 3" in missing.text


def test_a_disabled_library_rests_and_starts_afresh(live: Live) -> None:
    live.put(RULES)
    live.publish([reading(1, "a", 20)])
    live.client.post("/v1/libraries/heat/disable")
    assert live.client.get("/v1/rules").json() == []
    live.publish([reading(2, "a", 70)])
    live.client.post("/v1/libraries/heat/enable")
    live.publish([reading(3, "a", 70)])
    assert counts(live) == {"Rise": 0}
    live.publish([reading(4, "a", 20), reading(5, "a", 70)])
    assert counts(live) == {"Rise": 1}


def test_a_deleted_library_is_gone_and_can_be_put_again(live: Live) -> None:
    live.put(RULES)
    assert live.client.delete("/v1/libraries/heat").status_code == 204
    assert live.client.get("/v1/libraries/heat").status_code == 404
    assert live.put(RULES)["version"] == 2
    actions = [each["action"] for each in live.client.get("/v1/audit").json()]
    assert actions == ["put", "delete", "put"]


def test_changes_while_events_flow_lose_no_event(live: Live) -> None:
    live.put(RULES)
    ends = threading.Event()
    sent: list[dict[str, Any]] = []

    def load() -> None:
        number = 0
        while not ends.is_set():
            batch = [reading(number + n, "a", 70 if n % 2 else 20) for n in range(20)]
            live.publish(batch)
            sent.extend(batch)
            number += 20

    thread = threading.Thread(target=load)
    thread.start()
    for turn in range(15):
        live.put(SECOND if turn % 2 else RULES)
    ends.set()
    thread.join(20)

    # `Rise` was never changed: it has seen every event.
    assert counts(live)["Rise"] == len(sent) // 2


def test_a_dry_run_tells_how_often_on_which_keys_and_what_differs(live: Live) -> None:
    live.put(RULES)
    live.publish([reading(2 * n + i, f"s{n % 3}", 20 + 50 * i) for n in range(9) for i in (0, 1)])
    report = live.client.post(
        "/v1/libraries/heat/dry-run", json={"text": SECOND.replace("> 60", "> 65")}
    ).json()

    assert report["whole"]
    by_rule = {each["rule"]: each for each in report["rules"]}
    assert by_rule["Rise"]["outputs"] == 9
    assert sorted(by_rule["Rise"]["top_keys"]) == [["s0", 3], ["s1", 3], ["s2", 3]]
    assert by_rule["Twice"]["outputs"] == 3
    assert report["difference"]["both"] == 9
    assert (report["difference"]["only_new"], report["difference"]["only_in_force"]) == (3, 0)
    assert counts(live) == {"Rise": 9}
    span = live.client.post(
        "/v1/libraries/heat/dry-run", json={"since": "2026-01-01T00:00:12Z"}
    ).json()
    assert (span["outputs"], span["difference"]) == (3, None)


def test_a_rule_is_drawn_with_its_keys_in_each_state(live: Live) -> None:
    live.put(RULES)
    live.publish([reading(n, f"s{n}", 20) for n in range(7)])
    rule = live.client.get("/v1/libraries/heat/rules/Rise").json()

    assert rule["svg"].startswith("<svg")
    assert rule["keys"] == 7
    assert 7 in rule["states"].values()
    assert all(f'data-node="{state}"' in rule["svg"] for state in rule["states"])
    assert "s3" in rule["some_keys"]


def test_why_a_rule_has_not_fired(live: Live) -> None:
    live.put(RULES)
    live.publish([reading(1, "a", 20), reading(2, "b", 40)])
    path = "/v1/libraries/heat/rules/Rise/why"
    (waiting,) = live.client.get(path, params={"key": "a"}).json()["reasons"]
    (unread,) = live.client.get(path, params={"key": "zz"}).json()["reasons"]

    assert waiting["done"] == [{"part": "`low`", "time": "2026-01-01T00:00:01Z", "event": "e1"}]
    assert "high" in waiting["waits_for"]
    assert not unread["started"]


def test_an_output_is_opened_to_its_causes(live: Live) -> None:
    live.put(RULES)
    live.publish([reading(1, "a", 20), reading(2, "b", 40), reading(3, "a", 70)])
    (output,) = live.outputs()
    opened = live.client.get(f"/v1/outputs/{output['position']}").json()

    assert [each["id"] for each in opened["causes"]] == ["e1", "e3"]
    assert [each["event"]["data"]["celsius"] for each in opened["causes"]] == [20, 70]
    assert opened["trigger"] == "e3"
    assert live.client.get("/v1/outputs/1").status_code == 404


THRICE = """
eventtype Reading { attribute string sensor; attribute double celsius; };
eventtype Hot { attribute string sensor; };
eventtype Alarm { attribute string sensor; };
Hot correlation Rises (Reading low where celsius < 30, Reading high where celsius > 60)
    low{3} ; high by sensor
{ case true: push new Hot { sensor = high.sensor }; }
Alarm correlation Alone (Hot hot from Rises) hot by sensor
{ case true: push new Alarm { sensor = hot.sensor }; }
"""


def test_all_events_that_led_to_an_output_are_found_again(live: Live) -> None:
    live.put(THRICE)
    sent = [reading(n, "ab"[n % 2], 20) for n in range(1, 8)]
    live.publish(sent)
    live.publish([reading(8, "a", 40), reading(9, "a", 70)])
    alarm, hot = live.outputs()
    opened = live.client.get(f"/v1/outputs/{hot['position']}").json()
    why = live.client.get(f"/v1/outputs/{hot['position']}/why").json()

    assert len(opened["causes"]) == 2
    assert [each["id"] for each in why["causes"]] == ["e2", "e4", "e6", "e9"]
    assert {each["part"] for each in why["causes"]} == {"`low`", "`high`"}
    assert why["read"] == 9
    assert why["whole"]
    assert "`low` was matched by event `e4`" in why["why"]

    above = live.client.get(f"/v1/outputs/{alarm['position']}/why").json()
    (cause,) = above["causes"]
    assert (cause["kind"], cause["seq"]) == ("output", hot["position"])

    few = live.client.get(f"/v1/outputs/{hot['position']}/why", params={"events": 2}).json()
    assert few["why"] is None
    assert few["causes"] == []
    assert live.client.get("/v1/outputs/1/why").status_code == 404
    live.client.post("/v1/libraries/heat/disable")
    resting = live.client.get(f"/v1/outputs/{hot['position']}/why")
    assert resting.status_code == 404
    assert "enable it" in resting.json()["detail"]


def test_the_playground_gives_outputs_reasons_and_findings(live: Live) -> None:
    lines = [
        '0 Reading {"sensor": "a", "celsius": 20.0}',
        '5 Reading {"sensor": "a", "celsius": 70.0}',
    ]
    events = "\n".join([*lines, "x", ""])
    played = live.client.post("/v1/playground", json={"library": RULES, "events": events}).json()

    assert [each["event"]["type"] for each in played["outputs"]] == ["Hot"]
    assert "`low` was matched by event `1`" in played["outputs"][0]["why"]
    assert [(each["kind"], each["number"]) for each in played["outputs"][0]["causes"]] == [
        ("event", 0), ("event", 1),
    ]  # fmt: skip
    assert played["problems"][0]["line"] == 3
    assert played["machines"][0]["svg"].startswith("<svg")
    wrong = live.client.post("/v1/playground", json={"library": "eventtype A {", "events": ""})
    assert wrong.json()["diagnostics"]
    assert live.client.get("/v1/figures").json()["events"] == 0


def test_the_playground_tells_which_events_and_outputs_led_to_an_output(live: Live) -> None:
    lines = [f'{n} Reading {{"sensor": "a", "celsius": {c}}}' for n, c in enumerate((1, 50, 2, 3))]
    events = "\n".join(["# all but the second", *lines, '9 Reading {"sensor": "a", "celsius": 70}'])
    played = live.client.post("/v1/playground", json={"library": THRICE, "events": events}).json()
    hot, alarm = played["outputs"]

    assert [each["number"] for each in hot["causes"]] == [0, 2, 3, 4]
    assert [each["kind"] for each in hot["causes"]] == ["event"] * 4
    assert [(each["kind"], each["number"]) for each in alarm["causes"]] == [("output", 0)]


def test_limits_refuse_by_name() -> None:
    with serving(settings(libraries=1, correlations=1, library_bytes=2000)) as live:
        live.put(RULES)
        for text, name, limit in (
            (RULES, "other", "libraries"),
            (SECOND, "heat", "correlations"),
            (RULES + "//" + "x" * 2000, "heat", "library_bytes"),
        ):
            answer = live.client.put(
                f"/v1/libraries/{name}", content=text, headers={"Content-Type": "text/plain"}
            )
            assert (answer.status_code, answer.json()["limit"]) == (422, limit)


def test_timers_that_are_long_due_leave_events_their_turn() -> None:
    often = (
        RULES.replace("(Reading low", "(every 1 s tick, Reading low")
        .replace("low ; high", "low ; high || tick")
        .replace("high.sensor", "low.sensor")
    )
    with serving(settings(clock="wall")) as live:
        live.put(often)
        live.publish([reading(1, "a", 20)])
        answer = live.publish([reading(2, "a", 20)])
        assert answer["accepted"] == 1
        assert live.client.get("/v1/rules").status_code == 200
        live.client.delete("/v1/libraries/heat")
        entries = live.station.journal.page(0, 10_000)
        times = [int(each.body) for each in entries if each.kind == 2]
        assert times == sorted(times)


def test_the_wall_clock_fires_timers_when_no_event_does() -> None:
    quiet = (
        RULES.replace("low ; high", "low ; timeout(300 ms)")
        .replace("high.sensor", "low.sensor")
        .replace(", Reading high where celsius > 60", "")
    )
    with serving(settings(clock="wall")) as live:
        live.put(quiet)
        event = reading(1, "a", 20)
        del event["time"]
        live.publish([event])
        for _ in range(200):
            if live.outputs():
                break
            threading.Event().wait(0.02)
        (output,) = live.outputs()
    assert output["event"]["trigger"] == "timer"
