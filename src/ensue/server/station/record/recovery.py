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
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from ensue.errors import EventError, LibraryError, SnapshotError, UsageError
from ensue.events.cloudevents import decode
from ensue.events.event import Event
from ensue.history import History
from ensue.library import Library
from ensue.server.station.entries import EVENT, OUTPUT, TIME, UNREAD, JournalEntry
from ensue.server.station.record.decoding import decoded
from ensue.server.station.record.journal import ServerJournal
from ensue.server.station.record.registry import InForce, Registry
from ensue.server.station.rules.hosted import Hosted

FOREVER: Final = 2**62

log = logging.getLogger("ensue.server")

ReadLibrary = Callable[[str, str], Library]
"""Reads the text of a library; its name is for messages."""
OnProgress = Callable[[int, int], None]


def recovered(
    journal: ServerJournal,
    registry: Registry,
    read: ReadLibrary,
    history: History,
    told: OnProgress,
) -> dict[str, Hosted]:
    """The libraries in force that run, each with its run where the journal stands.

    `told` is called now and then with how many entries were read again, and of how many.
    """
    found: dict[str, Hosted] = {}
    for each in registry.in_force():
        if each.enabled:
            found[each.name] = _resumed(registry, read, each, history)
    _replay(journal, found, told)
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


def _replay(journal: ServerJournal, hosted: dict[str, Hosted], told: OnProgress) -> None:
    """Let each run read the inputs behind its saved state; what came of them is in the journal."""
    if not hosted:
        return
    first = after = min(each.saved_seq for each in hosted.values())
    until = journal.last
    replay = _Replay(journal, hosted)
    while entries := journal.page(after, FOREVER):
        told(after - first, until - first)
        after = entries[-1].seq
        replay.read(entries)
    replay.count_outputs()
    surplus = replay.surplus
    for name, difference in surplus.items():
        if difference:
            log.error(
                "library `%s` put out %+d after a recovery, compared with the journal: please"
                " report this with the library",
                name,
                difference,
            )


class _Replay:
    """Entries read again, in their order, each by the runs whose state was saved before it."""

    def __init__(self, journal: ServerJournal, hosted: dict[str, Hosted]) -> None:
        self._journal = journal
        self._hosted = hosted
        self._excepted: set[str | None] = set()
        self._outputs: dict[tuple[str, str | None], tuple[int, JournalEntry]] = {}
        self.surplus: Counter[str] = Counter()
        """Outputs and late events of each library, fewer those that the journal has."""

    def read(self, entries: Sequence[JournalEntry]) -> None:
        events = iter(self._events([each for each in entries if each.kind == EVENT]))
        for entry in entries:
            if entry.kind == UNREAD:
                self._excepted.add(entry.library)
            elif entry.kind == EVENT:
                self._push(entry, next(events))
                self._excepted.clear()
            elif entry.kind == TIME:
                self._advance(entry)
            elif entry.library in self._hosted:
                self._note(entry, self._hosted[entry.library])

    def _events(self, entries: Sequence[JournalEntry]) -> list[Event]:
        try:
            return decoded([each.body for each in entries])
        except EventError as error:
            place = f"entries {entries[0].seq} to {entries[-1].seq}"
            raise self._journal.damaged(f"{place}: {error}") from None

    def _push(self, entry: JournalEntry, event: Event) -> None:
        for each in self._hosted.values():
            if entry.seq <= each.saved_seq:
                continue
            if each.name in self._excepted:
                each.counted.refused += 1
                each.counted.full += 1
            else:
                self._count(each, each.push(event))

    def _advance(self, entry: JournalEntry) -> None:
        try:
            moment = int(entry.body)
        except ValueError as error:
            raise self._journal.damaged(f"entry {entry.seq}: {error}") from None
        for each in self._hosted.values():
            if entry.seq > each.saved_seq and entry.library in (None, each.name):
                self._count(each, each.run.advance(moment))

    def _count(self, hosted: Hosted, outputs: Sequence[Event]) -> None:
        if outputs or hosted.run.late:
            self.surplus[hosted.name] += len(outputs) + len(hosted.run.late)
            hosted.run.late = []

    def _note(self, entry: JournalEntry, hosted: Hosted) -> None:
        """Note what the journal holds of a library. Only the last output of a rule is looked at."""
        if entry.seq <= hosted.saved_seq:
            return
        self.surplus[hosted.name] -= 1
        if entry.kind == OUTPUT:
            rule = hosted.name, entry.correlation
            count, _ = self._outputs.get(rule, (0, entry))
            self._outputs[rule] = count + 1, entry
        else:
            hosted.counted.late += 1

    def count_outputs(self) -> None:
        for (name, _), (count, last) in self._outputs.items():
            try:
                self._hosted[name].count(decode(last.body), last.seq, count)
            except EventError as error:
                raise self._journal.damaged(f"entry {last.seq}: {error}") from None
