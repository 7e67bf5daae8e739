"""Alarms of rules in cells: when they fire, in which order, and what is refused of their state."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import msgspec
import pytest

import ensue
from ensue.errors import SnapshotError
from ensue.events.event import Event
from tests.engine.random_rules import events, library_text

pytestmark = pytest.mark.usefixtures("everything_small")

TYPES = """
eventtype T { attribute string k; attribute long v; attribute string w; };
eventtype Out { attribute string k; attribute long v; attribute timestamp at; };
eventtype Told {};
eventtype Fed { attribute long v; };
"""


def reading(number: int, time: int, value: int, key: str = "k1") -> Event:
    return Event(f"e{number}", "s", "T", time, {"k": key, "v": value, "w": ""})


def absences(count: int, key: str = "by k") -> str:
    """Rules for a `v = 1` that no `v = 2` follows within one, two, three... milliseconds."""
    return "".join(
        f"Told ecl R{number} (T a where v = 1, T b where v = 2) {key} {{ repeat {{ notify {{"
        f" sequential {{ a, do {{ timeout({number + 1} ms) }} unless {{ b }} }} }} }} }}\n"
        for number in range(count)
    )


def test_alarms_that_are_put_off_or_stopped_fire_only_when_they_are_due() -> None:
    run = ensue.parse(TYPES + absences(3)).start("step")
    run.push(reading(1, 0, 1))
    assert run.next_due() == 1000

    assert [each.time for each in run.push(reading(2, 1500, 2))] == [1000]
    assert run.next_due() is None
    run.push(reading(3, 2000, 1))
    assert run.next_due() == 3000
    assert [each.time for each in run.finish(100_000)] == [3000, 4000, 5000]


def test_alarms_of_one_time_come_in_the_order_of_rules_and_of_keys() -> None:
    """Rules in groups of two keys and rules that feed others are due at one time."""
    feeding = (
        "Fed correlation F (T a, every 2 ms t) a ; t { case true: push new Fed { v = 1 }; }\n"
        "Out correlation G (Fed o from F) o { case true: push new Out { v = 2 }; }\n"
    )
    text = TYPES + absences(3) + feeding + absences(3, "by w").replace("R", "W")
    library = ensue.parse(text)
    plain, visited = library.start("reference"), library.start("step")
    for number, key in enumerate(["k2", "k1", "k3", "k1"]):
        event = reading(number, 0, 1, key)
        assert visited.push(event) == plain.push(event)

    expected = plain.finish(4000)
    assert len(expected) == 14
    assert visited.finish(4000) == expected


def test_a_clock_that_jumps_fires_more_alarms_than_are_kept_at_once() -> None:
    rules = "".join(
        f"Out correlation R{n} (every {n + 1} ms t, every 3 ms u, T a) a || (t + u) by k"
        " { case true: push new Out { at = t.time }; push new Out { at = u.time, v = a.v }; }\n"
        for n in range(4)
    )
    library = ensue.parse(TYPES + rules)
    plain, visited = library.start("reference"), library.start("step")
    for number in range(30):
        event = reading(number, 40_000 * number, number, f"k{number % 3}")
        expected = plain.push(event)

        assert visited.push(event) == expected
    assert len(plain.finish(2_000_000)) > 100


def test_an_id_counts_on_where_an_event_is_called_as_alarms_are() -> None:
    rules = "".join(
        f"Out correlation R{n} (T a, every 1 ms t) a | t by k {{ case true: push new Out {{}}; }}\n"
        for n in range(2)
    )
    library = ensue.parse(TYPES + rules)
    plain, visited = library.start("reference"), library.start("step")
    given = [reading(1, 0, 1), Event("timer", "s", "T", 2000, {"k": "k1", "v": 1, "w": ""})]
    expected = [plain.push(event) for event in given]
    assert [visited.push(event) for event in given] == expected
    assert [each.id for each in expected[1][-2:]] == ["R0:timer@2000:k1:2", "R1:timer@2000:k1:2"]


def test_few_rules_with_timers_load_no_compiled_loops() -> None:
    program = (
        "import sys, ensue\n"
        "types = 'eventtype T { attribute long v; }; eventtype Out { attribute long v; };'\n"
        "run = ensue.parse(types + ''.join("
        "f'Out correlation R{n} (T a where v = {n}, every 1 s t) a ; t"
        " {{ case true: push new Out {{ v = a.v }}; }} ' for n in range(9))).start('step')\n"
        "run.push(ensue.Event.of('T', id='1', source='s', time=0, data={'v': 1}))\n"
        "assert not {'numba', 'numpy', 'pyarrow'} & sys.modules.keys()\n"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert done.returncode == 0, done.stderr


def test_rules_with_timers_whose_tables_keep_growing_go_on() -> None:
    for seed in range(5):
        library = ensue.parse(library_text(seed, "timers", 6))
        plain, visited = library.start("reference"), library.start("step")
        for event in events(seed, 120):
            assert visited.push(event) == plain.push(event), seed


def test_a_state_that_cannot_be_is_refused_whoever_wrote_it() -> None:
    """Bytes with a right digest and wrong contents: a clear error, or a run, and never a crash."""
    library = ensue.parse(library_text(3, "timers", 6))
    run = library.start("step")
    for event in events(3, 30):
        run.push(event)
    head, version, _, body = msgspec.msgpack.decode(run.snapshot())
    refused = 0
    for place in range(0, len(body), 11):
        for mask in (1, 0xFF):
            changed = body[:place] + bytes([body[place] ^ mask]) + body[place + 1 :]
            digest = hashlib.sha256(changed).digest()
            try:
                library.resume(msgspec.msgpack.encode([head, version, digest, changed]))
            except SnapshotError:
                refused += 1
    assert refused > 50
