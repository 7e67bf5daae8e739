"""The settings of a server as it uses them, and the addresses that they name.

A file becomes `Settings` in `reading`, where everything that is wrong with it is found.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from ensue.errors import UsageError
from ensue.library import duration_microseconds
from ensue.server.settings.tables import (
    MAIN,
    HistoryTable,
    LibraryTable,
    LimitsTable,
    LogTable,
    OntologyTable,
    ServerChannelTable,
    ServerLinkTable,
    ServerTable,
    TokenTable,
    WebhooksTable,
)

LOOPBACK_NAMES = ("localhost",)


@dataclass(frozen=True)
class Settings:
    """A file of settings as the server uses it. `folder` is where relative paths begin."""

    server: ServerTable = field(default_factory=ServerTable)
    history: HistoryTable = field(default_factory=HistoryTable)
    ontology: OntologyTable = field(default_factory=OntologyTable)
    limits: LimitsTable = field(default_factory=LimitsTable)
    webhooks: WebhooksTable = field(default_factory=WebhooksTable)
    log: LogTable = field(default_factory=LogTable)
    libraries: Sequence[LibraryTable] = ()
    tokens: Sequence[TokenTable] = ()
    channels: Sequence[ServerChannelTable] = ()
    links: Sequence[ServerLinkTable] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Values of parameters of the libraries of the file."""
    gateway: Mapping[str, Any] = field(default_factory=dict)
    hosts_api: bool = True
    """False for a file that only has the tables of a gateway."""
    folder: Path = field(default_factory=Path)
    where: str = "the defaults"
    channel: str = MAIN
    """Whose settings these are, of those that a server has."""

    @property
    def address(self) -> tuple[str, int]:
        return split_address(self.server.listen)

    @property
    def lateness(self) -> int:
        return duration_microseconds(self.server.lateness)

    @property
    def ahead(self) -> int:
        return duration_microseconds(self.limits.ahead)

    @property
    def channel_names(self) -> list[str]:
        return [MAIN, *(each.name for each in self.channels)]

    def of_channel(self, name: str) -> Settings:
        """The settings as one channel has them: its own stream, data folder and history."""
        if name == MAIN:
            return self
        given = next(each for each in self.channels if each.name == name)
        server = self.server
        stream = msgspec.structs.replace(
            server,
            data=None if server.data is None else str(Path(server.data) / "channels" / name),
            lateness=server.lateness if given.lateness is None else given.lateness,
            clock=given.clock or server.clock,
        )
        history = HistoryTable(url=given.history, max_age=given.max_age, max_count=given.max_count)
        return replace(self, server=stream, history=history, channel=name)


def split_address(text: str) -> tuple[str, int]:
    """Host and port of `127.0.0.1:8420` or `[::1]:8420`. Raises `UsageError`."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not re.fullmatch("[0-9]{1,5}", port) or int(port) > 65535:
        raise UsageError(f"`{text}` is no address: write a host and a port, as `127.0.0.1:8420`")
    return host, int(port)


def is_loopback(host: str) -> bool:
    if host in LOOPBACK_NAMES:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
