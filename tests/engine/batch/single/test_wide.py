"""Rules of many ports, labels and places: more than have room in one word."""

from __future__ import annotations

from contextlib import nullcontext
from random import Random

import pytest

import ensue
from ensue.engine.batch import BatchEngine
from ensue.engine.sizes import small_sizes
from ensue.events.event import Event
from tests.engine.batch.moving import moved

PORTS = 70
TYPES = (
    "eventtype T { attribute long v; };\neventtype Out { attribute long a; attribute long b; };\n"
)
NAMES = [f"p{number}" for number in range(PORTS)]
HEAD = ", ".join(f"T p{number} where v % {PORTS} = {number}" for number in range(PORTS))
BODY = "{ case true: push new Out { a = p1.v, b = p69.v }; }"
LABELLED = " + ".join(f"l{number}:(p{number})" for number in range(PORTS))
RULES = {
    "+": f"Out correlation X ({HEAD}) {' + '.join(NAMES)} {BODY}",
    "+ within": f"Out correlation X ({HEAD}) {' + '.join(NAMES)} within 600 ms {BODY}",
    "; within": f"Out correlation X ({HEAD}) {' ; '.join(NAMES)} within 1 d {BODY}",
    "labels": (
        f"Out correlation X ({HEAD}) {LABELLED} | p69 ; p1 ; p69 within 300 ms"
        " { case l69 & !l68: push new Out { a = p68.v, b = p69.v }; case l2: push new Out {}; }"
    ),
    "ECL": (
        f"Out ecl X ({HEAD}) {{ repeat {{ notify {{ accumulate {{ {', '.join(NAMES)} }} }} }} }}"
    ),
}


def stream(rule: str) -> list[Event]:
    draw = Random(7)
    values = [draw.randrange(10 * PORTS) for _ in range(900)]
    if ";" in rule:
        values = [number + PORTS * draw.randrange(3) for number in range(PORTS)] * 4 + values[:300]
    return [Event(str(n), "s", "T", n * 1000, {"v": value}) for n, value in enumerate(values)]


@pytest.mark.parametrize("name", RULES)
def test_wide_rules_agree_with_the_step_engine(name: str) -> None:
    """On their tables, and stepped from somewhere in the middle of a batch on."""
    library = ensue.parse(TYPES + RULES[name])
    events = stream(name)
    expected = list(library.run(events, engine="step"))
    assert expected
    for sizes in (nullcontext(), small_sizes()):
        made: list[Event] = []
        with sizes:
            engine = BatchEngine(library.checked)
            for first in range(0, len(events), 173):
                made += engine.read_all(events[first : first + 173])
                engine = moved(engine, library)

        assert made == expected
