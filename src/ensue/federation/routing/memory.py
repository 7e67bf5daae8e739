"""What a gateway keeps in a file: requests made while it ran, what neighbours had stated, services.

A gateway that comes back goes on with both, so that events which waited for it find their way
before its neighbours have spoken. Which events its services have stands in files of its own beside
it (`links.seen`): what was not acknowledged comes again. Without a file nothing is kept. A file
that cannot be read is begun anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

import msgspec

from ensue.federation.routing.control import Stated


def seen_file(path: Path | None, service: str) -> Path | None:
    """The file of the identities of events that a service has."""
    if path is None:
        return None
    mark = blake2b(service.encode(), digest_size=6).hexdigest()
    return path.with_name(f"{path.stem}.{mark}.seen")


class MemoryFile(msgspec.Struct):
    """The content of the file."""

    requests: list[tuple[str, str]] = []
    stated: dict[str, list[Stated]] = {}
    connected: list[str] = []
    announced: list[tuple[str, tuple[str, ...], str]] = []


class Memory:
    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._kept = MemoryFile()
        if path is not None:
            with suppress(OSError, msgspec.MsgspecError):
                self._kept = msgspec.json.decode(path.read_bytes(), type=MemoryFile)

    def load(self) -> tuple[list[tuple[str, str]], list[tuple[str, Stated]]]:
        """Requests, each a service and a filter, and statements with the service of each."""
        stated = [(service, each) for service, all_ in self._kept.stated.items() for each in all_]
        return list(self._kept.requests), stated

    @property
    def connected(self) -> frozenset[str]:
        """The services that have ever been there."""
        return frozenset(self._kept.connected)

    def was_connected(self, service: str) -> bool:
        """Note that a service is there; tell whether that is the first time."""
        if service in self._kept.connected:
            return False
        self._kept.connected.append(service)
        return True

    @property
    def announced(self) -> list[tuple[str, tuple[str, ...], str]]:
        """Announcements: the service that announces, the services that are meant, the filter."""
        return list(self._kept.announced)

    def announce(self, what: tuple[str, tuple[str, ...], str], is_offered: bool) -> None:
        if (what in self._kept.announced) != is_offered:
            if is_offered:
                self._kept.announced.append(what)
            else:
                self._kept.announced.remove(what)

    def add(self, service: str, wanted: str) -> None:
        if (service, wanted) not in self._kept.requests:
            self._kept.requests.append((service, wanted))

    def remove(self, service: str, wanted: str) -> None:
        if (service, wanted) in self._kept.requests:
            self._kept.requests.remove((service, wanted))

    def save(self, stated: Mapping[str, Sequence[Stated]]) -> None:
        if self._path is None:
            return
        self._kept.stated = {service: list(each) for service, each in stated.items()}
        fresh = self._path.with_name(f"{self._path.name}.new")
        with suppress(OSError):
            fresh.write_bytes(msgspec.json.encode(self._kept))
            fresh.replace(self._path)
