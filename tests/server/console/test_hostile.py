"""What events, rules and shared links hold is shown as text, whatever it says."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.server.console.opened import NEEDS_CHROMIUM
from tests.server.live import Live, reading, serving, settings

pytestmark = NEEDS_CHROMIUM

MARKUP = """"'><img src=x onerror="window.hit=1"><script>window.hit=1</script><b id=hit>x</b>"""
HOSTILE = """
eventtype Reading { attribute string sensor; attribute double celsius; };
eventtype Hot { attribute string sensor; };

Hot correlation Rise (
    Reading low where celsius < 30 AND sensor != '</text><img src=x onerror=hit()>',
    Reading high where celsius > 60 AND sensor != '<script>window.hit=1</script>'
)
    low ; high
    by sensor
{
    case true: push new Hot { sensor = high.sensor };
}
"""
WRONG = f"eventtype Reading {{ attribute string sensor; }}; // {MARKUP}\nHot correlation <b id=hit>"


@pytest.fixture(scope="module")
def hostile() -> Iterator[Live]:
    with serving(settings()) as running:
        note = {"note": MARKUP}
        answer = running.client.put(
            "/v1/libraries/heat",
            content=HOSTILE,
            params=note,
            headers={"Content-Type": "text/plain"},
        )
        assert answer.status_code == 201, answer.text
        events: list[dict[str, Any]] = [
            {**reading(n, MARKUP, 20 if n % 2 else 70), "id": f"{n}{MARKUP}", "source": MARKUP}
            for n in range(6)
        ]
        events.append({**reading(7, "a", 20), "type": f"T{MARKUP}", "subject": MARKUP})
        events.append({**reading(8, "a", 20), "partitionkey": MARKUP, "data": MARKUP})
        data = {"innerHTML": [MARKUP], "onclick": "hit()", "__proto__": {"x": 1}}
        events.append({**reading(9, "a", 20), "type": "Odd", "data": data})
        events.append({**reading(10, "a", 20), "data": {"sensor": 7, "celsius": MARKUP}})
        running.publish(events)
        yield running


def packed(value: Any) -> str:
    deflated = zlib.compressobj(9, zlib.DEFLATED, -15)
    data = deflated.compress(json.dumps(value).encode()) + deflated.flush()
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


LINKS: dict[str, Any] = {
    "rules": {
        "library": HOSTILE,
        "events": f'0 Reading {{"sensor": {json.dumps(MARKUP)}, "celsius": 1}}',
    },
    "mistakes": {"library": WRONG, "events": f"0 {MARKUP}\n{MARKUP}"},
    "other kinds": {"library": {"innerHTML": [MARKUP]}, "events": [MARKUP], "until": {}},
    "nothing": None,
    "a list": [MARKUP],
    "too much": {"library": "x" * 50_000_000, "events": ""},
}
PLACES = (
    "#/stream?after=0", "#/outputs", "#/rules", "#/rules/heat/Rise", "#/libraries", "#/history",
    "#/rules/heat/Rise?why=not", f"#/history/{MARKUP}", f"#/history?filter=sensor='{MARKUP}'",
    "#/libraries/heat", "#/system", f"#/rules/{MARKUP}/{MARKUP}", f"#/{MARKUP}", "#/outputs/<b>",
)  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_nothing_that_is_shown_becomes_markup(hostile: Live, opening: Any, place: str) -> None:
    opened = opening(hostile, place)
    opened.page.wait_for_timeout(700)

    unharmed(opened)


@pytest.mark.parametrize("name", LINKS)
def test_a_shared_link_brings_text_and_nothing_else(hostile: Live, opening: Any, name: str) -> None:
    opened = opening(hostile, f"#/playground?s={packed(LINKS[name])}")
    opened.page.wait_for_timeout(1_200)

    unharmed(opened)
    assert len(opened.page.content()) < 5_000_000


def test_an_output_is_opened_with_all_that_it_says(hostile: Live, opening: Any) -> None:
    found = hostile.outputs()
    opened = opening(hostile, f"#/outputs/{found[0]['position']}")
    expect(opened.page.locator("body")).to_contain_text("<b id=hit>")

    unharmed(opened)


def unharmed(opened: Any) -> None:
    page = opened.page
    assert page.evaluate("window.hit === undefined")
    assert page.locator("#hit").count() == 0
    # The one form of ours is that of a library's parameters.
    strange = "main img, main script, main iframe, main form:not(.panel), main object"
    assert page.locator(strange).count() == 0
    expect(page.locator("nav").first).to_be_visible()
    # Refusals of the server are told; nothing is thrown, and the policy has nothing to stop.
    assert [each for each in opened.problems if "Content Security Policy" in each] == []
