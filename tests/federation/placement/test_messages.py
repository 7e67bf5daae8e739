"""How many messages a placement costs, of rules of every kind; outputs are those of one machine."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any, NamedTuple

import pytest

import ensue
from ensue.events.event import Event
from ensue.federation.placement import Simulation, Sites, place
from ensue.federation.placement.simulating import Crossed

TYPES = """
eventtype A { attribute string k; };
eventtype B { attribute string k; };
eventtype C { attribute string k; };
eventtype D { attribute string k; };
eventtype Out { };
"""
HOLDS = {"plant": ["A", "B"], "office": ["C", "D"]}
FILTER = "Out correlation R (A a, B b, C c) (a ; b) + c { case true: push new Out { }; }"
ECL = "Out ecl R (A a, B b, C c) { repeat { notify { accumulate { sequential { a, b }, c } } } }"


class Run(NamedTuple):
    outputs: int
    crossed: Crossed

    @property
    def messages(self) -> int:
        return self.crossed.messages


def run(rule: str, stream: Iterable[str], home: str = "office", **sites: list[str]) -> Run:
    """A rule at its home, over events whose types are letters: one a second."""
    library = ensue.parse(TYPES + rule)
    tables: Any = [{"name": name, "types": types} for name, types in (sites or HOLDS).items()]
    if home not in (sites or HOLDS):
        tables.append({"name": home})
    placed = Sites.of({"site": tables, "place": [{"rule": "R", "at": home}]}, library.checked)
    placement = place(library.checked, placed)
    events = [
        Event(f"{name}{second}", "x", name.upper(), second * 1_000_000, {"k": "1"})
        for second, name in enumerate(stream)
    ]
    simulation = Simulation(placement)
    found = [(site.name, e) for e in events if (site := placed.of_event(e)) is not None]
    outputs = simulation.run(found)
    alone = library.start("reference")
    assert [e.id for e in outputs] == [out.id for e in events for out in alone.push(e)]
    return Run(len(outputs), simulation.crossed)


STREAMS = [
    "abc" * 30,
    "a" * 30 + "b" * 30 + "c" * 30,
    "aabbcc" * 15,
    *("".join(Random(seed).choices("abc", k=90)) for seed in range(4)),
    *("".join(Random(seed).choices("aaaabc", k=90)) for seed in range(4)),
    *("".join(Random(seed).choices("abcccc", k=90)) for seed in range(4)),
]


@pytest.mark.parametrize("home", ["plant", "office", "yard"])
@pytest.mark.parametrize("stream", STREAMS, ids=lambda stream: stream[:12])
def test_an_ecl_costs_no_more_messages_than_the_filter_that_says_the_same(
    home: str, stream: str
) -> None:
    assert run(ECL, stream, home).messages <= run(FILTER, stream, home).messages


def test_of_events_that_no_state_of_a_part_waits_for_none_crosses() -> None:
    """Thirty of `a` are waiting when `b` comes; the first alone is that of the sequence."""
    assert run(ECL, "a" * 30 + "b" + "c").crossed.events.total() == 2
    assert run(ECL, "ca" * 30).crossed.events.total() == 0


def test_completions_of_two_parts_at_one_site_cross_when_both_are_complete() -> None:
    rule = (
        "Out ecl R (A a, B b, C c) { repeat { notify {"
        " accumulate { sequential { a, a }, select { b, sequential { a, b } }, c } } } }"
    )

    assert run(rule, "bbbbb" + "aa" + "cccc").crossed.events.total() == 3


MODES = """
Out ecl R (A a, B b, C c, D d)
{
    modes {
        in (c) do { repeat { notify { sequential { a, a } } } }
        in (d) do { repeat { notify { sequential { b, b } } } }
    }
}
"""


def test_what_a_mode_cannot_use_is_held_back_at_its_site() -> None:
    """Each change of mode costs the two events of no use that the home still saw, and three words:
    to hold back the one type, to send the other again, and its answer where no event goes with it.
    """
    phase = "ab" * 50
    placed = run(MODES, phase + "d" + phase + "c" + phase)

    assert placed.outputs == 75
    assert placed.crossed.events.total() <= 150 + 3 * 2
    assert placed.crossed.resets.total() <= 3 + 2 * 2


def test_where_modes_change_with_every_event_holding_back_costs_little_more_than_not() -> None:
    stream = "abcabdabcabd" * 20

    assert run(MODES, stream).messages <= 160 * 1.15


ABORTED = """
Out correlation R (A a, B b, C c, D d) l:(a ; a) | m:(b ; b) | n:c | o:d
{
    case l: push new Out { };
    case m: push new Out { };
    case n: abort(l); revive(m);
    case o: abort(m); revive(l);
}
"""


def test_what_an_aborted_label_cannot_use_is_held_back_at_its_site() -> None:
    phase = "ab" * 50
    placed = run(ABORTED, "c" + phase + "d" + phase + "c" + phase)

    assert placed.outputs == 75
    assert placed.crossed.events.total() <= 150 + 3 * 2
    assert placed.crossed.resets.total() <= 3 + 2 * 2


def test_what_is_aborted_for_good_never_crosses_again() -> None:
    rule = (
        "Out correlation R (A a, B b, C c) l:(a ; b) | m:c"
        " { case m: abort(l); push new Out { }; case l: push new Out { }; }"
    )
    placed = run(rule, "c" + "ab" * 200)

    assert placed.outputs == 1
    assert placed.messages <= 4


def test_a_filter_whose_needed_part_is_never_aborted_waits_for_it() -> None:
    rule = (
        "Out correlation R (A a, B b, C c, D d) (a ; b) + (l:c | d)"
        " { case l: abort(l); push new Out { }; case !l: push new Out { }; }"
    )

    assert run(rule, "a" * 20 + "d" * 5).messages == 0
