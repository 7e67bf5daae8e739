"""What `with` sets goes with an output from site to site."""

from __future__ import annotations

import ensue
from ensue.events.event import Event
from ensue.federation.placement import Simulation, Sites, place

LIBRARY = """
eventtype Failed { attribute string user; attribute long level; };
eventtype Granted { attribute string user; };
Failed correlation Urgent (Failed f from outside)
    f{2}
    by user
{
    case true: push f with { priority = f.level, expirytime = 2999-01-01T00:00:00Z };
}
Failed correlation Break (Failed f from Urgent where priority > 5, Granted g)
    f ; g
    by user
{
    case true: push f with { subject = CONCAT(f.user, ' ', STRING(f.priority)) };
}
"""
SITES = {
    "site": [
        {"name": "gate", "types": ["Failed"]},
        {"name": "office", "types": ["Granted"]},
    ]
}


def test_an_output_of_another_site_keeps_its_extensions() -> None:
    library = ensue.parse(LIBRARY)
    kinds = [
        ("Failed", 3),
        ("Failed", 7),
        ("Granted", 0),
        ("Failed", 9),
        ("Failed", 2),
        ("Granted", 0),
    ]
    events = [
        Event(
            str(n),
            "door",
            kind,
            n * 1_000_000,
            {"user": "ann"} | ({"level": level} if level else {}),
        )
        for n, (kind, level) in enumerate(kinds)
    ]
    placement = place(library.checked, Sites.of(SITES, library.checked))
    homes = {placement.sites.of_event(each).name for each in events}  # type: ignore[union-attr]
    assert homes == {"gate", "office"}

    simulation = Simulation(placement)
    given = [(placement.sites.of_event(each).name, each) for each in events]  # type: ignore[union-attr]
    outputs = simulation.run(given)

    assert outputs == list(library.run(events))
    found = [(each.extensions["correlation"], each.extensions["priority"]) for each in outputs]
    assert found == [("Urgent", 7), ("Break", 7), ("Urgent", 2)]
    assert outputs[1].extensions["subject"] == "ann 7"
    assert outputs[1].extensions["expirytime"] == "2999-01-01T00:00:00Z"
    assert simulation.crossed.events.total() > 0
