"""What a gateway keeps in a file: requests made while it ran, and what its neighbours had stated.

A gateway that comes back goes on with both, so that events which waited for it find their way
before its neighbours have spoken. One that was told to stop also leaves which events its services
had, by identity: what it could not acknowledge any more comes again. Without a file nothing is
kept. A file that cannot be read is begun anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from ensue.federation.routing.control import Stated


class MemoryFile(msgspec.Struct):
    """The content of the file."""

    requests: list[tuple[str, str]] = []
    stated: dict[str, list[Stated]] = {}
    seen: dict[str, list[int]] = {}


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
    def seen(self) -> Mapping[str, Sequence[int]]:
        """Identities of events that services had when the gateway was told to stop."""
        return self._kept.seen

    def add(self, service: str, wanted: str) -> None:
        if (service, wanted) not in self._kept.requests:
            self._kept.requests.append((service, wanted))

    def remove(self, service: str, wanted: str) -> None:
        if (service, wanted) in self._kept.requests:
            self._kept.requests.remove((service, wanted))

    def save(
        self,
        stated: Mapping[str, Sequence[Stated]],
        seen: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        if self._path is None:
            return
        self._kept.seen = {} if seen is None else {key: list(each) for key, each in seen.items()}
        self._kept.stated = {service: list(each) for service, each in stated.items()}
        fresh = self._path.with_name(f"{self._path.name}.new")
        with suppress(OSError):
            fresh.write_bytes(msgspec.json.encode(self._kept))
            fresh.replace(self._path)
