"""Hints about files that Spark has read, from their first events.

In come the files of a run that has put out nothing for some rules; out go the hints that a run in
one process gives of all events: attributes that no event had, and times that lie in 1970. Only
files that this process can open are looked at; of others nothing is said.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import islice
from typing import NamedTuple

from ensue.cli import hints
from ensue.errors import EnsueError
from ensue.events.event import Event
from ensue.events.mapping import Mapping
from ensue.events.records.reading import read_inputs
from ensue.events.sources.contents import Given
from ensue.events.sources.finding import find_files
from ensue.events.sources.inputs import inputs_of
from ensue.lang.checked import CheckedLibrary

MOST_READ = 10_000


class Sampled(NamedTuple):
    """Where a run has read its events, and how."""

    paths: Sequence[str]
    given: Given
    mapping: Mapping


def hints_of_sample(
    library: CheckedLibrary, sampled: Sampled, silent: Collection[str]
) -> list[str]:
    """The hints for a run that has put out nothing for the rules in `silent`."""
    seen = hints.SeenEvents.of(library)
    count = 0
    try:
        inputs = inputs_of(find_files(sampled.paths, sampled.given.format), sampled.given)
        records = read_inputs(inputs, library.types, mapping=sampled.mapping)
        for record in islice(records, MOST_READ):
            count += 1
            if isinstance(record, Event):
                seen.take(record)
    except (EnsueError, OSError):
        return []
    none = "no event" if count < MOST_READ else f"none of the first {MOST_READ:,} events"
    found = [*hints.about_absent(seen, library, silent, none)]
    about_1970 = hints.about_1970(seen, sampled.mapping.unit("time"))
    return found if about_1970 is None else [*found, about_1970]
