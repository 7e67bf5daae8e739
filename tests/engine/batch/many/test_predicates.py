"""Predicates that rules of a group share, in parts and as a whole."""

from __future__ import annotations

from random import Random

import ensue
from ensue.engine.batch import BatchEngine
from ensue.events.event import Event
from tests.agreement.observed import as_text

TYPES = """
eventtype T { attribute string k; attribute string kind; attribute long n; };
eventtype U : T {};
eventtype Found { attribute long first; attribute long last; };
"""


def events(count: int) -> list[Event]:
    random = Random(5)
    return [
        Event(
            f"e{n}",
            "s",
            random.choice(["T", "U"]),
            n // 3,
            {
                "k": random.choice(["x", "y", "z", ""]),
                "kind": f"k{random.randrange(8)}",
                "n": random.randrange(8),
            },
        )
        for n in range(count)
    ]


def test_predicates_of_several_parts_hold_if_all_parts_do() -> None:
    """Also where a part asks for what is missing, or is no comparison at all."""
    texts = [f"kind = 'k{n % 5}' AND n > {n % 3}" for n in range(6)]
    texts += ["n > 1 AND kind = 'k1' AND k != 'x'", "kind = 'k1' AND n", "NOT (n > 2) AND k = 'y'"]
    texts += [
        "gone = 'k1' AND n > 1",
        "kind = 'k2' AND n / (n - 3) > 0",
        "kind IN ('k1') AND n < 9",
    ]
    library = ensue.parse(
        TYPES
        + "\n".join(
            f"Found correlation R{n} (T a where {text}, U b) a ; b by k"
            " { case true: push new Found { first = a.n }; }"
            for n, text in enumerate(texts)
        )
    )
    given = events(300)
    run = library.start("reference")
    expected = [as_text(output) for event in given for output in run.push(event)]

    found = [as_text(output) for output in BatchEngine(library.checked).read_all(given)]
    assert found == expected
    assert len({each.split('"correlation": ')[1].split(",")[0] for each in found}) > 6
