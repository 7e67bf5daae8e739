"""Sites as they run: what crosses a link, what waits, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

import ensue
from ensue.errors import EventError
from ensue.events.cloudevents import decode, encode
from ensue.events.event import Event
from ensue.federation.placement import Placement, Simulation, SiteRun, Sites, place
from ensue.federation.placement.parcels import Parcel, from_event, to_event

TYPES = """
eventtype Failed { attribute string user; attribute string note; };
eventtype Entered { attribute string user; };
eventtype Granted { attribute string user; };
eventtype Out { attribute string user; };
"""
SITES = {
    "site": [
        {"name": "gate", "types": ["Failed", "Entered"]},
        {"name": "office", "types": ["Granted"]},
    ]
}
RULE = """
Out correlation Break (Failed f, Entered e, Granted g) (f{3} ; e) ; g within 1 min by user
{ case true: push new Out { user = g.user }; }
"""


def placement_of(rule: str = RULE) -> Placement:
    library = ensue.parse(TYPES + rule).checked
    return place(library, Sites.of(SITES, library))


def event(name: str, second: float, user: str = "ann") -> Event:
    data = {"user": user} | ({"note": "long text"} if name == "Failed" else {})
    return Event(f"{name}{second:g}", "door", name, round(second * 1e6), data)


def crossed(rule: str, events: Sequence[Event]) -> tuple[list[str], int, int]:
    """Ids of outputs, and what crossed: events and resets."""
    placement = placement_of(rule)
    simulation = Simulation(placement)
    sites = [placement.sites.of_event(each) for each in events]
    outputs = simulation.run([(s.name, e) for s, e in zip(sites, events, strict=True) if s])
    counts = simulation.crossed
    return [each.id for each in outputs], counts.events.total(), counts.resets.total()


def test_what_completes_nothing_does_not_travel() -> None:
    events = [event("Failed", n) for n in range(40)] + [event("Granted", 45)]

    assert crossed(RULE, events) == ([], 0, 0)


def test_what_completes_its_part_travels_at_once_and_without_what_nobody_reads() -> None:
    placement = placement_of()
    gate = SiteRun(placement, "gate")
    for each in [event("Failed", n) for n in range(5)]:
        gate.push(each)
        assert gate.parcels() == []
    gate.push(event("Entered", 6))

    (parcel,) = gate.parcels()

    carried = [load.event for load in parcel.loads if load.event is not None]
    assert [each.id for each in carried] == ["Failed2", "Failed3", "Failed4", "Entered6"]
    assert carried[0].data == {"user": "ann"}


def test_an_event_that_several_rules_wait_for_crosses_once() -> None:
    rules = "".join(
        f"Out correlation R{n} (Failed f, Entered e, Granted g) (f{{{n}}} ; e) ; g by user"
        " { case true: push new Out { user = g.user }; }\n"
        for n in range(1, 6)
    )
    story = [*(event("Failed", n) for n in range(3)), event("Entered", 3), event("Failed", 4)]
    more = [event("Failed", 5), event("Entered", 6), event("Granted", 7)]

    outputs, events, _ = crossed(rules, [*story, *more])

    assert len(outputs) == 5
    assert events == 7


def test_an_event_that_a_later_rule_reads_more_of_crosses_again() -> None:
    rules = (
        "Out correlation R1 (Failed f, Entered e, Granted g) (f ; e) ; g"
        " { case true: push new Out { user = g.user }; }\n"
        "Out correlation R2 (Failed f, Entered e, Granted g) (f ; e{2}) ; g"
        " { case true: push new Out { user = f.note }; }\n"
    )
    story = [event("Failed", 0), event("Entered", 1), event("Entered", 2), event("Granted", 3)]

    outputs, events, _ = crossed(rules, story)

    assert len(outputs) == 2
    assert events == 4


def test_after_a_trigger_a_site_waits_again() -> None:
    story = [*(event("Failed", n) for n in range(3)), event("Entered", 3), event("Granted", 4)]
    after = [event("Failed", n) for n in range(5, 15)]

    outputs, events, resets = crossed(RULE, [*story, *after, event("Granted", 20)])

    # The office triggers once the gate has come past its event, and the gate is told after that.
    assert len(outputs) == 1
    assert (events, resets) == (4 + 2, 1)


def test_a_window_that_has_passed_lets_a_site_wait_again() -> None:
    story = [*(event("Failed", n) for n in range(3)), event("Entered", 3)]
    after = [event("Failed", n) for n in range(70, 100)]

    outputs, events, _ = crossed(RULE, [*story, *after, event("Granted", 101)])

    assert (outputs, events) == ([], 4)


def test_an_unless_at_the_site_forgets_what_waits_there() -> None:
    rule = (
        "Out correlation R (Failed f, Entered e, Granted g) f{3} + g unless e"
        " { case true: push new Out { user = g.user }; }"
    )
    story = [event("Failed", 0), event("Failed", 1), event("Entered", 2)]
    more = [event("Failed", 3), event("Failed", 4), event("Granted", 5)]

    assert crossed(rule, [*story, *more])[:2] == ([], 0)
    assert len(crossed(rule, [*story, *more, event("Failed", 6)])[0]) == 1


def test_an_event_of_another_site_and_a_late_one_are_refused() -> None:
    gate = SiteRun(placement_of(), "gate")
    gate.push(event("Failed", 5))

    with pytest.raises(EventError, match="no event of site `gate`"):
        gate.push(event("Granted", 6))
    with pytest.raises(EventError, match="comes too late"):
        gate.push(event("Failed", 4))


def parcels_of(placement: Placement) -> list[Parcel]:
    gate = SiteRun(placement, "gate")
    found = []
    for each in (*(event("Failed", n) for n in range(3)), event("Entered", 3), event("Failed", 4)):
        gate.push(each)
        found += gate.parcels(marks=True)
    return found


def test_a_parcel_comes_through_the_wire_as_it_was() -> None:
    placement = placement_of()

    for parcel in parcels_of(placement):
        read = from_event(decode(encode(to_event(parcel))), placement.library.types)

        assert read == parcel


def test_parcels_are_taken_once_and_in_order_however_they_come() -> None:
    placement = placement_of()
    parcels = parcels_of(placement)
    in_order, shuffled = SiteRun(placement, "office"), SiteRun(placement, "office")
    for each in parcels:
        in_order.receive(each)
    for each in (parcels[0], *parcels[:0:-1], *parcels):
        shuffled.receive(each)
    for office in (in_order, shuffled):
        office.push(event("Granted", 5))
        office.finish(6_000_000)

    assert shuffled.waiting == in_order.waiting


def test_a_site_that_has_begun_anew_is_heard() -> None:
    placement = placement_of()
    office = SiteRun(placement, "office")
    made = []
    for instance in ("first", "second"):
        gate = SiteRun(placement, "gate", instance=instance)
        begin = 0 if instance == "first" else 30
        for each in (*(event("Failed", begin + n) for n in range(3)), event("Entered", begin + 3)):
            gate.push(each)
        made += office.push(event("Granted", begin + 4))
        gate.advance((begin + 5) * 1_000_000)
        for parcel in gate.parcels(marks=True):
            made += office.receive(parcel)

    assert len(made) == 2


def test_a_parcel_that_never_comes_is_noticed(limit: Callable[..., None]) -> None:
    limit(early_parcels=2)
    placement = placement_of()
    first, _, *others, last = parcels_of(placement)
    office = SiteRun(placement, "office")
    for each in (first, *others):
        office.receive(each)

    with pytest.raises(EventError, match="parcel 1 of site `gate` is lost"):
        office.receive(last)


def test_what_is_no_parcel_is_refused() -> None:
    with pytest.raises(EventError, match="is no parcel"):
        from_event(event("Failed", 1), placement_of().library.types)


EITHER = """
Out correlation Odd (Failed f, Entered e, Granted g) f{3} ; e || g{2} within 1 min by user
{ case true: push new Out { user = f.user }; }
"""


def test_a_branch_runs_where_its_events_arise_and_nothing_travels() -> None:
    events = [event("Failed", n) for n in range(4)] + [event("Granted", n) for n in (4, 5)]
    events += [event("Entered", 6)]
    run = ensue.parse(TYPES + EITHER).start("reference")
    outputs = [each.id for given in events for each in run.push(given)]

    assert len(outputs) == 2
    assert crossed(EITHER, events) == (outputs, 0, 0)


def test_a_branch_that_lacks_nothing_does_not_make_the_events_of_others_travel() -> None:
    rule = EITHER.replace("f{3} ; e || g{2}", "(f{3} ; e) + g || h").replace(
        "Granted g)", "Granted g where user != 'root', Granted h where user = 'root')"
    )
    events = [event("Failed", n) for n in range(2)]
    events += [event("Granted", 3), event("Granted", 4, "root")]
    outputs, travelled, resets = crossed(rule, events)

    assert (len(outputs), travelled, resets) == (1, 0, 0)


MODAL = """
eventtype Day { }; eventtype Done { };
Done ecl R (Failed f, Entered e, Day d)
{ modes { in (f) do { repeat { notify { e } } } in (d) do { repeat { notify { f } } } } }
"""


@pytest.mark.parametrize("which", ["gate", "office"])
def test_a_site_that_begins_anew_while_events_are_held_back_leaves_none_waiting(which: str) -> None:
    library = ensue.parse(TYPES + MODAL).checked
    tables = {
        "site": [
            {"name": "gate", "types": ["Failed", "Entered"]},
            {"name": "office", "types": ["Day"]},
        ],
        "place": [{"rule": "R", "at": "office"}],
    }
    placement = place(library, Sites.of(tables, library))
    sites = {name: SiteRun(placement, name, instance="first") for name in ("gate", "office")}
    made: list[str] = []

    def bring(second: float) -> None:
        for run in sites.values():
            made.extend(each.id for _, each in run.advance(round(second * 1e6)))
        while parcels := [each for run in sites.values() for each in run.parcels(marks=True)]:
            for each in parcels:
                made.extend(out.id for _, out in sites[each.receiver].receive(each))

    sites["office"].push(Event("d", "x", "Day", 0, {}))
    for second in range(1, 9):
        sites["gate"].push(event("Entered", second))
        bring(second + 0.5)
    assert sites["gate"].waiting == {}
    assert sites["gate"].sent["office", "events"] == 2
    sites[which] = SiteRun(placement, which, instance="second")
    bring(10)
    for second in range(11, 14):
        sites["gate"].push(event("Failed", second))
        sites["gate"].push(event("Entered", second))
        bring(second + 0.5)
    bring(20)

    # The new office stands in the first mode, and the new gate sends what comes from now on.
    assert len(made) == 3
    assert sites["gate"].waiting == {}
