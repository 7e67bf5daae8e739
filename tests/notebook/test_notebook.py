"""Real notebooks, run by a real kernel; what their cells show is looked at."""

from __future__ import annotations

import re
import time
from pathlib import Path
from textwrap import dedent
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

START = """
import ensue
from ensue.notebook import live, table
library = ensue.parse('''
eventtype Failed { attribute string user; };
eventtype Alert { attribute string user; };
Alert correlation Guessing (Failed f) f{3} within 1 min by user
{ case true: push new Alert { user = f.user }; }
''')
def failed(second, user="ann"):
    return ensue.Event.of("Failed", time=second * 1_000_000, id=str(second), data={"user": user})
"""


def executed(*cells: str) -> list[Any]:
    """The outputs of each cell of a notebook, behind one that prepares it."""
    v4: Any = nbformat.v4
    notebook = v4.new_notebook()
    texts = [dedent(each).strip() for each in (START, *cells)]
    notebook.cells = [v4.new_code_cell(each) for each in texts]
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    return [each.outputs for each in notebook.cells[1:]]


def html(output: Any) -> str:
    return str(output["data"]["text/html"])


@pytest.fixture(scope="module")
def shown() -> list[Any]:
    """One kernel for all that only looks, for a kernel takes seconds to start."""
    return executed(
        "library",
        "from ensue.machine.prepared import plan_in\n"
        "plan_in(library.checked, library.correlations['Guessing'])",
        "run = library.start(explain=True)\n"
        "outputs = [o for s in range(3) for o in run.push(failed(s))]\nrun",
        "table(outputs)",
        "run.why(outputs[0])",
        "table([failed(1, '<script>alert(1)</script>')])",
        "table(failed(second) for second in range(30))",
    )


def test_a_library_shows_its_text_in_colours_and_its_machines(shown: list[Any]) -> None:
    text = html(shown[0][0])

    assert "<svg" in text
    assert "correlation" in text
    assert "Guessing" in text


def test_a_machine_is_drawn(shown: list[Any]) -> None:
    assert "image/svg+xml" in shown[1][0]["data"]


def test_a_run_shows_what_it_has_read(shown: list[Any]) -> None:
    assert re.sub("<[^>]+>", " ", html(shown[2][0])).split() == [
        *("rules", "Guessing", "engine", "step", "events", "3", "outputs", "1")
    ]


def test_outputs_are_a_table(shown: list[Any]) -> None:
    text = html(shown[3][0])

    assert "<th" in text
    assert ">ann<" in text
    assert ">Guessing<" in text


def test_a_reason_keeps_its_lines(shown: list[Any]) -> None:
    assert html(shown[4][0]).startswith("<pre>`Alert` from `Guessing` for key `ann`")


def test_what_events_say_is_escaped(shown: list[Any]) -> None:
    text = html(shown[5][0])

    assert "<script>" not in text
    assert "&lt;script&gt;" in text


def test_names_of_attributes_are_escaped_in_the_head_of_a_table() -> None:
    import ensue
    from ensue.notebook import table

    event = ensue.Event("1", "s", "A", 0, {"<b>loud</b>": "x"})

    drawn = table([event])._repr_html_()

    assert "&lt;b&gt;loud&lt;/b&gt;</th>" in drawn
    assert "<b>loud" not in drawn


def test_a_long_table_says_how_many_more_there_are(shown: list[Any]) -> None:
    assert "and 10 more" in html(shown[6][0])


def test_a_view_of_a_run_updates_in_place_and_stops() -> None:
    outputs = executed(
        "view = live(library.start(), every='50 ms')",
        """
        import time
        for second in range(9):
            view.push(failed(second))
            time.sleep(0.03)
        """,
        "_ = view.stop()",
    )

    # Updates of later cells went into the first one, which made the view; none stands elsewhere.
    assert [len(each) for each in outputs] == [1, 0, 0]
    text = html(outputs[0][0])
    assert "9 events, 3 outputs" in text
    assert "○ stopped" in text
    assert ">Guessing</td>" in text


def test_a_view_is_drawn_no_more_often_than_it_says() -> None:
    outputs = executed(
        """
        from ensue.notebook import LiveView
        drawn = []
        def shown(view):
            return lambda changed: drawn.append(changed.events)
        view = LiveView("busy", shown, 0.2, 10, library.start())
        import time
        start = time.monotonic()
        pushed = 0
        while time.monotonic() < start + 1.0:
            view.push(failed(pushed, str(pushed)))
            pushed += 1
        view.stop()
        print(len(drawn) <= 8, len(drawn) >= 3, drawn[-1] == pushed)
        """
    )

    assert outputs[0][0]["text"].split() == ["True", "True", "True"]


def test_the_last_event_is_shown_even_if_nothing_follows_it() -> None:
    outputs = executed(
        "view = live(library.start(), every='200 ms')",
        "view.push(failed(0)); view.push(failed(1)); view.push(failed(2));"
        "import time; time.sleep(1)",
    )

    assert "3 events, 1 output," in html(outputs[0][0])


def test_a_view_of_a_channel_follows_it() -> None:
    outputs = executed(
        """
        from ensue.channel import build, correlated
        channel = build("filtering", "doors").library(library).done()
        view = live(channel, correlated(library, "Guessing"), every="50 ms")
        """,
        """
        doors = channel.suppliers.connect("door", "Failed")
        for _ in range(3):
            doors.send("Failed", {"user": "bob"})
        import time
        for _ in range(100):
            if view.outputs: break
            time.sleep(0.05)
        view.stop(); channel.close()
        import threading
        print([each.name for each in threading.enumerate() if "live view" in each.name])
        """,
    )

    assert outputs[1][0]["text"].strip() == "[]"
    text = html(outputs[0][0])
    assert "channel doors" in text
    assert ">bob<" in text


def test_a_view_of_a_server_follows_it(tmp_path: Path) -> None:
    outputs = executed(
        """
        import socket, subprocess, sys, time, os, httpx
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0)); port = probe.getsockname()[1]
        """,
        f"folder = {str(tmp_path)!r}",
        """
        text = f'''[server]\\nlisten = "127.0.0.1:{port}"\\ndata = "{folder}"\\n'''
        open(folder + "/ensue.toml", "w").write(text)
        process = subprocess.Popen([sys.executable, "-m", "ensue", "serve", folder + "/ensue.toml"],
                                   cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        url = f"http://127.0.0.1:{port}"
        for _ in range(300):
            try:
                if httpx.get(url + "/ready").status_code == 200: break
            except httpx.HTTPError:
                pass
            time.sleep(0.2)
        view = live(url, every="50 ms", kinds="event", after="0")
        """,
        """
        event = {"specversion": "1.0", "id": "1", "source": "t", "type": "Seen",
                 "time": "2024-05-06T07:00:00Z", "data": {"user": "<b>eve</b>"}}
        answer = httpx.post(url + "/v1/events", json=event,
                            headers={"content-type": "application/cloudevents+json"})
        for _ in range(200):
            if view.events: break
            time.sleep(0.05)
        begun = time.monotonic()
        view.stop()
        took = time.monotonic() - begun
        process.terminate(); process.wait(20)
        print(answer.status_code, view.events, took < 5, view.problem)
        """,
    )

    said = outputs[3][0]["text"].split()
    assert said[1:] == ["1", "True", "None"], said
    text = html(outputs[2][-1])
    assert "&lt;b&gt;eve&lt;/b&gt;" in text
    assert "○ stopped" in text


def test_the_first_event_is_drawn_at_once_on_a_machine_that_has_just_started(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import ensue
    from ensue.notebook import live

    library = ensue.parse("eventtype A { }; A correlation Copy (A a) a { case true: push a; }")
    monkeypatch.setattr("time.monotonic", lambda: 5.0)

    with live(library.start(), every="1 h") as view:
        view.push('{"id": "1", "source": "s", "type": "A", "time": "2024-05-06T07:00:00Z"}')
        drawn = capsys.readouterr().out

    assert "1 event, 1 output" in drawn


def test_a_view_outside_of_a_notebook_still_counts() -> None:
    import ensue
    from ensue.notebook import live

    library = ensue.parse(
        "eventtype A {};\nA correlation Echo (A a) a { case true: push new A {}; }\n"
    )
    with live(library.start(), every="1 h") as view:
        view.push(ensue.Event.of("A", time=0))
        time.sleep(0.01)

    assert repr(view) == "Echo: 1 event, 1 output, stopped"
