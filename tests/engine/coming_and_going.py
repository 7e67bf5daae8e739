"""Rules that come and go in a run while it moves between engines, beside the reference.

In come a library, events, and who writes another rule of a name; now and then one is removed,
replaced or added, or the run is saved and brought back, for a while in batches. Whatever happens on
the way, both put out the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import ensue
from ensue.events.event import Event

END = 10**6


def batches_on_the_way(
    library: ensue.Library,
    given: Sequence[Event],
    draw: Random,
    rule: Callable[[str], str],
) -> int:
    """How often the run was moved to batches; asserts that it agrees with the reference."""
    plain, run = library.start("reference"), library.start("step")
    names = [each.name for each in library.correlations]
    moved = 0
    for number, event in enumerate(given):
        what = draw.randrange(20)
        if what == 0 and len(names) > 1:
            gone = names.pop(draw.randrange(len(names)))
            plain.remove(gone)
            run.remove(gone)
        elif what <= 2:
            name = draw.choice([*names, f"A{number}"])
            names = list(dict.fromkeys([*names, name]))
            changed = rule(name)
            plain.replace(changed)
            run.replace(changed)
        elif what <= 4:
            engine = draw.choice(["step", "step", "batch"])
            run = ensue.parse(plain.text).resume(run.snapshot(), engine=engine)
            moved += engine == "batch"
        assert run.push(event) == plain.push(event), number
    assert run.finish(END) == plain.finish(END)
    assert run.counts == plain.counts
    return moved
