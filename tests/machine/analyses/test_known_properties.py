"""Rules of which it is known by reasoning whether they can fire, always fire, and can get stuck."""

from __future__ import annotations

import pytest

from ensue.machine.analyses.properties import properties

from . import rules
from .search.test_symmetry import ALL, FORTY, many

UNTIL = f"do {{ accumulate {{ {', '.join(FORTY)} }} }} unless {{ timeout(10 s) }}"

# the rule, its ports; can it put out, does it at every event, can it get stuck, does it keep on
KNOWN = {
    "one port": ("a", "A a", True, True, False, True),
    "any of all its ports": ("a | b", "A a, B b", True, True, False, True),
    "two of one port": ("a ; a", "A a", True, False, False, True),
    "a port and all above it": ("a + b", "A a, Base b", True, False, False, True),
    "within no time": ("a ; b => within 1 ms", "A a, B b", True, False, False, True),
    "only ports that exclude each other, at once": (
        "a + b",
        "A a where V > 3, A b where V < 3",
        True,
        False,
        False,
        True,
    ),
    "an impossible port on the way": (
        "a ; b ; c",
        "A a, B b where V = 1 AND V = 2, C c",
        False,
        False,
        True,
        False,
    ),
    "an impossible port beside it": (
        "a | b",
        "A a, B b where V < 0 AND V > 0",
        True,
        True,
        False,
        True,
    ),
    "an attribute that may be missing": ("a", "A a where EXISTS subject", True, True, False, True),
    "a label that is never alone": (
        "l1:a + l2:b => { case l1 & !l2: push new Out {}; }",
        "A a, B b",
        False,
        False,
        True,
        False,
    ),
    "aborted for good by its own output": (
        "l1:a => { case l1: push new Out {}; abort(l1); }",
        "A a",
        True,
        False,
        True,
        False,
    ),
    "aborted by another": (
        "l1:a || l2:b => { case l2: abort(l1); case l1: push new Out {}; }",
        "A a, B b",
        True,
        False,
        True,
        True,
    ),
    "toggled by another": (
        "l1:a || l2:b => { case l2: toggle(l1); case l1: push new Out {}; }",
        "A a, B b",
        True,
        False,
        False,
        True,
    ),
    "once": ("ecl notify { a }", "A a", True, False, True, False),
    "failing": (
        "ecl loop { notify { do { a } unless { b } } }",
        "A a, B b",
        True,
        False,
        True,
        True,
    ),
    "never": ("ecl repeat { notify { false } }", "A a", False, False, True, False),
    "always": ("ecl repeat { notify { true } }", "A a, B b", True, True, False, True),
    "after a time": ("ecl repeat { notify { timeout(5 s) } }", "A a", True, False, None, True),
    "a timeout or an event": (
        "ecl repeat { notify { select { a, timeout(5 s) } } }",
        "A a",
        True,
        True,
        False,
        True,
    ),
    "an absence, once": (
        "ecl sequential { a, notify { do { timeout(5 s) } unless { b } } }",
        "A a, B b",
        True,
        False,
        True,
        False,
    ),
    "a timer port": ("t ; a", "A a, every 5 s t", True, False, None, True),
    "an event and a timer port": ("t | a", "A a, every 5 s t", True, True, False, True),
}


@pytest.mark.parametrize(
    ("text", "ports", "can", "always", "stuck", "keeps_on"), KNOWN.values(), ids=KNOWN.keys()
)
def test_what_a_rule_can_do_is_told(
    text: str, ports: str, can: bool, always: bool, stuck: bool | None, keeps_on: bool
) -> None:
    library = rules.library(text, "a", ports)
    found = properties(library.correlations[0], library.checked.types)

    assert found.can_put_out.holds is can
    assert found.always_puts_out.holds is always
    assert found.stuck.holds is stuck
    assert found.keeps_on is keeps_on
    for answer in (found.can_put_out, found.always_puts_out, found.stuck):
        if answer.witness is not None:
            rules.confirm(library, [library.correlations[0]], answer.witness)


ABORTED = "{ case l2: abort(l1); case l1: push new Out {}; }"
WIDE = {
    "in a window": (f"{ALL} => within 10 s", 40, False),
    "in a window, then one more": (f"({ALL}) ; p40 => within 10 s", 41, False),
    "in a window, with a label": (
        f"l1:({ALL}) | l2:p40 => within 10 s {{ case l1: push new Out {{}}; }}",
        40,
        False,
    ),
    "in a window, aborted by another": (f"l1:({ALL}) || l2:p40 => within 10 s {ABORTED}", 40, True),
    "with a time limit": (f"ecl repeat {{ notify {{ {UNTIL} }} }}", 40, False),
}


@pytest.mark.parametrize(("text", "length", "stuck"), WIDE.values(), ids=WIDE.keys())
def test_what_forty_accumulated_ports_can_do_is_told(text: str, length: int, stuck: bool) -> None:
    library = many(text, "p0")
    found = properties(library.correlations[0], library.checked.types)

    assert found.can_put_out.witness is not None
    assert len(found.can_put_out.witness) == length
    rules.confirm(library, [library.correlations[0]], found.can_put_out.witness)
    assert found.always_puts_out.holds is False
    assert found.stuck.holds is stuck
    assert found.keeps_on is True
