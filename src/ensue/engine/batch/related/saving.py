"""The state of a rule that relates events, as the one form that every engine has for it.

What a key remembers is a list of readings (`ensue.engine.core.saved_rules`), whether it runs event
by event or in columns. In columns only the readings that still count are kept, and of their events
the names that the rule asks for, unless it sends events on.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from ensue.engine.batch.input.intake import EventBatch
from ensue.engine.batch.output.remembered import ID
from ensue.engine.batch.related.correlation import RelatedCorrelation
from ensue.engine.batch.related.latest_matches import ReadEvents
from ensue.engine.batch.saved_states import SavedEvents, event_of, saved_key
from ensue.engine.core.instances.keys import whole_key
from ensue.engine.core.relating.tallies import SavedTallies
from ensue.engine.core.saved_rules import (
    SavedBranch,
    SavedEvent,
    SavedExtra,
    SavedKey,
    SavedPlace,
    SavedRule,
    damaged,
    restore_event,
    restore_key,
    save_event,
)
from ensue.events.event import Event
from ensue.lang.expressions.evaluation import MISSING
from ensue.lang.expressions.names import Parts


def save_related(running: RelatedCorrelation) -> SavedEvents:
    """The state of a rule as plain data."""
    keys, rows = running.live()
    letters, times = running.letters_and_times(rows)
    events = _events(running, rows, times.tolist())
    read: dict[int, list[tuple[int, list[str], SavedEvent | None]]] = {}
    ports: dict[int, list[str]] = {}
    for key, letter, time, event in zip(
        keys.tolist(), letters.tolist(), times.tolist(), events, strict=True
    ):
        if letter not in ports:
            ports[letter] = running.ports_of(letter)
        read.setdefault(key, []).append((time, ports[letter], save_event(event)))
    after, clock = running.form.after, running.clock
    if after is not None and clock is not None:
        for readings in read.values():
            _note_firing(readings, after, clock)
    made: dict[int, dict[str, int]] = {}
    counts = running.maker.counts
    for (_, key, trigger), number in counts.still_counted(running.clock).items():
        made.setdefault(key, {})[trigger] = number
    tallies = running.tallies()
    every = running.keys.all()
    saved: list[tuple[SavedKey, int, list[SavedPlace]]] = []
    extras: dict[int, SavedExtra] = {}
    for key in sorted(read.keys() | made.keys() | tallies.keys()):
        extras[len(saved)] = SavedExtra(
            last_read=running.last_read(key),
            outputs_at=counts.at if key in made else None,
            outputs_made=made.get(key, {}),
            branches=[SavedBranch(read.get(key, []), [], {}, tallies.get(key))],
        )
        saved.append((saved_key(every[key]), 0, []))
    states: list[list[int]] = [[]] if saved else []
    rule = SavedRule(running.name, "memory", None, states, saved, extras)
    return SavedEvents(running.clock, None, rule)


def _note_firing(
    readings: list[tuple[int, list[str], SavedEvent | None]], after: int, clock: int
) -> None:
    """Say among the readings of a key that the clock has fired: the moments up to then are over."""
    come = [time + after for time, _, _ in readings if time + after <= clock]
    if come:
        readings.append((max(come), [], None))
        readings.sort(key=lambda each: each[0])


def _events(running: RelatedCorrelation, rows: Any, times: list[int]) -> list[Event]:
    if not len(rows):
        return []
    kept = running.remembered.taken(rows)
    if kept.whole is not None:
        return kept.whole
    names = list(kept.columns)
    values = zip(*(kept.columns[name].to_list() for name in names), strict=True)
    found = (event_of(_present(names, each)) for each in values)
    return [msgspec.structs.replace(e, time=time) for e, time in zip(found, times, strict=True)]


def _present(names: list[Parts], values: tuple[Any, ...]) -> dict[Parts, Any]:
    assert ID in names
    return {name: v for name, v in zip(names, values, strict=True) if v is not MISSING}


def restore_related(running: RelatedCorrelation, saved: SavedEvents) -> None:
    """Go on from a state; nothing has been read yet. Raises `LeavesColumnsError`."""
    running.clear()
    running.clock = saved.clock
    rule = saved.rule
    keys = running.keys.restore_keys([whole_key(restore_key(key)) for key, _, _ in rule.keys])
    read_under: list[int] = []
    letters: list[int] = []
    times: list[int] = []
    events: list[Event] = []
    known = {port.name for port in running.correlation.ports}
    latest = max((each.outputs_at or 0 for each in rule.extras.values()), default=0)
    counted: dict[tuple[int, int, str], int] = {}
    tallies: dict[int, SavedTallies] = {}
    last_read: dict[int, int] = {}
    for at, key in enumerate(keys.tolist()):
        extra = rule.extras.get(at, SavedExtra())
        branches = extra.branches or []
        if len(branches) != 1:
            raise damaged("a rule has other branches")
        if branches[0].tallies is not None:
            tallies[key] = branches[0].tallies
        last_read[key] = extra.last_read
        for time, ports, event in branches[0].readings:
            if event is None and not ports and running.has_timers:
                # What has fired is over, and nothing comes behind it.
                continue
            if not known.issuperset(ports) or event is None:
                raise damaged(f"`{running.name}` has other ports")
            read_under.append(key)
            letters.append(running.letter_of(ports))
            times.append(time)
            events.append(restore_event(event))
        if extra.outputs_at is not None and extra.outputs_at == latest:
            counted |= {(0, key, id_): number for id_, number in extra.outputs_made.items()}
    running.maker.counts.restore(latest if counted else None, counted)
    running.restore_last(last_read)
    number = running.remembered.next
    if events:
        batch = EventBatch(events, running.types)
        running.remembered.add([batch], np.arange(len(events)), None)
    try:
        running.replay(
            ReadEvents(
                np.array(letters, np.uint64),
                np.array(times, np.int64),
                np.array(read_under, np.int32),
                number,
            ),
            tallies,
        )
    except ValueError:
        raise damaged(f"`{running.name}` has other aggregates") from None
