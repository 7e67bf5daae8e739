"""Two people change one thing: the second is told what the first did, and overwrites nothing."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from ensue.server.station.rules.differences import MOST_COMPARED, text_difference
from tests.server.live import RULES, Live, serving, settings

PLAIN = {"Content-Type": "text/plain"}
PATH = "/v1/libraries/heat"
WARMER = RULES.replace("> 60", "> 70")
COLDER = RULES.replace("< 30", "< 20")
TWICE = """
Hot correlation Twice (Reading high where celsius > 60) high{2} by sensor
{
    case true: push new Hot { sensor = high.sensor };
}
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Live]:
    with serving(settings(webhooks={"networks": ["127.0.0.0/8"]})) as running:
        yield running


@pytest.fixture
def live(server: Live) -> Iterator[Live]:
    yield server
    server.client.delete(PATH)


def put(live: Live, text: str, note: str = "", **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return live.client.put(PATH, content=text, params={"note": note}, headers=PLAIN | named)


def tag(live: Live) -> str:
    return live.client.get(PATH).headers["ETag"]


def test_an_edit_of_what_others_have_changed_is_refused_with_what_they_did(live: Live) -> None:
    put(live, RULES, "first")
    seen = tag(live)
    put(live, WARMER, "less noise", If_Match=seen)
    refused = put(live, COLDER, "mine", If_Match=seen)
    told = refused.json()

    assert refused.status_code == 412
    assert refused.headers["ETag"] == told["current"]["etag"] == tag(live)
    assert [each["note"] for each in told["since"]] == ["less noise"]
    assert told["current"]["text"] == WARMER
    assert "-Hot correlation Rise (Reading low where celsius < 30" in told["difference"]["unified"]
    assert "celsius > 70)" in told["difference"]["unified"]
    assert "less noise" in told["detail"]
    assert live.client.get(PATH).json()["text"] == WARMER

    merged = put(live, COLDER, "both", If_Match=refused.headers["ETag"])
    assert merged.status_code == 200
    assert merged.headers["ETag"] == tag(live)


def test_of_editors_who_begin_at_one_version_exactly_one_wins(live: Live) -> None:
    put(live, RULES)
    seen = tag(live)
    texts = [RULES.replace("> 60", f"> {60 + each}") for each in range(1, 9)]
    with ThreadPoolExecutor(8) as people:
        answers = list(people.map(lambda text: put(live, text, If_Match=seen), texts))

    (won,) = [each for each in answers if each.status_code == 200]
    assert [each.status_code for each in answers].count(412) == 7
    assert live.client.get(PATH).json()["version"] == won.json()["version"]


def test_a_name_that_is_taken_is_not_replaced_by_what_is_meant_to_be_new(live: Live) -> None:
    assert put(live, RULES, If_None_Match="*").status_code in (200, 201)
    refused = put(live, WARMER, If_None_Match="*")

    assert refused.status_code == 412
    assert "there is a library `heat` already" in refused.json()["detail"]
    assert put(live, RULES, If_None_Match="*").status_code == 412
    assert live.client.get(PATH).json()["text"] == RULES


def test_an_edit_of_a_library_that_was_deleted_is_refused(live: Live) -> None:
    put(live, RULES)
    seen = tag(live)
    live.client.delete(PATH)
    refused = put(live, WARMER, If_Match=seen)

    assert (refused.status_code, refused.json()["current"]) == (412, None)
    assert put(live, WARMER, If_Match="*").status_code == 412
    assert live.client.get(PATH).status_code == 404


def test_a_put_whose_answer_was_lost_may_come_again(live: Live) -> None:
    put(live, RULES)
    seen = tag(live)
    first = put(live, WARMER, If_Match=seen)
    again = put(live, WARMER, If_Match=seen)

    assert (first.json()["is_new"], again.json()["is_new"]) == (True, False)
    assert again.status_code == 200


@pytest.mark.parametrize("word", ["disable", "rollback", "delete"])
def test_no_change_of_a_library_goes_past_a_tag(live: Live, word: str) -> None:
    put(live, RULES)
    seen = tag(live)
    put(live, WARMER)
    headers = {"If-Match": seen}
    if word == "delete":
        answer = live.client.delete(PATH, headers=headers)
    else:
        body: Any = {"version": live.client.get(PATH).json()["version"]}
        given = {"json": body} if word == "rollback" else {}
        # The version before, by number: to put back the one in force would change nothing.
        if word == "rollback":
            body["version"] -= 1
        answer = live.client.post(f"{PATH}/{word}", headers=headers, **given)

    assert answer.status_code == 412
    assert (live.client.get(PATH).json()["text"], tag(live) != seen) == (WARMER, True)


def test_a_tag_tells_whether_a_library_is_enabled(live: Live) -> None:
    put(live, RULES)
    seen = tag(live)
    disabled = live.client.post(f"{PATH}/disable", params={"note": "holidays"})

    assert disabled.headers["ETag"] not in ("", seen)
    assert put(live, WARMER, If_Match=seen).status_code == 412
    live.client.post(f"{PATH}/enable")
    assert tag(live) == seen
    details = [each["detail"] for each in live.client.get("/v1/audit").json()]
    assert "holidays" in details


def test_a_reader_that_has_a_text_is_told_that_nothing_is_new(live: Live) -> None:
    put(live, RULES)
    known = live.client.get(PATH, headers={"If-None-Match": tag(live)})

    assert (known.status_code, known.content) == (304, b"")
    put(live, WARMER)
    assert live.client.get(PATH, headers=known.headers).status_code == 200


@pytest.mark.parametrize("given", ["heat", '"a', '"a" "b"', "W/x"])
def test_what_is_no_tag_is_refused(live: Live, given: str) -> None:
    refused = put(live, RULES, If_Match=given)

    assert refused.status_code == 400
    assert "list of tags in quotation marks" in refused.json()["detail"]


def test_a_weak_tag_matches_nothing(live: Live) -> None:
    put(live, RULES)

    assert put(live, WARMER, If_Match=f"W/{tag(live)}").status_code == 412
    assert put(live, WARMER, If_Match=f'"other", {tag(live)}').status_code == 200


def test_a_note_comes_with_each_version(live: Live) -> None:
    put(live, RULES, "first")
    put(live, WARMER, "less noise")
    version = live.client.get(PATH).json()["version"]
    back = {"version": version - 1, "note": "it was quiet at night, too"}
    live.client.post(f"{PATH}/rollback", json=back)
    listed = live.client.get(f"{PATH}/versions", params={"limit": 3}).json()

    assert [each["note"] for each in listed] == [
        f"version {version - 1} again: it was quiet at night, too",
        "less noise",
        "first",
    ]
    older = live.client.get(f"{PATH}/versions", params={"before": version, "limit": 1}).json()
    assert [each["version"] for each in older] == [version - 1]
    one = live.client.get(f"{PATH}/versions/{version}").json()
    assert (one["text"], one["note"], one["in_force"]) == (WARMER, "less noise", False)
    assert live.client.get(f"{PATH}/versions/999").status_code == 404
    assert live.client.get(f"{PATH}/versions/{10**30}").status_code == 404
    assert put(live, RULES, "x" * 1_001).status_code == 400


def test_a_text_is_compared_with_what_is_in_force_before_it_is_put(live: Live) -> None:
    put(live, RULES)
    difference = live.client.post(f"{PATH}/difference", content=RULES + TWICE, headers=PLAIN)
    told = difference.json()

    assert difference.headers["ETag"] == tag(live)
    assert (told["added_lines"], told["removed_lines"]) == (5, 0)
    assert told["rules"] == {"kept": ["Rise"], "changed": [], "added": ["Twice"], "removed": []}
    assert (told["from"]["author"], told["to"]) == ("anyone", None)
    assert live.client.get(PATH).json()["text"] == RULES
    broken = live.client.post(f"{PATH}/difference", content="eventtype", headers=PLAIN).json()
    assert (broken["rules"], broken["removed_lines"]) == (None, RULES.count("\n"))
    assert broken["diagnostics"][0]["severity"] == "error"
    new = live.client.post("/v1/libraries/other/difference", content=RULES, headers=PLAIN)
    assert (new.json()["from"], new.json()["rules"]["added"]) == (None, ["Rise"])
    assert "ETag" not in new.headers


def test_two_versions_are_compared(live: Live) -> None:
    first = put(live, RULES).json()["version"]
    put(live, WARMER)
    put(live, RULES + TWICE)
    latest = live.client.get(f"{PATH}/difference").json()
    both = live.client.get(f"{PATH}/difference", params={"from": first, "to": first + 2}).json()

    assert latest["rules"] == {
        "kept": [],
        "changed": ["Rise"],
        "added": ["Twice"],
        "removed": [],
    }
    assert both["rules"]["kept"] == ["Rise"]
    assert both["unified"].startswith(f"--- version {first}\n+++ version {first + 2}\n@@ ")


def test_a_difference_has_the_lines_and_numbers_of_diff() -> None:
    old = "".join(f"{each}\n" for each in range(20))
    new = old.replace("9\n", "nine\n", 1).replace("15\n", "")
    found = text_difference(old, new, "a", "b")

    assert found.unified.splitlines()[2:] == [
        "@@ -7,13 +7,12 @@",
        *(f" {each}" for each in (6, 7, 8)),
        "-9",
        "+nine",
        *(f" {each}" for each in (10, 11, 12, 13, 14)),
        "-15",
        *(f" {each}" for each in (16, 17, 18)),
    ]
    assert text_difference(old, old, "a", "b").unified == ""
    assert text_difference("a\n", "a", "a", "b").removed_lines == 1


def test_a_difference_of_long_texts_is_quick() -> None:
    old = "".join(f"{each % 7}\n" for each in range(10 * MOST_COMPARED))
    new = "".join(f"{each % 5}\n" for each in range(10 * MOST_COMPARED))
    found = text_difference(old, new, "a", "b")

    assert found.added_lines == found.removed_lines > 9 * MOST_COMPARED


def test_a_webhook_that_others_changed_is_not_overwritten(live: Live) -> None:
    path = "/v1/webhooks/pager"
    hook = {"url": "http://127.0.0.1:9/", "secret": "one-secret"}
    new = live.client.put(path, json=hook, headers={"If-None-Match": "*"})
    seen = new.headers["ETag"]
    again = live.client.put(path, json=hook, headers={"If-None-Match": "*"})
    other = live.client.put(path, json={**hook, "secret": "another"}, headers={"If-Match": seen})
    refused = live.client.put(path, json=hook, headers={"If-Match": seen})

    assert (new.status_code, again.status_code, other.status_code) == (200, 412, 200)
    # The secret alone makes another tag, and is not told.
    assert other.headers["ETag"] != seen
    assert refused.status_code == 412
    assert refused.json()["current"]["secret"] == "set"
    assert live.client.delete(path, headers={"If-Match": seen}).status_code == 412
    assert live.client.get(path).headers["ETag"] == other.headers["ETag"]
    assert live.client.delete(path).status_code == 204
    assert live.client.get(path).status_code == 404
