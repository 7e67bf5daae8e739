"""The console in a real browser: clicked, typed into and looked at, on a screen and on a phone.

Needs Chromium (`tests/servers/install.sh` installs it on Debian). With `ENSUE_PICTURES=1` the
pictures of the documentation are taken anew.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.server.live import RULES, Live, reading, serving, settings

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
PICTURES = Path(__file__).parents[3] / "docs" / "pictures"

NEEDS_CHROMIUM = pytest.mark.skipif(
    CHROMIUM is None and os.environ.get("CI") != "true", reason="there is no Chromium"
)
pytestmark = NEEDS_CHROMIUM

SCREEN = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 780}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def demo() -> Iterator[Live]:
    with serving(settings(demo=True, clock="wall")) as running:
        yield running


@pytest.fixture(scope="module")
def live() -> Iterator[Live]:
    with serving(settings()) as running:
        running.put()
        running.publish([reading(n, f"s{n % 4}", 20) for n in range(8)])
        running.publish([reading(8, "s1", 70), reading(9, "s2", 45)])
        yield running


class Opened:
    """A page that collects what goes wrong in it, and where it sends requests."""

    def __init__(
        self, browser: Browser, live: Live | Shown, path: str = "", **context: Any
    ) -> None:
        self.context = browser.new_context(viewport=context.pop("viewport", SCREEN), **context)
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(15_000)
        self.problems: list[str] = []
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("console", self._console)
        self.page.on("request", self._request)
        self.url = live.url
        self.page.goto(f"{live.url}/{path}")

    def _console(self, message: Any) -> None:
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.problems.append(message.text)

    def _request(self, request: Any) -> None:
        if not request.url.startswith((self.url, "data:", "blob:")):
            self.problems.append(f"a request to {request.url}")

    def picture(self, name: str) -> None:
        if os.environ.get("ENSUE_PICTURES"):
            self.page.screenshot(path=PICTURES / f"console-{name}.png")

    def close(self) -> None:
        self.context.close()
        assert self.problems == []


@pytest.fixture
def opening(browser: Browser) -> Iterator[Any]:
    opened: list[Opened] = []

    def make(live: Live | Shown, path: str = "", **context: Any) -> Opened:
        opened.append(Opened(browser, live, path, **context))
        return opened[-1]

    yield make
    for each in opened:
        each.close()


def write(page: Page, label: str, text: str) -> None:
    page.get_by_label(label, exact=True).fill(text)


def test_the_stream_is_filtered_paused_and_opened(demo: Live, opening: Any) -> None:
    opened = opening(demo)
    page: Page = opened.page
    rows = page.locator("tbody tr")
    expect(rows.nth(12)).to_be_visible(timeout=30_000)
    if os.environ.get("ENSUE_PICTURES"):
        expect(page.locator("tr.output").first).to_be_visible(timeout=60_000)
    opened.picture("stream")

    page.keyboard.press("/")
    expect(page.locator("#filter")).to_be_focused()
    page.keyboard.type("type = 'Reading' AND celsius > 0")
    expect(page).to_have_url(re.compile(r"filter=type"))
    page.wait_for_timeout(600)
    expect(page.locator("[role=status]").first).to_contain_text("received", timeout=20_000)
    received = rows.first.locator(".type")
    expect(received).to_contain_text("Reading")

    page.keyboard.press("Escape")
    expect(page.locator("#filter")).to_have_value("type = 'Reading' AND celsius > 0")
    page.keyboard.press("p")
    count = rows.count()
    expect(page.locator(".bar .note")).to_contain_text("held", timeout=20_000)
    assert rows.count() == count
    page.get_by_role("button", name="go on").click()
    expect(page.locator(".bar .note")).to_contain_text("received")

    rows.first.click()
    expect(page.locator("aside .json")).to_contain_text('"specversion"')


def test_a_filter_that_is_wrong_is_told_where(live: Live, opening: Any) -> None:
    page: Page = opening(live, "#/stream").page
    write(page, "filter in CESQL", "celsius > 3 AND")
    expect(page.locator("pre.problem")).to_contain_text("<filter>:1:")
    expect(page.locator("pre.problem")).to_contain_text("^")
    write(page, "filter in CESQL", "celsius > 1")
    expect(page.locator("pre.problem")).to_be_hidden()


def test_the_stream_begins_with_the_latest_and_shows_only_what_a_filter_finds(
    live: Live, opening: Any
) -> None:
    page: Page = opening(live, "#/stream").page
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(live.client.get("/v1/figures").json()["position"])
    page.keyboard.press("p")
    write(page, "filter in CESQL", "EXISTS correlation OR celsius > 60")
    expect(rows).to_have_count(2)
    expect(page.get_by_role("button", name="pause")).to_be_visible()
    # A filter that is half written leaves what is there.
    write(page, "filter in CESQL", "celsius > ")
    expect(page.get_by_role("alert")).to_contain_text("<filter>:1:")
    expect(rows).to_have_count(2)
    for each in ("outputs", "events"):
        page.get_by_label(each, exact=True).click()
    expect(page.get_by_label("events", exact=True)).to_be_checked()


def test_an_address_that_is_badly_encoded_shows_its_view(live: Live, opening: Any) -> None:
    page: Page = opening(live, "#/rules/%zz/Rise").page
    expect(page.locator(".problem")).to_contain_text("there is no library")


def test_a_view_is_in_the_address_and_can_be_saved(live: Live, opening: Any) -> None:
    opened = opening(live, "#/stream?filter=celsius%20%3E%2060")
    page: Page = opened.page
    expect(page.locator("#filter")).to_have_value("celsius > 60")
    page.keyboard.press("v")
    write(page, "name of this view", "hot ones")
    page.get_by_role("button", name="save this view").click()
    page.get_by_role("button", name="close").click()
    page.keyboard.press("2")
    expect(page).to_have_url(re.compile("#/rules"))
    page.reload()
    page.keyboard.press("v")
    page.get_by_role("link", name="hot ones").click()
    expect(page.locator("#filter")).to_have_value("celsius > 60")


def test_rules_show_counts_machines_keys_and_reasons(live: Live, opening: Any) -> None:
    page: Page = opening(live, "#/rules").page
    row = page.locator("tbody tr", has_text="Rise")
    expect(row.locator("td").nth(1)).to_have_text("1")
    expect(row).to_contain_text("for s1")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("#/rules/heat/Rise"))

    counts = page.locator("svg.machine .count text")
    expect(counts.first).to_have_text("3")
    live.publish([reading(20, "new", 20)])
    expect(page.locator("svg.machine .count text", has_text="4").first).to_be_visible()

    write(page, "key", "s2")
    expect(page.locator("article.reason")).to_contain_text("waits for")
    expect(page.locator("article.reason li.done")).to_contain_text("low by e2")
    live.client.post("/v1/libraries/heat/disable")
    live.client.post("/v1/libraries/heat/enable")


def test_the_key_of_a_question_is_in_the_address(live: Live, opening: Any) -> None:
    page: Page = opening(live, "#/rules/heat/Rise").page
    write(page, "key", "s2")
    expect(page).to_have_url(re.compile(r"#/rules/heat/Rise\?key=s2$"))
    other: Page = opening(live, page.url.removeprefix(live.url + "/")).page
    expect(other.locator("article.reason")).to_contain_text("key s2")


def test_a_rule_that_is_changed_is_drawn_anew(opening: Any) -> None:
    with serving(settings()) as live:
        live.put()
        opened = opening(live, "#/rules/heat/Rise")
        page: Page = opened.page
        expect(page.locator("pre.code")).to_contain_text("low ; high")
        live.put(RULES.replace("low ; high", "low ; low ; high"))
        expect(page.get_by_role("heading", level=1)).to_contain_text("version 2")
        expect(page.locator("pre.code")).to_contain_text("low ; low ; high")
        opened.close()


def test_links_in_a_row_lead_where_they_say_and_keep_the_focus(opening: Any) -> None:
    with serving(settings()) as live:
        live.put()
        live.publish([reading(0, "s1", 20), reading(1, "s1", 70)])
        opened = opening(live, "#/rules")
        page: Page = opened.page
        why = page.get_by_role("link", name="why")
        why.focus()
        page.wait_for_timeout(2_500)
        expect(why).to_be_focused()
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile(r"#/outputs/\d+$"))
        page.go_back()
        expect(page).to_have_url(re.compile(r"#/rules$"))
        opened.close()


def test_an_output_is_opened_to_its_causes_on_a_line_of_time(live: Live, opening: Any) -> None:
    opened = opening(live, "#/outputs")
    page: Page = opened.page
    page.locator("tbody tr", has_text="s1").first.locator("td.time").click()
    expect(page).to_have_url(re.compile(r"#/outputs/\d+"))
    expect(page.locator("svg.timeline .event")).to_have_count(2)
    expect(page.locator("svg.timeline .output")).to_have_count(1)
    expect(page.locator("svg.timeline .cause")).to_have_count(2)
    expect(page.locator("ol.causes li").first).to_contain_text("as low")
    opened.picture("output")
    page.locator("svg.timeline .event").first.click()
    expect(page.locator(".json").last).to_contain_text('"celsius": 20')


@dataclass
class Shown:
    """A server that was started by hand."""

    url: str


@contextmanager
def demonstration(folder: Path) -> Iterator[Shown]:
    """`ensue serve`, as a newcomer starts it, but for the port."""
    errors = folder / "stderr.txt"
    with errors.open("w") as file:
        command = [sys.executable, "-m", "ensue", "serve", "--listen", "127.0.0.1:0"]
        process = subprocess.Popen(command, stderr=file, cwd=folder)
    try:
        while "ready" not in errors.read_text().split():
            assert process.poll() is None, errors.read_text()
            time.sleep(0.02)
        url = next(each for each in errors.read_text().split() if each.startswith("http"))
        yield Shown(url.rstrip("/"))
    finally:
        process.terminate()
        assert process.wait(60) == 0


def test_a_newcomer_has_a_rule_of_their_own_firing_within_two_minutes(
    tmp_path: Path, opening: Any
) -> None:
    """Above 5 s: a server as a newcomer starts it, and some 400 keys that are typed one by one."""
    begun = time.monotonic()
    with demonstration(tmp_path) as server:
        opened = opening(server)
        page: Page = opened.page
        # There is something to look at: events come, and a rule fires on them.
        expect(page.locator("td.data").first).to_be_visible()
        expect(page.get_by_text("A demonstration")).to_be_visible()
        page.get_by_role("link", name="playground", exact=True).click()
        expect(page.locator(".result h2")).to_have_text("1 output")
        opened.picture("playground")
        # A rule of one's own, typed key by key as people do.
        page.get_by_label("rules", exact=True).fill("")
        page.get_by_label("rules", exact=True).press_sequentially(
            "eventtype Reading { attribute string van; attribute double celsius; };\n"
            "eventtype Mine { attribute string van; };\n"
            "Mine correlation MyRule (Reading r where celsius > -50) r{2} by van\n"
            "{ case true: push new Mine { van = r.van }; }\n",
            delay=2,
            timeout=90_000,
        )
        page.get_by_label("events", exact=True).fill("")
        lines = [f'{n} Reading {{"van": "v", "celsius": 1.5}}' for n in (1, 2)]
        page.get_by_label("events", exact=True).press_sequentially(
            "\n".join(lines), delay=2, timeout=90_000
        )
        expect(page.locator(".outputs li")).to_contain_text("Mine at 2 s")
        # And on the server, over the events that come.
        page.once("dialog", lambda dialog: dialog.accept("mine"))
        page.get_by_role("button", name="put on the server").click()
        row = page.locator("tbody tr", has_text="MyRule")
        expect(row.locator("td").nth(1)).not_to_have_text("0", timeout=60_000)
        took = time.monotonic() - begun

    print(f"from `ensue serve` to a rule that fires: {took:.0f} s")
    assert took < 120


def test_the_playground_marks_mistakes_and_shares_a_link(live: Live, opening: Any) -> None:
    opened = opening(live, "#/playground")
    page: Page = opened.page
    expect(page.locator(".result h2")).to_have_text("1 output")
    rules = page.get_by_label("rules", exact=True)
    text = rules.input_value()
    rules.fill(text.replace("Done done)", "Dnoe done)"))
    expect(page.locator(".told .error").first).to_contain_text("there is no event type `Dnoe`")
    expect(page.locator(".told .error").first).to_contain_text("did you mean `Done`?")
    expect(page.locator(".marks .error").first).to_have_text("Dnoe")
    opened.picture("mistake")
    rules.fill(text.replace("failed{3}", "failed{2}"))
    expect(page.locator(".result h2")).to_have_text("2 outputs")

    write(page, "events", page.get_by_label("events", exact=True).input_value() + "never Failed\n")
    expect(page.locator(".told").nth(1)).to_contain_text("is no time")

    page.get_by_role("button", name="copy a link").click()
    expect(page).to_have_url(re.compile(r"#/playground\?s="))
    other = opening(live, page.url.removeprefix(live.url + "/")).page
    expect(other.get_by_label("rules", exact=True)).to_have_value(re.compile(r"failed\{2\}"))
    expect(other.locator(".result h2")).to_have_text("2 outputs")


def test_the_playground_draws_the_whole_run_and_an_output_opened_shows_why(
    live: Live, opening: Any
) -> None:
    page: Page = opening(live, "#/playground").page
    expect(page.locator("svg.timeline .event")).to_have_count(7)
    expect(page.locator("svg.timeline .event:not(.idle)")).to_have_count(4)
    expect(page.locator("svg.timeline .cause")).to_have_count(4)
    # The only output is open from the beginning.
    expect(page.locator(".outputs details[open]")).to_contain_text("because failed was matched")
    expect(page.locator("svg.timeline .event.shown")).to_have_count(4)

    rules = page.get_by_label("rules", exact=True)
    rules.fill(rules.input_value().replace("failed{3}", "failed{2}"))
    expect(page.locator("svg.timeline .output")).to_have_count(2)
    expect(page.locator(".outputs details[open]")).to_have_count(0)
    page.locator("svg.timeline .output").last.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".outputs details[open]")).to_have_count(1)
    expect(page.locator(".outputs details").last).to_have_attribute("open", "")
    expect(page.locator("svg.timeline .event.shown")).to_have_count(3)
    page.locator(".outputs summary").first.click()
    expect(page.locator(".outputs details").last).not_to_have_attribute("open", "")
    expect(page.locator("svg.timeline .output.shown")).to_have_count(1)
    page.locator(".outputs summary").first.click()
    expect(page.locator("svg.timeline.chosen")).to_have_count(0)

    page.locator("svg.timeline .event.idle").first.click()
    expect(page.locator(".picked")).to_contain_text("led to no output")
    page.locator("svg.timeline .event:not(.idle)").last.click()
    expect(page.locator(".picked")).to_contain_text("led to Warning at 31 s")


def test_every_example_of_the_playground_puts_something_out(live: Live, opening: Any) -> None:
    page: Page = opening(live, "#/playground").page
    choose = page.get_by_label("examples", exact=True)
    for number in range(choose.locator("option").count()):
        choose.select_option(index=number)
        page.wait_for_timeout(900)
        expect(page.locator(".result h2")).to_have_text(re.compile(r"^[1-9]\d* outputs?$"))
        expect(page.locator(".told .error")).to_have_count(0)


def test_a_library_is_changed_tried_put_and_put_back(opening: Any) -> None:
    with serving(settings()) as live:
        live.put()
        live.publish([reading(n, "a", 20 if n % 2 else 50) for n in range(10)])
        opened = opening(live, "#/libraries/heat")
        page: Page = opened.page
        text = page.get_by_label("the text of heat", exact=True)
        expect(text).to_have_value(RULES)
        text.fill(RULES.replace("> 60", "> 40"))
        page.get_by_role("button", name="try it").click()
        expect(page.get_by_text("It would have fired 4 times")).to_be_visible()
        expect(page.locator("dd.good")).to_have_text("+4")
        opened.picture("dry-run")
        page.get_by_role("button", name="put in force").click()
        expect(page.locator("#notice")).to_contain_text("version 2 is in force")
        live.publish([reading(20, "a", 20), reading(21, "a", 50)])
        assert len(live.outputs()) == 1
        page.get_by_role("button", name="put back").click()
        expect(page.get_by_text("version 1 again")).to_be_visible()
        live.publish([reading(22, "a", 20), reading(23, "a", 50)])
        assert len(live.outputs()) == 1
        opened.close()


def test_figures_and_gateways_are_shown(demo: Live, opening: Any) -> None:
    opened = opening(demo, "#/system")
    page: Page = opened.page
    expect(page.locator("svg.plot")).to_have_count(4)
    expect(page.locator(".series-0").first).to_contain_text("events")
    expect(page.get_by_text("the demonstration").first).to_be_visible()
    page.wait_for_timeout(2_000)
    opened.picture("system")
    page.keyboard.press("6")
    expect(page.get_by_role("heading", name="No gateway")).to_be_visible()


def test_a_channel_is_chosen_and_links_are_shown(opening: Any) -> None:
    given = settings(
        channels=[{"name": "alarms"}], links=[{"source": "main", "to": "alarms", "where": "true"}]
    )
    with serving(given) as running:
        running.put()
        running.publish([reading(0, "s1", 20), reading(1, "s1", 70)])
        opened = opening(running, "#/gateways")
        page: Page = opened.page
        expect(page.get_by_text("main → alarms")).to_be_visible()
        expect(page.get_by_text("well")).to_be_visible()
        opened.picture("channels")
        page.get_by_label("channel", exact=True).select_option("alarms")
        expect(page).to_have_url(re.compile("/channels/alarms/#/gateways"))
        expect(page.get_by_text("main → alarms")).to_be_visible()
        page.keyboard.press("1")
        expect(page.locator("#filter")).to_be_visible()
        running.client.post("/channels/alarms/v1/events", json=[reading(2, "here", 1.0)])
        expect(page.locator("td.data").first).to_contain_text("here")
        # Of `main` it has what the link brings over, and no more.
        expect(page.locator("td.data").filter(has_text="s1")).to_have_count(1)
        page.keyboard.press("2")
        expect(page.get_by_text("No rule runs")).to_be_visible()


def test_a_token_is_asked_for_once(opening: Any) -> None:
    token = {"name": "me", "secret": "a-secret-of-the-console", "roles": ["admin"]}
    with serving(settings(tokens=[token])) as live:
        opened = opening(live, "#/rules")
        page: Page = opened.page
        expect(page.locator("dialog")).to_have_count(1)
        page.locator("#token").fill("a-secret-of-the-console")
        page.get_by_role("button", name="use it").click()
        expect(page.get_by_text("No rule runs.")).to_be_visible()
        page.reload()
        expect(page.get_by_text("No rule runs.")).to_be_visible()
        assert page.locator("dialog").count() == 0
        page.goto(f"{live.url}/#/stream")
        expect(page.get_by_text("waiting for events")).to_be_visible()
        page.goto("about:blank")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_follow_the_system_and_can_be_chosen(demo: Live, opening: Any, scheme: str) -> None:
    opened = opening(demo, "#/rules/coldchain/WarmAfterDoor", color_scheme=scheme)
    page: Page = opened.page
    expect(page.locator("svg.machine")).to_be_visible()
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    is_dark = sum(map(int, re.findall(r"\d+", ground)[:3])) < 200
    assert is_dark is (scheme == "dark")
    if scheme == "dark":
        page.wait_for_timeout(1_500)
        opened.picture("rule-dark")
    page.keyboard.press("t")
    page.keyboard.press("t")
    chosen = page.evaluate("document.documentElement.dataset.theme")
    assert chosen == "dark"


def test_it_fits_a_phone(demo: Live, opening: Any) -> None:
    opened = opening(demo, viewport=PHONE, is_mobile=True, has_touch=True, device_scale_factor=2)
    page: Page = opened.page
    for view in ("stream", "rules", "outputs", "playground", "libraries", "system", "gateways"):
        page.goto(f"{demo.url}/#/{view}")
        page.wait_for_timeout(400)
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= PHONE["width"] + 1, view
        expect(page.locator("nav a[aria-current=page]")).to_be_in_viewport(ratio=0.9)
    page.goto(f"{demo.url}/#/stream")
    expect(page.locator("tbody tr").nth(3)).to_be_visible(timeout=20_000)
    page.wait_for_timeout(400)
    opened.picture("phone")


def test_the_way_past_the_head_of_the_page_stays_in_its_view(live: Live, opening: Any) -> None:
    page: Page = opening(live, "#/rules").page
    expect(page.locator("tr[data-row]").first).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    expect(page).to_have_url(re.compile(r"#/rules$"))
    page.keyboard.press("Tab")
    expect(page.locator("tr[data-row]").first).to_be_focused()


def test_everything_can_be_reached_by_keys(live: Live, opening: Any) -> None:
    page: Page = opening(live, "#/stream").page
    expect(page.locator("table")).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("heading", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    for number, view in enumerate(
        ("stream", "rules", "outputs", "playground", "libraries", "gateways", "system"), 1
    ):
        page.keyboard.press(str(number))
        expect(page).to_have_url(re.compile(f"#/{view}"))
        expect(page.locator("nav a[aria-current=page]")).to_have_attribute("data-view", view)
    for key, row in (("2", "rules/heat/Rise"), ("3", r"outputs/\d+"), ("5", "libraries/heat")):
        page.keyboard.press(key)
        expect(page.locator("tr[data-row]").first).to_be_visible()
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile(f"#/{row}$"))
    for each in page.locator("input, textarea, select, button").all():
        name = each.evaluate(
            "e => e.getAttribute('aria-label') || e.textContent || e.title || e.labels?.length"
        )
        assert name, each.evaluate("e => e.outerHTML")
