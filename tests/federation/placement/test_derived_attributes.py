"""What a home works out is worked out from members of events that travel."""

from __future__ import annotations

from pathlib import Path

import ensue
from ensue.federation.placement import Simulation, Sites, place
from ensue.federation.placement.simulating import in_order

LIBRARY = r"""
eventtype A {
    attribute string text;
    attribute string more;
    attribute string user = EXTRACT(text, 'user=(\w+)');
    attribute long n = INT(EXTRACT(text, 'n=(\d+)'));
};
eventtype B : A {};
eventtype Out { attribute string user; attribute long n; };
Out correlation X (A a where n > 0, B b)
    a ; b
    within 1 min
    by user
    bind latest
    having b.n > a.n
{
    case true: push new Out { user = a.user, n = b.n };
}
"""


def test_the_data_that_an_attribute_is_worked_out_from_travels(tmp_path: Path) -> None:
    """Over two sites the outputs are those of one; what nothing needs stays where it is."""
    sites = tmp_path / "sites.toml"
    sites.write_text(
        '[[site]]\nname = "near"\ntypes = ["A"]\n[[site]]\nname = "far"\ntypes = ["B"]\n'
    )
    library = ensue.parse(LIBRARY)
    texts = ["user=ann n=3", "user=bob n=9", "user=ann n=5", "user=bob n=5", "nobody"]
    events = [
        ensue.Event(str(at), "s", kind, at * 1_000_000, {"text": text, "more": "x"})
        for at, (kind, text) in enumerate(zip("AABBB", texts, strict=True))
    ]
    placement = place(library.checked, Sites.read(sites, library.checked))
    made = Simulation(placement).run(in_order(placement, events)[0])

    assert placement.rules["X"].fields == dict.fromkeys("ab", frozenset({"text"}))
    assert [(each.id, each.data) for each in made] == [
        (each.id, each.data) for each in library.run(events)
    ]
    assert [each.data for each in made] == [{"user": "ann", "n": 5}]
