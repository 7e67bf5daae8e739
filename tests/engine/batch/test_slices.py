"""Rules whose states are bits: which run so, and what they hold on to."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import ensue
from ensue.engine.batch import BatchEngine, combinations, slices
from ensue.engine.batch.groups import Member
from ensue.engine.batch.numbered import NumberedStates
from ensue.engine.batch.slices import SlicedStates
from ensue.engine.batch.together import RuleGroup
from ensue.events.event import Event
from tests.engine.batch.test_agreement import moved
from tests.oracle.agreement import as_text

TYPES = """
eventtype T { attribute string k; attribute long n; attribute long m; };
eventtype Found { attribute long first; attribute long last; };
"""


def rules(body: str, count: int = 70) -> ensue.Library:
    """As many rules as do not fit into one word, all of them with this body."""
    return ensue.parse(
        TYPES
        + "\n".join(
            f"Found correlation R{n} (T a where n = {n % 6}, T b where m > {n % 5},"
            f" T c where n = {n % 4}) {body}"
            for n in range(count)
        )
    )


SEQUENCE = "a ; b ; c by k { case true: push new Found { first = a.n, last = c.n }; }"


def events(count: int, seed: int = 3) -> list[Event]:
    random = Random(seed)
    made = []
    for number in range(count):
        data = {"n": random.randrange(7), "m": random.randrange(7)}
        key = random.choice(["x", "y", "z", None])
        made.append(Event(f"e{number}", "s", "T", number // 2, {**data, "k": key}))
    return made


def group_of(engine: BatchEngine) -> RuleGroup:
    member = engine.correlations["R0"]
    assert isinstance(member, Member)
    assert isinstance(member.group, RuleGroup)
    return member.group


def expected(library: ensue.Library, given: list[Event]) -> list[str]:
    run = library.start("reference")
    return [as_text(output) for event in given for output in run.push(event)]


@pytest.mark.parametrize(
    ("body", "form"),
    [
        (SEQUENCE, SlicedStates),
        ("a + b + c by k { case true: push new Found { last = c.n }; }", SlicedStates),
        (
            "l1:(a ; b) | l2:c by k"
            " { case l1: push new Found {}; case l2: push new Found { last = c.n }; }",
            SlicedStates,
        ),
        ("a || b ; c by k { case true: push new Found { first = b.n }; }", SlicedStates),
        ("a ; b ; c { case true: push new Found { first = a.n }; }", SlicedStates),
        (SEQUENCE.replace("by k", "by k bind first"), NumberedStates),
        (
            "l1:a ; (l2:b | c) by k { case l2: push new Found { first = a.n }; abort(l2);"
            " case l1: revive(l2); }",
            SlicedStates,
        ),
        ("a{40} ; b by k { case true: push new Found { first = a.n }; }", NumberedStates),
    ],
)
def test_rules_are_bits_if_their_tables_are_small_and_they_bind_what_comes_last(
    body: str, form: type
) -> None:
    """And put out the same in either form."""
    library = rules(body)
    engine = BatchEngine(library.checked)
    given = events(120)

    found = [as_text(e) for part in (given[:50], given[50:]) for e in engine.read_all(part)]

    assert found == expected(library, given)
    assert isinstance(group_of(engine).states, form)


def test_rules_change_to_numbers_in_the_middle_of_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """When a letter comes up for which there would be too many states."""
    monkeypatch.setattr(slices, "MOST_TABLE_STATES", 5)
    monkeypatch.setattr(combinations, "FEWEST_COMBINATIONS", 1)
    monkeypatch.setattr(combinations, "MOST_ENTRIES", 1)
    library = rules("a + b + c by k { case true: push new Found { first = a.n, last = c.n }; }", 6)
    plain = [Event(f"p{n}", "s", "T", 0, {"k": "x", "n": 5, "m": 0}) for n in range(4)]
    given = plain + events(150)
    engine = BatchEngine(library.checked)
    reads: list[int] = []
    read = NumberedStates.read

    def noted(self: NumberedStates, lists: Any, *given: Any) -> Any:
        reads.append(min(int(each[0]) for each in lists if len(each)))
        return read(self, lists, *given)

    monkeypatch.setattr(NumberedStates, "read", noted)

    found = [as_text(each) for each in engine.read_all(given)]

    assert reads[0] >= len(plain)
    assert isinstance(group_of(engine).states, NumberedStates)
    assert found == expected(library, given)


def test_combinations_are_forgotten_when_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Here there are more of them in one batch than are kept."""
    monkeypatch.setattr(combinations, "MOST_ENTRIES", 1)
    library = rules(SEQUENCE)
    engine = BatchEngine(library.checked)
    given = events(200)

    assert [as_text(each) for each in engine.read_all(given)] == expected(library, given)


def test_firings_come_in_parts_that_end_between_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """An id that comes twice at one time counts on over the end of a part."""
    monkeypatch.setattr(slices, "FIRINGS_AT_ONCE", 1)
    library = rules(SEQUENCE, 90)
    again = [
        Event(f"e{n % 3}", "s", "T", n // 40, {"k": "x", "n": n % 4, "m": 6}) for n in range(99)
    ]
    engine = BatchEngine(library.checked)

    found = [as_text(each) for each in engine.read_all(again)]

    assert found == expected(library, again)
    assert any('"id": "R0:e0@0:x:2"' in each for each in found)


def test_what_was_bound_before_a_snapshot_is_bound_after_it() -> None:
    """Until its port wants another event; and then nothing of it is held any more."""
    library = rules(SEQUENCE)
    given = events(160)
    engine = BatchEngine(library.checked)
    found = engine.read_all(given[:80])
    for piece in (given[80:81], given[81:82], given[82:]):
        engine = moved(engine, library)
        found += engine.read_all(piece)

    assert [as_text(each) for each in found] == expected(library, given)
    group = group_of(engine)
    held = group.states.held()
    assert held.size < 200
    assert held.max() < group.remembered.next


def test_events_without_a_key_are_counted_for_each_rule_that_wants_them() -> None:
    library = rules(SEQUENCE)
    given = events(80)
    counts = []
    for name in ("reference", "batch"):
        run = library.start(name)
        run.push_all(given)
        counts.append(dict(run.counts.without_key))

    assert counts[0] == counts[1]
    assert len(counts[0]) == 70
