"""The tables of a server's TOML file: their keys, what a key may hold, and what it is without one.

A table is a struct; a key of the file is a field of it. Nothing is checked here beyond types:
what values mean and which of them go together is told in `reading`.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Role = Literal["publish", "subscribe", "rules", "history", "admin"]
ROLES: tuple[Role, ...] = ("publish", "subscribe", "rules", "history", "admin")
DEFAULT_LISTEN = "127.0.0.1:8420"
MAIN = "main"
"""The channel that every server has."""


class SettingsTable(msgspec.Struct, frozen=True, kw_only=True):
    """One table of the file."""


class ServerTable(SettingsTable, frozen=True, kw_only=True):
    """`hosts` are names, beside the address itself, under which the server may be called.

    `lateness` and `clock` are of the stream: how far events may come out of order, and whether the
    wall clock fires timers when no event does.
    """

    listen: str = DEFAULT_LISTEN
    data: str | None = None
    hosts: list[str] = []
    certificate: str | None = None
    key: str | None = None
    open: bool = False
    console: bool = True
    demo: bool = False
    lateness: str = "0 s"
    clock: Literal["wall", "events"] = "wall"


class HistoryTable(SettingsTable, frozen=True, kw_only=True):
    url: str | None = None
    max_age: str | None = None
    max_count: int | None = None


class OntologyTable(SettingsTable, frozen=True, kw_only=True):
    files: list[str] = []


class LimitsTable(SettingsTable, frozen=True, kw_only=True):
    """Every bound of the server, by name; a refusal names the one that was met."""

    body_bytes: int = 16 * 1024 * 1024
    event_bytes: int = 1024 * 1024
    batch_events: int = 50_000
    waiting_events: int = 100_000
    waiting_bytes: int = 128 * 1024 * 1024
    history_lag: int = 1_000_000
    journal_events: int = 2_000_000
    save_seconds: float = 30.0
    transaction_events: int = 10_000
    subscribers: int = 2_000
    subscriber_waiting: int = 2_000
    private_libraries: int = 20
    libraries: int = 100
    correlations: int = 5_000
    library_bytes: int = 1024 * 1024
    keys: int = 500_000
    keys_in_all: int = 2_000_000
    versions: int = 100
    webhooks: int = 50
    replay_events: int = 500_000
    query_seconds: float = 20.0
    answers: int = 10_000
    connections: int = 10_000
    requests_per_second: int = 5_000
    head_seconds: float = 10.0
    body_seconds: float = 30.0
    unread_seconds: float = 60.0
    ahead: str = "1 h"


class LibraryTable(SettingsTable, frozen=True, kw_only=True):
    name: str
    file: str
    enabled: bool = True
    channel: str = MAIN


class ServerChannelTable(SettingsTable, frozen=True, kw_only=True):
    """A channel beside `main`. What it does not say of its stream is as in `[server]`."""

    name: str
    lateness: str | None = None
    clock: Literal["wall", "events"] | None = None
    history: str | None = None
    max_age: str | None = None
    max_count: int | None = None


class ServerLinkTable(SettingsTable, frozen=True, kw_only=True):
    """What one channel publishes of another: entries of `kinds` that match `where`."""

    source: str = msgspec.field(name="from")
    to: str
    kinds: tuple[Literal["event", "output", "late"], ...] = ("output",)
    where: str | None = None
    library: str | None = None


class TokenTable(SettingsTable, frozen=True, kw_only=True):
    """`secret` is the token itself, by reference, or `sha256` its digest in hexadecimal digits.

    `subjects` are patterns of event types (of libraries, for `rules`); `deny` wins over them.
    `channels` are patterns of the channels in which it may do anything at all.
    """

    name: str
    roles: list[Role]
    secret: str | None = None
    sha256: str | None = None
    subjects: tuple[str, ...] = ("*",)
    deny: list[str] = []
    channels: tuple[str, ...] = ("*",)
    events_per_second: int | None = None


class WebhooksTable(SettingsTable, frozen=True, kw_only=True):
    """Networks that webhooks may lead to beside public addresses, such as `10.0.0.0/8`."""

    networks: list[str] = []


class LogTable(SettingsTable, frozen=True, kw_only=True):
    """How the log is written, on the standard error; `access` has a line for each request."""

    format: Literal["text", "json"] = "text"
    level: Literal["debug", "info", "warning", "error"] = "info"
    access: bool = False


TABLES: dict[str, type[SettingsTable]] = {
    "server": ServerTable,
    "history": HistoryTable,
    "ontology": OntologyTable,
    "limits": LimitsTable,
    "webhooks": WebhooksTable,
    "log": LogTable,
}
ARRAYS: dict[str, type[SettingsTable]] = {
    "library": LibraryTable,
    "token": TokenTable,
    "channel": ServerChannelTable,
    "link": ServerLinkTable,
}
PARAMETERS = "parameters"
"""The table with values of parameters of libraries, whose names are the parameters'."""
GATEWAY_TABLES = ("gateway", "service", "subscribe", "map", "site")
"""Tables of a gateway, which `ensue.federation` reads itself."""
