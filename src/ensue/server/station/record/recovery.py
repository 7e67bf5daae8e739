"""Puts the runs of all libraries to where the journal stands: saved states, then what came since.

In come the libraries in force and what was saved of their runs; out go `Hosted` runs that have read
every input of the journal. Outputs that follow on the way are in the journal already, since they
were written with the inputs; they are counted from there, and compared by their number. A state
that cannot be read, or is of another version, is an error here: silently starting afresh would lose
what rules were in the middle of.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from typing import Final

import msgspec

from ensue.errors import EventError, LibraryError, SnapshotError, UsageError
from ensue.events.cloudevents import decode
from ensue.events.event import Event
from ensue.history import History
from ensue.library import Library
from ensue.server.station.entries import EVENT, OUTPUT, TIME, UNREAD, JournalEntry
from ensue.server.station.record.journal import ServerJournal
from ensue.server.station.record.registry import InForce, Registry
from ensue.server.station.rules.hosted import Hosted

FOREVER: Final = 2**62

log = logging.getLogger("ensue.server")

ReadLibrary = Callable[[str, str], Library]
"""Reads the text of a library; its name is for messages."""


def recovered(
    journal: ServerJournal, registry: Registry, read: ReadLibrary, history: History
) -> dict[str, Hosted]:
    """The libraries in force that run, each with its run where the journal stands."""
    found: dict[str, Hosted] = {}
    for each in registry.in_force():
        if each.enabled:
            found[each.name] = _resumed(registry, read, each, history)
    _replay(journal, found)
    return found


def _resumed(registry: Registry, read: ReadLibrary, wanted: InForce, history: History) -> Hosted:
    version = registry.version(wanted.name, wanted.version)
    saved = registry.state(wanted.name)
    if version is None or saved is None or saved.version != wanted.version:
        raise UsageError(
            f"the journal holds no state for version {wanted.version} of library `{wanted.name}`:"
            " it is damaged; restore it from a copy"
        )
    try:
        library = read(version.text, wanted.name)
        hosted = Hosted.resumed(
            wanted.name, wanted.version, library, saved.state, saved.counts, history
        )
    except (LibraryError, SnapshotError, msgspec.MsgspecError) as error:
        raise UsageError(
            f"library `{wanted.name}` (version {wanted.version}) cannot go on from its saved"
            f" state: {error}"
        ) from None
    hosted.saved_seq = saved.seq
    return hosted


def _replay(journal: ServerJournal, hosted: dict[str, Hosted]) -> None:
    """Let each run read the inputs behind its saved state; what came of them is in the journal."""
    if not hosted:
        return
    after = min(each.saved_seq for each in hosted.values())
    surplus: Counter[str] = Counter()
    excepted: set[str | None] = set()
    while entries := journal.page(after, FOREVER):
        after = entries[-1].seq
        for entry in entries:
            if entry.kind == UNREAD:
                excepted.add(entry.library)
            elif entry.kind in (EVENT, TIME):
                event, moment = _input(journal, entry)
                for each in hosted.values():
                    if entry.seq <= each.saved_seq:
                        continue
                    if event and each.name in excepted:
                        each.counted.refused += 1
                        each.counted.full += 1
                    elif entry.library in (None, each.name):
                        outputs = each.push(event) if event else each.run.advance(moment)
                        surplus[each.name] += len(outputs) + len(each.run.late)
                        each.run.late = []
                if event:
                    excepted.clear()
            elif entry.library in hosted and entry.seq > hosted[entry.library].saved_seq:
                surplus[entry.library] -= 1
                _count(journal, hosted[entry.library], entry)
    for name, difference in surplus.items():
        if difference:
            log.error(
                "library `%s` put out %+d after a recovery, compared with the journal: please"
                " report this with the library",
                name,
                difference,
            )


def _input(journal: ServerJournal, entry: JournalEntry) -> tuple[Event | None, int]:
    """The event of an entry, or the time that it brings."""
    try:
        if entry.kind == EVENT:
            return decode(entry.body), 0
        return None, int(entry.body)
    except (EventError, ValueError) as error:
        raise journal.damaged(f"entry {entry.seq}: {error}") from None


def _count(journal: ServerJournal, hosted: Hosted, entry: JournalEntry) -> None:
    if entry.kind == OUTPUT:
        try:
            hosted.count(decode(entry.body), entry.seq)
        except EventError as error:
            raise journal.damaged(f"entry {entry.seq}: {error}") from None
    else:
        hosted.counted.late += 1
