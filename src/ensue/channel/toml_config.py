"""A channel described in TOML: the tables and keys that a file may contain, and their types.

In comes the path of a file; out comes a `ChannelConfig` with the keys that the file sets. Unknown
tables and keys, and values of a wrong type, are refused here. `builder` and `policies` check the
values themselves and their combinations, as for values given in code.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import msgspec

from ensue.configuration.toml import read_settings_file
from ensue.errors import UsageError


class ConfigTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    def given(self) -> dict[str, Any]:
        """The keys that the file sets, with their values."""
        values = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: value for name, value in values.items() if value is not msgspec.UNSET}


class ChannelTable(ConfigTable, frozen=True):
    configuration: str = "full"
    name: str | msgspec.UnsetType = msgspec.UNSET
    library: str | list[str] | msgspec.UnsetType = msgspec.UNSET
    schedule: str | msgspec.UnsetType = msgspec.UNSET
    filtering: bool | msgspec.UnsetType = msgspec.UNSET
    correlation: bool | msgspec.UnsetType = msgspec.UNSET
    timeouts: bool | msgspec.UnsetType = msgspec.UNSET


class DispatchingTable(ConfigTable, frozen=True):
    strategy: str | msgspec.UnsetType = msgspec.UNSET
    threads: int | msgspec.UnsetType = msgspec.UNSET
    real_time: bool | msgspec.UnsetType = msgspec.UNSET


class ConsumersTable(ConfigTable, frozen=True):
    priority: int | msgspec.UnsetType = msgspec.UNSET
    sub_priority: int | msgspec.UnsetType = msgspec.UNSET
    capacity: int | msgspec.UnsetType = msgspec.UNSET
    overflow: str | msgspec.UnsetType = msgspec.UNSET
    within: str | msgspec.UnsetType = msgspec.UNSET
    deadline: str | msgspec.UnsetType = msgspec.UNSET
    time_to_live: str | msgspec.UnsetType = msgspec.UNSET
    conflate: bool | str | msgspec.UnsetType = msgspec.UNSET
    failures: int | msgspec.UnsetType = msgspec.UNSET


class LinkEndTable(ConfigTable, frozen=True, kw_only=True):
    """Options of both ends of a link: how much it keeps, and how its peer is authenticated."""

    buffer: int | msgspec.UnsetType = msgspec.UNSET
    buffer_bytes: int | msgspec.UnsetType = msgspec.UNSET
    overflow: str | msgspec.UnsetType = msgspec.UNSET
    within: str | msgspec.UnsetType = msgspec.UNSET
    patience: str | msgspec.UnsetType = msgspec.UNSET
    secret_file: str | msgspec.UnsetType = msgspec.UNSET
    certificate: str | msgspec.UnsetType = msgspec.UNSET
    key: str | msgspec.UnsetType = msgspec.UNSET
    authority: str | msgspec.UnsetType = msgspec.UNSET
    unprotected: bool | msgspec.UnsetType = msgspec.UNSET


class ListenTable(LinkEndTable, frozen=True, kw_only=True):
    host: str | msgspec.UnsetType = msgspec.UNSET
    port: int | msgspec.UnsetType = msgspec.UNSET
    sessions: int | msgspec.UnsetType = msgspec.UNSET
    callers: int | msgspec.UnsetType = msgspec.UNSET
    handshake: str | msgspec.UnsetType = msgspec.UNSET


class LinkTable(LinkEndTable, frozen=True, kw_only=True):
    host: str
    port: int
    reliable: bool | msgspec.UnsetType = msgspec.UNSET
    backoff: str | msgspec.UnsetType = msgspec.UNSET
    longest_backoff: str | msgspec.UnsetType = msgspec.UNSET


class ChannelConfig(ConfigTable, frozen=True):
    """All tables of a file."""

    channel: ChannelTable = ChannelTable()
    dispatching: DispatchingTable = DispatchingTable()
    consumers: ConsumersTable = ConsumersTable()
    listen: list[ListenTable] = []
    link: list[LinkTable] = []


TABLES: dict[str, type[ConfigTable]] = {
    "channel": ChannelTable,
    "dispatching": DispatchingTable,
    "consumers": ConsumersTable,
    "listen": ListenTable,
    "link": LinkTable,
}


def read(path: str | PathLike[str]) -> ChannelConfig:
    """The tables of a file, checked for names and types."""
    place = Path(path)
    tables = read_settings_file(place, "give the TOML file of a channel").tables
    _refuse_unknown(tables, place)
    try:
        return msgspec.convert(tables, ChannelConfig)
    except msgspec.ValidationError as error:
        raise UsageError(f"`{place}`: {_readable(str(error))}") from None


def _refuse_unknown(tables: dict[str, Any], place: Path) -> None:
    """Refuse unknown names first, with the known ones: a misspelling is the likeliest mistake."""
    for name, given in tables.items():
        if name not in TABLES:
            known_tables = ", ".join(f"[{each}]" for each in TABLES)
            raise UsageError(
                f"`{place}`: `{name}` is no table of a channel; there are {known_tables}"
            )
        for table in given if isinstance(given, list) else [given]:
            keys = table if isinstance(table, dict) else {}
            for key in keys.keys() - set(TABLES[name].__struct_fields__):
                known = ", ".join(f"`{each}`" for each in TABLES[name].__struct_fields__)
                raise UsageError(f"`{place}`: `{key}` is no key of [{name}]; there are {known}")


def _readable(error: str) -> str:
    """A message of msgspec with the path of the key first."""
    what, _, where = error.partition(" - at ")
    path = where.strip("`").removeprefix("$").lstrip(".").replace("[...]", "")
    return f"`{path}`: {what[:1].lower()}{what[1:]}" if path else what
