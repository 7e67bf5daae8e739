"""The tools for assistants, asked by the official client of a real process."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from mcp import Client, StdioServerParameters
from mcp.types import TextContent, TextResourceContents

from ensue.history import History

RULES = """eventtype Failed { attribute string user; };
eventtype Opened { attribute string user; };
eventtype Alert { attribute string user; };
Alert correlation Guessed (Failed f, Opened o) f{3} ; o within 1 min by user
{ case true: push new Alert { user = o.user }; }
Alert correlation Twice (Failed f, Opened o) f{2} ; o within 1 min by user
{ case true: push new Alert { user = o.user }; }
"""
Answer = TypeVar("Answer")


def events(*kinds: str) -> list[dict[str, Any]]:
    return [
        {"type": kind, "time": f"2024-05-06T07:00:{second:02}Z", "data": {"user": "ann"}}
        for second, kind in enumerate(kinds)
    ]


def asked(folder: Path, story: Callable[[Client], Awaitable[Answer]], *options: str) -> Answer:
    """Run a story with a fresh server that may read a folder."""

    async def run() -> Answer:
        server = StdioServerParameters(
            command=sys.executable,
            args=["-m", "ensue", "mcp", *options],
            cwd=folder,
            env=dict(os.environ),
        )
        async with Client(server) as client:
            return await story(client)

    return asyncio.run(run())


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    content = result.content[0]
    assert isinstance(content, TextContent)
    assert not result.is_error, content.text
    return dict(json.loads(content.text))


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    content = result.content[0]
    assert isinstance(content, TextContent)
    assert result.is_error, content.text
    return content.text


def test_every_tool_and_argument_is_described(tmp_path: Path) -> None:
    async def story(client: Client) -> list[Any]:
        return list((await client.list_tools()).tools)

    tools = asked(tmp_path, story)

    assert [each.name for each in tools] == [
        *("check", "explain", "compare", "test", "run", "history_find", "history_replay")
    ]
    for tool in tools:
        assert tool.description, tool.name
        assert tool.annotations.read_only_hint
        for name, schema in tool.input_schema["properties"].items():
            assert schema.get("description"), f"{tool.name}.{name}"


def test_the_reference_of_the_language_and_the_cookbook_can_be_read(tmp_path: Path) -> None:
    async def story(client: Client) -> dict[str, str]:
        pages = {}
        for resource in (await client.list_resources()).resources:
            read = await client.read_resource(resource.uri)
            content = read.contents[0]
            assert isinstance(content, TextResourceContents)
            pages[str(resource.uri)] = content.text
        return pages

    pages = asked(tmp_path, story)

    assert pages.keys() == {"ensue://language", "ensue://cookbook", "ensue://coming-from"}
    assert pages["ensue://language"].startswith("# The language")
    assert "```cor" in pages["ensue://cookbook"]


def test_a_rule_is_written_checked_run_and_compared(tmp_path: Path) -> None:
    async def story(client: Client) -> None:
        bad = await call(client, "check", library=RULES.replace("f{3} ; o", "f{3} -> o"))
        assert not bad["good"]
        assert bad["findings"][0]["hint"].startswith("write `f{3} ; o")

        good = await call(client, "check", library=RULES)
        assert good["good"]
        assert good["rules"] == ["Guessed", "Twice"]
        assert good["costs"][0].startswith("`Guessed` keeps for each `user`")

        ran = await call(
            client, "run", library=RULES, events=events("Failed", "Failed", "Failed", "Opened")
        )
        assert [each["correlation"] for each in ran["outputs"]] == ["Guessed", "Twice"]

        told = await call(client, "explain", library=RULES, rule="Guessed")
        assert "`f` 3 times, then `o`" in told["text"]

        found = await call(client, "compare", library=RULES, first="Guessed", second="Twice")
        # Twice forgets at the first login, Guessed goes on counting.
        assert found["relation"] == "different"
        assert "only Guessed puts something out at the end of" in found["text"]

    asked(tmp_path, story)


LIMITED = """parameter long limit = 3;
parameter duration pause = 1 min;
eventtype Failed { attribute string user; };
eventtype Alert {};
Alert correlation Guessing (Failed f) f{limit} within pause { case true: push new Alert {}; }
"""
CASE = """[[case]]
name = "three"
why = "three in a minute"
library_file = "rules.cor"
events = ["0 Failed", "1 Failed", "2 Failed"]
outputs = ["3 Alert"]
"""


def test_parameters_take_values(tmp_path: Path) -> None:
    (tmp_path / "rules.cor").write_text(LIMITED)
    (tmp_path / "cases.toml").write_text(CASE)

    async def story(client: Client) -> None:
        given = {"library": LIMITED, "events": events(*["Failed"] * 6)}
        counts = []
        for parameters in (None, {"limit": 2}, {"limit": "6", "pause": "5 s"}):
            ran = await call(client, "run", **given, parameters=parameters)
            counts.append(ran["outputs_count"])
        assert counts == [2, 3, 1]
        told = await call(
            client, "explain", files=["rules.cor"], rule="Guessing", parameters={"limit": 7}
        )
        assert "7 times" in told["text"]
        checked = await call(client, "check", library=LIMITED, parameters={"limit": 1})
        assert checked["good"]
        tested = await call(client, "test", files=["cases.toml"], parameters={"limit": 2})
        assert (tested["passed"], tested["failed"]) == (0, 1)
        refusals = [
            await refused(client, "run", **given, parameters={"limmit": 2}),
            await refused(client, "check", library=LIMITED, parameters={"limit": "many"}),
        ]
        assert "there is no parameter `limmit`; did you mean `limit`?" in refusals[0]
        assert "`many` does not fit parameter `limit`, a `long`" in refusals[1]

    asked(tmp_path, story)


def test_a_run_says_why_a_rule_has_put_out_nothing(tmp_path: Path) -> None:
    async def story(client: Client) -> dict[str, Any]:
        return await call(client, "run", library=RULES, events=events("Failed", "Failed", "Opened"))

    ran = asked(tmp_path, story)

    assert [each["correlation"] for each in ran["outputs"]] == ["Twice"]
    assert len(ran["why_not"]) == 1
    assert ran["why_not"][0].startswith("`Guessed`")


def test_events_that_do_not_fit_are_named_and_the_others_run(tmp_path: Path) -> None:
    async def story(client: Client) -> dict[str, Any]:
        given = [{"type": "Failed", "time": "yesterday"}, *events("Failed", "Failed", "Opened")]
        return await call(client, "run", library=RULES, events=given)

    ran = asked(tmp_path, story)

    assert ran["events_read"] == 3
    assert ran["refused_count"] == 1
    assert "event 1" in ran["refused"][0]


def test_files_of_rules_events_and_cases_are_read_under_the_root(tmp_path: Path) -> None:
    (tmp_path / "rules.cor").write_text(RULES)
    lines = ["who,what,at", *(f"ann,Failed,{each}" for each in range(3)), "ann,Opened,3"]
    (tmp_path / "log.csv").write_text("\n".join(lines))
    (tmp_path / "cases.toml").write_text(
        '[[case]]\nname = "two"\nwhy = "two failures"\nlibrary_file = "rules.cor"\n'
        'events = [\'0 Failed {"user": "ann"}\', \'1 Opened {"user": "ann"}\']\n'
        'outputs = ["2 Alert"]\n'
    )

    async def story(client: Client) -> None:
        columns = {"time": "at:s", "type": "what", "user": "who"}
        ran = await call(client, "run", files=["rules.cor"], events_file="log.csv", columns=columns)
        assert ran["outputs_count"] == 2
        tested = await call(client, "test", files=["cases.toml"])
        assert (tested["passed"], tested["failed"]) == (0, 1)
        assert "expected" in tested["failures"][0]

    asked(tmp_path, story)


def test_what_lies_outside_of_the_roots_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "rules"
    root.mkdir()
    secret = tmp_path / "secret.cor"
    secret.write_text(RULES)
    (root / "link.cor").symlink_to(secret)
    (root / "cases.toml").write_text(
        '[[case]]\nname = "two"\nwhy = "reaches out"\nlibrary_file = "../secret.cor"\n'
        "events = []\noutputs = []\n"
    )

    async def story(client: Client) -> None:
        for path in ("../secret.cor", str(secret), "link.cor"):
            told = await refused(client, "check", files=[path])
            assert "outside of what may be read" in told
            assert str(root) in told
        assert "outside" in await refused(client, "test", files=["cases.toml"])
        assert "outside" in await refused(client, "history_find", history=f"sqlite:{secret}")
        told = await refused(client, "history_find", history="postgresql://10.0.0.1/x")
        assert "no history that may be asked" in told

    asked(root, story)


def test_a_library_imports_files_under_the_root_alone(tmp_path: Path) -> None:
    root = tmp_path / "rules"
    root.mkdir()
    types, rule = RULES.split("Alert correlation", 1)
    (tmp_path / "secret.cor").write_text(types)
    (root / "types.cor").write_text(types)
    (root / "good.cor").write_text('import "types.cor";\nAlert correlation' + rule)
    (root / "out.cor").write_text('import "../secret.cor";\nAlert correlation' + rule)
    (root / "cases.toml").write_text(
        '[[case]]\nname = "two"\nwhy = "reaches out"\nlibrary_file = "out.cor"\n'
        "events = []\noutputs = []\n"
    )

    async def story(client: Client) -> None:
        assert (await call(client, "check", files=["good.cor"]))["good"]
        assert (await call(client, "check", files=["types.cor", "good.cor"]))["good"]
        for tool, file in (("check", "out.cor"), ("test", "cases.toml")):
            assert "lies outside of the folder" in await refused(client, tool, files=[file])

    asked(root, story)


def test_answers_are_cut_to_the_rows_that_are_allowed(tmp_path: Path) -> None:
    echo = "eventtype A {};\nA correlation Echo (A a) a { case true: push new A {}; }\n"
    given = [{"type": "A", "time": f"2024-05-06T07:00:{each:02}Z"} for each in range(20)]

    async def story(client: Client) -> None:
        ran = await call(client, "run", library=echo, events=given, limit=5)
        assert (len(ran["outputs"]), ran["outputs_count"], ran["left_out"]) == (5, 20, 15)
        told = await refused(client, "run", library=echo, events=given, limit=50)
        assert "1 to 10 is allowed" in told

    asked(tmp_path, story, "--limit", "10")


def test_a_call_that_takes_too_long_is_stopped_and_the_next_one_answered(tmp_path: Path) -> None:
    # Six million firings of a timer, one by one.
    slow = "eventtype A {};\nA ecl Tick (A a, every 1 ms t) { repeat { notify { t } } }\n"
    given = [{"type": "A", "time": "2024-05-06T07:00:00Z"}]

    async def story(client: Client) -> float:
        start = time.monotonic()
        told = await refused(
            client, "run", library=slow, events=given, until="2024-05-06T07:15:00Z"
        )
        assert "was stopped after 2 s" in told
        stopped = time.monotonic() - start
        assert (await call(client, "check", library=RULES))["good"]
        return stopped

    assert asked(tmp_path, story, "--deadline", "2 s") < 60


def test_mistakes_of_a_call_say_what_to_do(tmp_path: Path) -> None:
    async def story(client: Client) -> None:
        assert "give either `library`" in await refused(client, "check")
        told = await refused(client, "explain", library=RULES, rule="Gessed")
        assert "did you mean `Guessed`?" in told
        told = await refused(client, "explain", library="eventtype A {", rule="R")
        assert "the library has mistakes" in told
        told = await refused(client, "check", files=["rules.cor"])
        assert "there is no file `rules.cor`" in told

    asked(tmp_path, story)


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    with History.open(f"sqlite:{tmp_path / 'events.db'}") as history:
        for number, event in enumerate(events("Failed", "Failed", "Failed", "Opened")):
            history.add({"id": str(number), "source": "test", **event})
    return tmp_path


def test_a_history_is_searched_and_rules_are_tried_on_it(stored: Path) -> None:
    async def story(client: Client) -> None:
        found = await call(
            client, "history_find", history="sqlite:events.db", filter="type = 'Failed'", limit=2
        )
        assert [each["id"] for each in found["events"]] == ["0", "1"]
        assert found["more"]
        would = await call(client, "history_replay", history="sqlite:events.db", library=RULES)
        assert [each["correlation"] for each in would["outputs"]] == ["Guessed", "Twice"]
        would = await call(
            client,
            "history_replay",
            history="sqlite:events.db",
            filter="start AFTER(2 s) (type = 'Failed') AND type = 'Opened'",
        )
        assert [each["id"] for each in would["outputs"]] == ["3"]

    asked(stored, story)


WINES = """eventtype Bottle { attribute string wine; };
eventtype Red { attribute string wine; };
Red correlation Reds (Bottle b where wine IS_A wine:RedWine) b
{ case true: push new Red { wine = b.wine }; }
"""


def test_rules_ask_the_ontology_that_the_server_was_started_with(tmp_path: Path) -> None:
    from ensue.knowledge import SAMPLES

    async def story(client: Client) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        bottles = [
            {"type": "Bottle", "time": "2024-05-06T07:00:00Z", "data": {"wine": wine}}
            for wine in ("wine:HouseRed", "wine:HouseWhite")
        ]
        good = await call(client, "check", library=WINES)
        wrong = await call(client, "check", library=WINES.replace("RedWine", "RedVine"))
        return good, wrong, await call(client, "run", library=WINES, events=bottles)

    good, wrong, ran = asked(tmp_path, story, "--ontology", str(SAMPLES / "wine.ttl"))

    assert not [each for each in good["findings"] if each["severity"] == "error"]
    assert "RedVine" in str(wrong["findings"])
    assert [each["data"]["wine"] for each in ran["outputs"]] == ["wine:HouseRed"]
