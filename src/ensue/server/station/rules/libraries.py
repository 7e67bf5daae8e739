"""Libraries that come, change and go while events flow, each change one step of the line.

In comes a text and its author; out goes a `LibraryChange`, or a `LibraryError` with every finding.
A text is read and checked before the line hears of it. The line then changes the run, which keeps
the state of rules that mean the same, and writes version, state and audit log in one transaction:
after a crash either all of it has happened or nothing. A disabled library forgets its state.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

import msgspec

from ensue.engine.changing import is_unchanged
from ensue.errors import UsageError
from ensue.history.asking.prepared import asks_history
from ensue.lang.diagnostics import did_you_mean
from ensue.library import Library
from ensue.server.settings.reading import NAME
from ensue.server.station.record.registry import InForce, Saved, Version
from ensue.server.station.rules.hosted import Hosted
from ensue.server.station.station import Station

T = TypeVar("T")


class UnknownError(UsageError):
    """Something that is named in a request, and is not there."""


class LimitedError(UsageError):
    """A request that one of the server's limits does not allow. `limit` is its name."""

    def __init__(self, limit: str, message: str) -> None:
        self.limit = limit
        super().__init__(message)


class LibraryChange(msgspec.Struct, frozen=True):
    """What became of a library. The lists are names of rules."""

    name: str
    version: int
    enabled: bool
    is_new: bool
    kept: list[str]
    changed: list[str]
    added: list[str]
    removed: list[str]


class Libraries:
    """The libraries of a station."""

    def __init__(self, station: Station) -> None:
        self._station = station
        self._registry = station.registry

    # --- looking --------------------------------------------------------------------------------

    def in_force(self, name: str) -> InForce:
        known = self._registry.in_force()
        for each in known:
            if each.name == name:
                return each
        hint = did_you_mean(name, [each.name for each in known])
        raise UnknownError(f"there is no library `{name}`; {hint}")

    def version(self, name: str, version: int | None = None) -> Version:
        """A version of a library; without a number, the one in force."""
        wanted = self.in_force(name).version if version is None else version
        found = self._registry.version(name, wanted)
        if found is None:
            there = [each.version for each in self._registry.versions(name)]
            listed = f"there are {there[-1]} to {there[0]}" if there else "there are none"
            raise UnknownError(f"library `{name}` has no version {wanted}; {listed}")
        return found

    def library(self, name: str) -> Library:
        """The library in force, checked; also one that is disabled."""
        hosted = self._station.hosted.get(name)
        if hosted is not None:
            return hosted.library
        return self._station.read_library(self.version(name).text, name)

    # --- changing -------------------------------------------------------------------------------

    async def put(self, name: str, text: str, author: str, note: str = "") -> LibraryChange:
        """Run a text under a name from now on, as a new version if it differs."""
        if not NAME.fullmatch(name):
            raise UsageError(
                f"`{name}` is no name of a library: it begins with a letter, and has letters,"
                " digits, `_`, `-` and `.`, at most 64"
            )
        size, allowed = len(text.encode()), self._station.limits.library_bytes
        if size > allowed:
            raise LimitedError(
                "library_bytes",
                f"the library has {size:,} bytes, and limit `library_bytes` allows {allowed:,}:"
                " split it",
            )
        library = await asyncio.to_thread(self._station.read_library, text, name)
        return await self._station.call(
            lambda: self._step(lambda: self._put(name, text, library, author, note, "put"))
        )

    async def roll_back(self, name: str, version: int, author: str) -> LibraryChange:
        """Put the text of an earlier version in force again, as a new version."""
        old = self.version(name, version)
        library = await asyncio.to_thread(self._station.read_library, old.text, name)
        note = f"version {version} again"
        return await self._station.call(
            lambda: self._step(
                lambda: self._put(name, old.text, library, author, note, "roll back")
            )
        )

    async def enable(self, name: str, enabled: bool, author: str) -> LibraryChange:
        """Let a library run, from a fresh start, or let it rest."""
        current = self.in_force(name)
        library = await asyncio.to_thread(self.library, name)
        if current.enabled == enabled:
            return self._unchanged(current, library)
        return await self._station.call(
            lambda: self._step(lambda: self._enable(current, library, enabled, author))
        )

    async def remove(self, name: str, author: str) -> None:
        """Take a library out of force. Its versions are kept, as long as few others go, too."""
        self.in_force(name)

        def apply() -> None:
            journal = self._station.journal
            with journal.write():
                self._registry.remove(name, self._station.limits.libraries)
                self._audit(author, "delete", name, "")
            self._station.hosted.pop(name, None)

        await self._station.call(lambda: self._step(apply))

    # --- in the line ----------------------------------------------------------------------------

    def _step(self, apply: Callable[[], T]) -> T:
        """A change; where it fails on the way, the runs are put back to what is written."""
        try:
            result = apply()
        except UsageError:
            raise
        except Exception:
            self._station.recover()
            raise
        self._station.settle()
        return result

    def _put(
        self, name: str, text: str, library: Library, author: str, note: str, action: str
    ) -> LibraryChange:
        station = self._station
        self._check_limits(name, library)
        versions = self._registry.versions(name)
        current = next((each for each in self._registry.in_force() if each.name == name), None)
        enabled = current is None or current.enabled
        if current is not None and versions and versions[0].text == text:
            return self._unchanged(current, library)
        number = versions[0].version + 1 if versions else 1
        change = self._change(name, number, library, enabled)
        hosted = station.hosted.get(name)
        if enabled and hosted is None:
            hosted = Hosted.started(
                name, number, library, station.settings.lateness, station.history
            )
        elif hosted is not None:
            hosted.change(number, library, station.history)
        at = time.time_ns() // 1000
        with station.journal.write():
            keep = station.limits.versions
            self._registry.add_version(Version(name, number, text, at, author, note), keep)
            self._registry.put_in_force(name, number, enabled)
            self._audit(author, action, name, f"version {number}" + (f": {note}" if note else ""))
            if hosted is not None:
                self._save(hosted)
        if hosted is not None:
            station.hosted[name] = hosted
        return change

    def _enable(
        self, current: InForce, library: Library, enabled: bool, author: str
    ) -> LibraryChange:
        station = self._station
        change = self._change(current.name, current.version, library, enabled)
        started: Hosted | None = None
        if enabled:
            self._check_limits(current.name, library)
            started = Hosted.started(
                current.name, current.version, library, station.settings.lateness, station.history
            )
        with station.journal.write():
            self._registry.put_in_force(current.name, current.version, enabled)
            self._registry.forget_state(current.name)
            self._audit(author, "enable" if enabled else "disable", current.name, "")
            if started is not None:
                self._save(started)
        station.hosted.pop(current.name, None)
        if started is not None:
            station.hosted[current.name] = started
        return change

    def _save(self, hosted: Hosted) -> None:
        state, counts = hosted.state()
        seq = self._station.seq
        self._registry.save_state(Saved(hosted.name, hosted.version, seq, state, counts))
        hosted.saved_seq = seq

    def _audit(self, author: str, action: str, subject: str, detail: str) -> None:
        self._registry.audit(time.time_ns() // 1000, author, action, subject, detail)

    def _check_limits(self, name: str, library: Library) -> None:
        station = self._station
        limits = station.limits
        others = [each for each in self._registry.in_force() if each.name != name]
        if len(others) >= limits.libraries:
            raise LimitedError(
                "libraries",
                f"there are {len(others):,} libraries, and limit `libraries` allows"
                f" {limits.libraries:,}: delete one",
            )
        rules = sum(
            len(each.library.correlations) for each in station.hosted.values() if each.name != name
        )
        if rules + len(library.correlations) > limits.correlations:
            raise LimitedError(
                "correlations",
                f"with this library {rules + len(library.correlations):,} correlations would run,"
                f" and limit `correlations` allows {limits.correlations:,}",
            )
        if asks_history(library.checked.tree.definitions) and station.settings.lateness:
            raise UsageError(
                f"library `{name}` asks the history, which then has to be filled in the order of"
                " arrival, and `[server] lateness` lets events be put in order: set it to `0 s`,"
                " or leave the temporal terms out"
            )

    def _unchanged(self, current: InForce, library: Library) -> LibraryChange:
        names = list(library.correlations.names) if current.enabled else []
        return LibraryChange(
            current.name, current.version, current.enabled, False, names, [], [], []
        )

    def _change(self, name: str, version: int, library: Library, enabled: bool) -> LibraryChange:
        """What a library will do to the rules that run."""
        hosted = self._station.hosted.get(name)
        old = {each.name: each for each in hosted.library.correlations} if hosted else {}
        new = {each.name: each for each in library.correlations} if enabled else {}
        kept: list[str] = []
        for each in new.keys() & old.keys():
            assert hosted is not None
            types = hosted.library.checked.types, library.checked.types
            if is_unchanged(old[each], new[each], *types):
                kept.append(each)
        in_order = list(new)
        return LibraryChange(
            name,
            version,
            enabled,
            True,
            [each for each in in_order if each in kept],
            [each for each in in_order if each in old and each not in kept],
            [each for each in in_order if each not in old],
            [each for each in old if each not in new],
        )
