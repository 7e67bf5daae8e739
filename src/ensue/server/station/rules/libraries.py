"""Libraries that come, change and go while events flow, each change one step of the line.

In comes a text and its author; out goes a `LibraryChange`, or a `LibraryError` with every finding.
A text is read and checked before the line hears of it. The line then changes the run, which keeps
the state of rules that mean the same, and writes version, state and audit log in one transaction:
after a crash either all of it has happened or nothing. A disabled library forgets its state.

A change may come with a `Precondition`, the state that its author has seen; where it does not hold
in that step, nothing is changed, and `ChangedError` tells what others did.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection
from typing import Final, NamedTuple, TypeVar

import msgspec

from ensue.errors import UsageError
from ensue.events.times import format_time
from ensue.history.asking.prepared import asks_history
from ensue.lang.diagnostics import did_you_mean
from ensue.lang.expanding.parameters import GivenValues, python_value, value_of
from ensue.lang.expanding.rewriting import before_values, parameters_in, text_with_values
from ensue.library import Library
from ensue.server.settings.reading import NAME
from ensue.server.station.preconditions import ALWAYS, ChangedError, Precondition, digest
from ensue.server.station.record.registry import InForce, Saved, Version
from ensue.server.station.rules.differences import RuleEffects, rule_effects
from ensue.server.station.rules.hosted import Hosted
from ensue.server.station.station import Station

log = logging.getLogger("ensue.server")

T = TypeVar("T")

LAST_VERSION: Final = 2**31 - 1
LONGEST_NOTE: Final = 1_000


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


class Edit(NamedTuple):
    """Who changes a library and why, and which version the author has seen."""

    name: str
    author: str
    note: str = ""
    expected: Precondition = ALWAYS


def tag_of(current: InForce, version: Version) -> str:
    """What tells a text in force, and whether it is enabled, from any before and after."""
    state = "on" if current.enabled else "off"
    return f"{current.version}-{state}-{digest(version.text)}"


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
        found = self._registry.version(name, wanted) if wanted <= LAST_VERSION else None
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

    def defaults(self, name: str) -> dict[str, object]:
        """Values of the parameters as the text was put, before others were set."""
        now = self.version(name)
        earlier = [each for each in self._registry.versions(name) if each.version < now.version]
        text = before_values(now.text, (each.text for each in earlier))
        declared = parameters_in(text).values()
        return {each.name: python_value(value_of(each, each.value)) for each in declared}

    def tag(self, name: str) -> str | None:
        """The tag of a library that is in force; None if there is none of the name."""
        current = next((each for each in self._registry.in_force() if each.name == name), None)
        return None if current is None else tag_of(current, self.version(name, current.version))

    def effects(self, name: str, text: str) -> RuleEffects:
        """What becomes of the rules under a name if a text is put. Raises `LibraryError`."""
        library = self._station.read_library(text, name)
        hosted = self._station.hosted.get(name)
        known = next((each for each in self._registry.in_force() if each.name == name), None)
        runs = known is None or known.enabled
        return rule_effects(hosted.library if hosted else None, library if runs else None)

    def seen(self, name: str, tags: Collection[str]) -> Version | None:
        """The latest version that tags are of; None if it is not kept any more."""
        for each in self._registry.versions(name):
            ends = f"-{digest(each.text)}"
            if any(tag.startswith(f"{each.version}-") and tag.endswith(ends) for tag in tags):
                return each
        return None

    def versions_after(self, seen: Version) -> list[Version]:
        """Versions of a library behind one of them, the latest first."""
        return [each for each in self._registry.versions(seen.name) if each.version > seen.version]

    # --- changing -------------------------------------------------------------------------------

    async def put(self, edit: Edit, text: str, library: Library | None = None) -> LibraryChange:
        """Run a text under a name from now on, as a new version if it differs.

        What it imports is put in place of the imports. `library` is what `read` has made of the
        text, if that was done.
        """
        if library is None:
            names = [each.name for each in self._registry.in_force()]
            known = {name: self.version(name).text for name in names}
            text = await asyncio.to_thread(self._station.alone, text, edit.name, known)
        read = await self.read(edit.name, text) if library is None else library
        return await self._station.call(
            lambda: self._step(lambda: self._put(edit, text, read, "put"))
        )

    async def read(self, name: str, text: str, file: str | None = None) -> Library:
        """The library of a text that is to run under a name. Raises `LibraryError`."""
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
        return await asyncio.to_thread(self._station.read_library, text, file or name)

    async def set_parameters(self, edit: Edit, values: GivenValues) -> LibraryChange:
        """Put the text in force with other values of its parameters, as a new version."""
        text = text_with_values(self.version(edit.name).text, values)
        said = ", ".join(f"{name} = {value}" for name, value in values.items())
        noted = edit if edit.note else edit._replace(note=f"parameters: {said}"[:LONGEST_NOTE])
        return await self.put(noted, text)

    async def roll_back(self, edit: Edit, version: int) -> LibraryChange:
        """Put the text of an earlier version in force again, as a new version."""
        old = self.version(edit.name, version)
        library = await asyncio.to_thread(self._station.read_library, old.text, edit.name)
        again = f"version {version} again"
        noted = edit._replace(note=f"{again}: {edit.note}" if edit.note else again)
        return await self._station.call(
            lambda: self._step(lambda: self._put(noted, old.text, library, "roll back"))
        )

    async def enable(self, edit: Edit, enabled: bool) -> LibraryChange:
        """Enable a library, whose rules start without state, or disable it."""
        version = self.in_force(edit.name).version
        library = await asyncio.to_thread(self.library, edit.name)

        def apply() -> LibraryChange:
            # Rarely, another version was put meanwhile.
            is_current = self.in_force(edit.name).version == version
            return self._enable(edit, library if is_current else self.library(edit.name), enabled)

        return await self._station.call(lambda: self._step(apply))

    async def remove(self, edit: Edit) -> None:
        """Take a library out of force. Its versions are kept, as long as few others go, too."""

        def apply() -> None:
            self.in_force(edit.name)
            self._check_unchanged(edit)
            journal = self._station.journal
            with journal.write():
                self._registry.remove(edit.name, self._station.limits.libraries)
                self._audit(edit, "delete", edit.note)
            self._station.hosted.pop(edit.name, None)
            self._station.since_start.forget(edit.name)

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

    def _put(self, edit: Edit, text: str, library: Library, action: str) -> LibraryChange:
        station, name, note = self._station, edit.name, edit.note
        self._check_limits(name, library)
        versions = self._registry.versions(name)
        current = next((each for each in self._registry.in_force() if each.name == name), None)
        enabled = current is None or current.enabled
        is_same = bool(versions) and versions[0].text == text
        if current is not None and is_same and not edit.expected.is_new:
            # Also where others put this text, or an answer was lost: what is asked for is so.
            return self._unchanged(current, library)
        self._check_unchanged(edit)
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
            self._registry.add_version(Version(name, number, text, at, edit.author, note), keep)
            self._registry.put_in_force(name, number, enabled)
            self._audit(edit, action, f"version {number}" + (f": {note}" if note else ""))
            if hosted is not None:
                self._save(hosted)
        if hosted is not None:
            station.hosted[name] = hosted
        return change

    def _enable(self, edit: Edit, library: Library, enabled: bool) -> LibraryChange:
        station = self._station
        current = self.in_force(edit.name)
        if current.enabled == enabled:
            return self._unchanged(current, library)
        self._check_unchanged(edit)
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
            self._audit(edit, "enable" if enabled else "disable", edit.note)
            if started is not None:
                self._save(started)
        station.hosted.pop(current.name, None)
        station.since_start.forget(current.name)
        if started is not None:
            station.hosted[current.name] = started
        return change

    def _check_unchanged(self, edit: Edit) -> None:
        """Raises `ChangedError` where a library is not as the author of an edit has seen it."""
        if edit.expected == ALWAYS:
            return
        if edit.expected.holds(self.tag(edit.name)):
            return
        if edit.name not in {each.name for each in self._registry.in_force()}:
            raise ChangedError(
                f"library `{edit.name}` is not there any more: put it without `If-Match` to begin"
                " it again"
            )
        current, version = self.in_force(edit.name), self.version(edit.name)
        stands = (
            f"version {version.version}{'' if current.enabled else ', disabled,'} of"
            f" `{version.author}`, put at {format_time(version.at)}"
            + (f" ({version.note})" if version.note else "")
        )
        if edit.expected.is_new:
            raise ChangedError(
                f"there is a library `{edit.name}` already: {stands}; give another name, or look"
                " at `difference` and put it with `If-Match` and the tag of what is replaced"
            )
        raise ChangedError(
            f"library `{edit.name}` is no longer as you have seen it: in force is {stands}; look at"
            " `since` and `difference`, bring both changes together, and put it with the tag of"
            " this answer"
        )

    def _save(self, hosted: Hosted) -> None:
        state, counts = hosted.state()
        seq = self._station.seq
        self._registry.save_state(Saved(hosted.name, hosted.version, seq, state, counts))
        hosted.saved_seq = seq

    def _audit(self, edit: Edit, action: str, detail: str) -> None:
        at = time.time_ns() // 1000
        self._registry.audit(at, edit.author, action, edit.name, detail)
        # It is told before the transaction ends; one that fails is told by the journal.
        shown = f"{action}: {detail}" if detail else action
        log.info("`%s` changes library `%s`: %s", edit.author, edit.name, shown)

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
        effects = rule_effects(hosted.library if hosted else None, library if enabled else None)
        return LibraryChange(name, version, enabled, True, **msgspec.structs.asdict(effects))
