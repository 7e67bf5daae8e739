"""Snapshots of the step engine: state, not history; bytes that are refused; keys let go."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

import ensue
from ensue.engine.run import Run
from ensue.errors import SnapshotError, UsageError
from ensue.events.event import Event
from tests.engine.rules import LIBRARY, SECOND, event, login

SAVED = Path(__file__).parent / "saved"

EVERYTHING = """
eventtype A { attribute string k; attribute long v; attribute timestamp t; };
eventtype B { attribute string k; };
eventtype Out { attribute string k; attribute long v; attribute timestamp t; };
eventtype Late { attribute string k; };
Out correlation Table (A a, B b) a ; b by k
    { case true: push new Out { k = a.k, v = a.v, t = a.t }; }
Out correlation Window (A a, B b) a ; b within 10 s by k { case true: push new Out { v = a.v }; }
Out correlation Memory (A a, B b, B c) l1:(a) ; b + c by k
    { case true: push new Out { k = a.k, v = a.v, t = a.t }; abort(l1); }
Out correlation Ticking (A a, every 2 s t) a ; t { case true: push new Out { v = a.v }; }
Late ecl Waiting (A a, B b) by k
    { repeat { notify { sequential { a, do { timeout(3 s) } unless { b } } } } }
"""


def first_half() -> list[Event]:
    when = "2024-05-06T07:08:09Z"
    return [
        event("A", "e1", 1, k="x", v=1, t=when),
        event("A", "e2", 2, k="y", v=2, t=when),
        event("B", "e3", 3, k="y"),
        event("A", "e4", 4.5, k="x", v=3, t=None),
    ]


def second_half() -> list[Event]:
    return [event("B", "e5", 6, k="x"), event("B", "e6", 9, k="y"), event("B", "e7", 20, k="x")]


def outputs(run: Run, events: list[Event]) -> list[Event]:
    return [output for each in events for output in run.push(each)]


def test_a_run_goes_on_from_its_snapshot_as_if_nothing_had_happened() -> None:
    """All forms of rules, timers and timeouts among them."""
    library = ensue.parse(EVERYTHING)
    whole = library.start("step")
    outputs(whole, first_half())
    resumed = library.resume(whole.snapshot())

    assert outputs(resumed, second_half()) == outputs(whole, second_half())
    assert resumed.counts == whole.counts


def test_a_snapshot_is_state_and_does_not_grow_with_what_was_read() -> None:
    run = ensue.parse(LIBRARY).start("step")
    run.push(login("b", 0, "eve", False))
    size = len(run.snapshot())
    for number in range(1000):
        run.push(login(f"g{number}", number, "eve", True))

    assert len(run.snapshot()) <= size + 32


def test_a_key_in_the_middle_of_a_match_takes_few_bytes() -> None:
    run = ensue.parse(LIBRARY).start("step")
    for number in range(20_000):
        run.push(login(f"e{number}", number, f"user{number}", False))

    assert len(run.snapshot()) / 20_000 < 64


def test_keys_that_are_done_are_let_go() -> None:
    """Memory follows the keys that are in the middle of something."""
    run = ensue.parse(LIBRARY).start("step")
    for number in range(20_000):
        user = f"user{number}"
        for step, ok in enumerate((False, False, True)):
            run.push(login(f"e{number}.{step}", number + step / 4, user, ok))

    assert run.counts.outputs == 20_000
    assert run.keys_held < 3000


def test_keys_whose_window_has_passed_are_let_go() -> None:
    run = ensue.parse(LIBRARY.replace("by user", "within 10 s by user")).start("step")
    for number in range(20_000):
        run.push(login(f"e{number}", number, f"user{number}", False))

    assert run.keys_held < 3000


def test_a_finished_expression_stays_finished_for_its_key() -> None:
    """It is not taken for one that has not started."""
    text = LIBRARY + "Alarm ecl Once (Login l) by user { notify { l } }"
    run = ensue.parse(text).start("step")
    made = run.push(login("e1", 0, "eve", True))
    again = ensue.parse(text).resume(run.snapshot()).push(login("e2", 1, "eve", True))

    assert [each.id for each in made] == ["Once:e1@0:eve:1"]
    assert again == []


def test_a_snapshot_is_resumed_in_another_process(tmp_path: Path) -> None:
    run = ensue.parse(LIBRARY).start("step")
    run.push(login("e1", 1, "eve", False))
    run.push(login("e2", 2, "eve", False))
    (tmp_path / "run.snapshot").write_bytes(run.snapshot())
    (tmp_path / "rules.cor").write_text(LIBRARY)
    code = (
        "import ensue\n"
        "run = ensue.load('rules.cor').resume(open('run.snapshot', 'rb').read())\n"
        "event = ensue.Event('e3', 'test', 'Login', 3000000, {'user': 'eve', 'ok': True})\n"
        "print(run.push(event)[0].extensions['causes'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert done.stdout == "e2,e3\n"


def test_a_committed_snapshot_is_read() -> None:
    """Bytes of the present format, of all forms of rules: a change that cannot read them shows."""
    library = ensue.parse(EVERYTHING)
    resumed = library.resume((SAVED / "version-1.snapshot").read_bytes())
    whole = library.start("step")
    outputs(whole, first_half())

    assert outputs(resumed, second_half()) == outputs(whole, second_half())


def test_a_machine_that_is_built_differently_today_is_taken_from_the_snapshot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """States mean something on the machine that they were saved with only."""
    library = ensue.parse(EVERYTHING)
    monkeypatch.setattr("ensue.machine.plan.optimise", lambda machine: machine)
    old = library.start("step")
    outputs(old, first_half())
    snapshot = old.snapshot()
    monkeypatch.undo()

    assert outputs(library.resume(snapshot), second_half()) == outputs(old, second_half())


def test_a_snapshot_of_another_library_is_refused() -> None:
    snapshot = ensue.parse(LIBRARY).start("step").snapshot()

    with pytest.raises(SnapshotError, match="another library"):
        ensue.parse(EVERYTHING).resume(snapshot)


def test_a_snapshot_of_a_version_to_come_is_refused_by_its_number() -> None:
    library = ensue.parse(LIBRARY)
    snapshot = msgspec.msgpack.decode(library.start("step").snapshot())
    snapshot[1] = 99

    with pytest.raises(SnapshotError, match="version 99"):
        library.resume(msgspec.msgpack.encode(snapshot))


@pytest.mark.parametrize(
    "foreign", [b"", b"\x00", b"{}", msgspec.msgpack.encode(["zip", 1, b"", b""])]
)
def test_foreign_bytes_are_no_snapshot(foreign: bytes) -> None:
    with pytest.raises(SnapshotError, match="no snapshot"):
        ensue.parse(LIBRARY).resume(foreign)


def test_damaged_bytes_are_a_snapshot_error_wherever_they_are_damaged() -> None:
    """Cut short, or with one bit changed."""
    library = ensue.parse(EVERYTHING)
    run = library.start("step")
    outputs(run, first_half())
    whole = run.snapshot()
    for place in range(0, len(whole), 7):
        for damaged in (
            whole[:place],
            whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :],
        ):
            with pytest.raises(SnapshotError):
                library.resume(damaged)


def test_a_state_that_cannot_be_is_refused_whoever_wrote_it() -> None:
    """Bytes with a right digest and wrong contents: a clear error, or a run, and never a crash."""
    library = ensue.parse(EVERYTHING)
    run = library.start("step")
    outputs(run, first_half())
    head, version, _, body = msgspec.msgpack.decode(run.snapshot())
    for place in range(0, len(body), 5):
        changed = body[:place] + bytes([body[place] ^ 1]) + body[place + 1 :]
        digest = hashlib.sha256(changed).digest()
        try:
            library.resume(msgspec.msgpack.encode([head, version, digest, changed]))
        except SnapshotError:
            continue


def test_a_run_within_its_lateness_keeps_what_waits_and_what_came_too_late() -> None:
    library = ensue.parse(LIBRARY)
    run = library.start("step", lateness="5 s")
    for each in (login("e2", 9, "eve", False), login("e1", 8, "eve", False)):
        run.push(each)
    run.push(login("e0", 1, "eve", False))
    resumed = library.resume(run.snapshot())

    assert [each.id for each in resumed.late] == ["e0"]
    assert resumed.finish() == []
    resumed = library.resume(run.snapshot())
    made = resumed.push(login("e3", 10, "eve", True)) + resumed.finish(20 * SECOND)
    assert [each.extensions["causes"] for each in made] == ["e2,e3"]


def test_timers_that_are_due_still_see_their_window_when_the_order_runs_ahead_of_the_clock() -> (
    None
):
    library = ensue.parse(
        "eventtype A {}; eventtype Out {};"
        " Out correlation R (A a, every 1 s t) t ; t ; t within 3 s { case true: push new Out {}; }"
    )
    run = library.start("step", lateness="1 s")
    for time in (0, 2.5, 20):
        run.push(event("A", f"a{time}", time))
    resumed = library.resume(run.snapshot())

    expected = [output.time for output in run.finish(21 * SECOND)]
    assert expected[0] == 3 * SECOND
    assert [output.time for output in resumed.finish(21 * SECOND)] == expected


@pytest.mark.parametrize("engine", ["step", "batch", "reference"])
def test_a_signed_snapshot_goes_on_with_its_key_and_with_no_other(engine: str) -> None:
    library, key = ensue.parse(LIBRARY), b"sixteen bytes or more"
    run = library.start(engine)
    run.push(login("e1", 1, "eve", False))
    signed, plain = run.snapshot(key=key), run.snapshot()

    assert library.resume(signed, key=key).counts == run.counts
    for wrong in (None, b"another key of sixteen", key + b"x"):
        with pytest.raises(SnapshotError, match="sign"):
            library.resume(signed, key=wrong)
    with pytest.raises(SnapshotError, match="not signed"):
        library.resume(plain, key=key)
    head, version, digest, body, seal = msgspec.msgpack.decode(signed)
    for changed in (
        [head, version, digest, body + b"\0", seal],
        [head, version, hashlib.sha256(body).digest(), body, seal],
        [head, version, hashlib.sha256(body).digest(), body],
        [head, version, digest, body, "sha256"],
    ):
        with pytest.raises(SnapshotError):
            library.resume(msgspec.msgpack.encode(changed), key=key)


def test_a_short_key_is_refused() -> None:
    with pytest.raises(UsageError, match="16 bytes or more; given are 5"):
        ensue.parse(LIBRARY).start().snapshot(key=b"short")
