"""From the file of `ensue serve` to `Settings`: read, checked, every problem told at once.

In comes the path of a TOML file, or nothing; out go `Settings`, or a `UsageError` with a line for
each problem, located by file and line, and below it what is wrong with a library. The tables of a
gateway are handed on as they are. Whether a port is free is told when it is opened.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from ensue.configuration.secrets import replaced
from ensue.configuration.toml import MOST_PROBLEMS, STOPPED, read_settings_file
from ensue.errors import EnsueError, UsageError
from ensue.lang.diagnostics import did_you_mean
from ensue.library import duration_microseconds
from ensue.server.settings import places
from ensue.server.settings.libraries import check_libraries, site_parameters
from ensue.server.settings.settings import Settings, is_loopback, split_address
from ensue.server.settings.tables import (
    ARRAYS,
    GATEWAY_TABLES,
    MAIN,
    PARAMETERS,
    TABLES,
    ServerLinkTable,
    ServerTable,
    SettingsTable,
    TokenTable,
)
from ensue.subscriptions import Filter

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
"""What a library, a token or a webhook may be called."""
LARGEST_NUMBER = 10**12
"""More than any limit can mean, and far inside 64 bits."""


def read_settings(path: str | os.PathLike[str] | None) -> Settings:
    """The settings of a file; without one, those of a demonstration on loopback."""
    if path is None:
        return Settings(server=ServerTable(demo=True))
    place = Path(path)
    file = read_settings_file(place, "give the file of a server")
    return settings_of(file.tables, file.text, str(place), place.parent)


def settings_of(tables: Mapping[str, Any], text: str, where: str, folder: Path) -> Settings:
    gateway = {name: tables[name] for name in GATEWAY_TABLES if name in tables}
    if gateway and not tables.keys() & ({*TABLES, *ARRAYS} - {"log"}):
        gateway |= {PARAMETERS: tables[PARAMETERS]} if PARAMETERS in tables else {}
        # A gateway alone: `ensue.federation` reads the file itself.
        return Settings(gateway=gateway, hosts_api=False, folder=folder, where=where)
    reader = _SettingsReader(places.lines_of(text), where)
    return reader.settings(tables, folder)


class _SettingsReader:
    """Reads tables and collects problems, each with its line."""

    def __init__(self, lines: dict[places.Path, int], where: str) -> None:
        self._lines = lines
        self._where = where
        self._problems: list[tuple[int, str]] = []
        self._unresolved: set[places.Path] = set()
        self._numbers: dict[str, list[int]] = {}
        """Where each table of an array stands, of those that could be read."""
        self._is_checking = False

    def settings(self, tables: Mapping[str, Any], folder: Path) -> Settings:
        known = [*TABLES, *ARRAYS, *GATEWAY_TABLES, PARAMETERS]
        for name in tables.keys() - set(known):
            self._problem((name,), f"there is no table `{name}`; {did_you_mean(name, known)}")
        read = {name: self._table(tables, name) for name in TABLES}
        arrays = {name: list(self._array(tables, name)) for name in ARRAYS}
        gateway = {name: tables[name] for name in GATEWAY_TABLES if name in tables}
        parameters = self._parameters(tables)
        of_site = site_parameters(gateway, folder) if parameters else {}
        if own := {name: value for name, value in parameters.items() if name in of_site}:
            gateway[PARAMETERS] = own
        settings = Settings(
            **read,
            libraries=arrays["library"],
            tokens=arrays["token"],
            channels=arrays["channel"],
            links=arrays["link"],
            parameters=parameters,
            gateway=gateway,
            folder=folder,
            where=self._where,
        )
        self._is_checking = True
        self._check(settings)
        check_libraries(settings, self._library_problem)
        lines = self._told() + self._gateway_problems(gateway)
        if lines:
            raise UsageError("\n".join(lines))
        return settings

    def _parameters(self, tables: Mapping[str, Any]) -> Mapping[str, Any]:
        """Values of parameters; whether libraries have them is told where these are read."""
        given = tables.get(PARAMETERS, {})
        if not isinstance(given, dict):
            self._problem((PARAMETERS,), f"`{PARAMETERS}` is a table: write `[{PARAMETERS}]`")
            return {}
        for name, value in given.items():
            if not isinstance(value, bool | int | float | str | datetime):
                self._problem((PARAMETERS, name), f"`{name}` has one value, and no list or table")
        return given

    def _gateway_problems(self, gateway: Mapping[str, Any]) -> list[str]:
        """What `ensue.federation` finds in its tables."""
        if not gateway:
            return []
        from ensue.federation.configuration import read_settings as read_gateway

        try:
            read_gateway(gateway, self._where)
        except UsageError as error:
            return str(error).splitlines()
        return []

    # --- tables and types -----------------------------------------------------------------------

    def _table(self, tables: Mapping[str, Any], name: str) -> Any:
        given = tables.get(name, {})
        if not isinstance(given, dict):
            self._problem((name,), f"`{name}` is a table: write `[{name}]` and its keys below")
            given = {}
        return self._struct(TABLES[name], given, (name,))

    def _array(self, tables: Mapping[str, Any], name: str) -> Iterator[Any]:
        given = tables.get(name, [])
        if not isinstance(given, list):
            self._problem((name,), f"there may be several of `{name}`: write `[[{name}]]`")
            return
        for number, each in enumerate(given):
            if not isinstance(each, dict):
                self._problem((name,), f"`{name}` has tables in it: write `[[{name}]]` for each")
                continue
            table = self._struct(ARRAYS[name], each, (name, number))
            if table is not None:
                self._numbers.setdefault(name, []).append(number)
                yield table

    def _struct(
        self, kind: type[SettingsTable], given: Mapping[str, Any], path: places.Path
    ) -> Any:
        fields = {each.encode_name: each for each in msgspec.structs.fields(kind)}
        values: dict[str, Any] = {}
        is_whole = True
        for key, value in given.items():
            if key not in fields:
                table = next(str(each) for each in path if isinstance(each, str))
                hint = did_you_mean(key, fields)
                self._problem((*path, key), f"`{key}` is no key of `[{table}]`; {hint}")
                continue
            try:
                resolved = self._resolved(value, (*path, key))
                values[fields[key].name] = msgspec.convert(resolved, fields[key].type)
            except msgspec.ValidationError as error:
                self._problem((*path, key), f"`{key}`: {_in_our_words(str(error))}")
                is_whole = False
        for name, each in fields.items():
            if each.required and name not in given:
                self._problem(path, f"`[[{path[0]}]]` needs a key `{name}`")
                is_whole = False
        return kind(**values) if is_whole or not _has_required(kind) else None

    def _resolved(self, value: Any, path: places.Path) -> Any:
        """The value with what `${env:NAME}` and `${file:PATH}` stand for in it."""
        if isinstance(value, list):
            return [self._resolved(each, path) for each in value]
        if not isinstance(value, str):
            return value

        def unresolved(problem: str) -> None:
            self._unresolved.add(path)
            self._problem(path, f"`{path[-1]}`: {problem}")

        return replaced(value, unresolved)

    def _library_problem(self, number: int, what: str) -> None:
        self._problem(("library", number, "file"), what)

    def _place(self, path: places.Path) -> places.Path:
        """A path in the file, of one in the settings, which lack what could not be read."""
        if self._is_checking and len(path) > 1 and isinstance(path[1], int):
            return path[0], self._numbers[str(path[0])][path[1]], *path[2:]
        return path

    def _problem(self, path: places.Path, what: str) -> None:
        path = self._place(path)
        self._problems.append((places.line_of(self._lines, path), what))
        if len(self._problems) >= MOST_PROBLEMS:
            raise UsageError("\n".join([*self._told(), STOPPED]))

    def _told(self) -> list[str]:
        return [f"{self._where}:{line}: {what}" for line, what in sorted(self._problems)]

    # --- what values mean -----------------------------------------------------------------------

    def _check(self, settings: Settings) -> None:
        self._check_address(settings)
        self._check_durations(settings)
        for name, value in msgspec.structs.asdict(settings.limits).items():
            self._check_number(value, ("limits", name))
        self._check_number(settings.history.max_count, ("history", "max_count"))
        for number, library in enumerate(settings.libraries):
            self._check_name(library.name, ("library", number, "name"))
            if not (settings.folder / library.file).is_file():
                path = ("library", number, "file")
                self._problem(path, f"there is no file `{settings.folder / library.file}`")
            self._check_channel(settings, library.channel, ("library", number, "channel"))
        named = [f"{each.channel}/{each.name}" for each in settings.libraries]
        self._check_unique("library", named)
        self._check_channels(settings)
        for number, token in enumerate(settings.tokens):
            self._check_token(token, number)
        self._check_unique("token", [each.name for each in settings.tokens])
        for number, file in enumerate(settings.ontology.files):
            if not (settings.folder / file).is_file():
                self._problem(
                    ("ontology", "files"), f"there is no file `{file}` (number {number + 1})"
                )
        for each in settings.webhooks.networks:
            try:
                ipaddress.ip_network(each)
            except ValueError as error:
                self._problem(("webhooks", "networks"), f"`{each}` is no network: {error}")

    def _check_address(self, settings: Settings) -> None:
        server = settings.server
        path = ("server", "listen")
        try:
            host, _ = split_address(server.listen)
        except UsageError as error:
            self._problem(path, str(error))
            return
        for name in ("certificate", "key"):
            file = getattr(server, name)
            if file is not None and not (settings.folder / file).is_file():
                self._problem(
                    ("server", name), f"`{name}`: there is no file `{settings.folder / file}`"
                )
        if (server.certificate is None) != (server.key is None):
            given = "certificate" if server.certificate else "key"
            self._problem(("server", given), "`certificate` and `key` go together: give both")
        if is_loopback(host) or server.open or not settings.hosts_api:
            return
        if not settings.tokens:
            self._problem(
                path,
                f"`{server.listen}` can be reached from other machines, and there is no"
                " `[[token]]`: add tokens, listen on 127.0.0.1, or write `open = true`",
            )
        elif server.certificate is None:
            self._problem(
                path,
                f"`{server.listen}` can be reached from other machines, where tokens would be read"
                " on the way: give `certificate` and `key`, or write `open = true` behind a proxy",
            )

    def _check_durations(self, settings: Settings) -> None:
        texts = {
            ("server", "lateness"): settings.server.lateness,
            ("limits", "ahead"): settings.limits.ahead,
            ("history", "max_age"): settings.history.max_age,
        }
        for path, text in texts.items():
            self._check_duration(text, path)

    def _check_number(self, value: Any, path: places.Path) -> None:
        # Not so easily told the other way round: NaN is neither.
        if isinstance(value, int | float) and not 0 < value <= LARGEST_NUMBER:
            given = value if abs(value) < LARGEST_NUMBER else "a number out of range"
            self._problem(
                path,
                f"`{path[-1]}` is {given}, and must be more than 0, and {LARGEST_NUMBER:,} at most",
            )

    def _check_duration(self, text: str | None, path: places.Path) -> None:
        try:
            _ = None if text is None else duration_microseconds(text)
        except (ValueError, EnsueError) as error:
            self._problem(path, f"`{path[-1]}`: {error}")

    def _check_channel(self, settings: Settings, name: str, path: places.Path) -> None:
        if name not in settings.channel_names:
            hint = did_you_mean(name, settings.channel_names)
            self._problem(path, f"there is no channel `{name}`; {hint}")

    def _check_channels(self, settings: Settings) -> None:
        for number, channel in enumerate(settings.channels):
            self._check_name(channel.name, ("channel", number, "name"))
            for key in ("lateness", "max_age"):
                text = getattr(channel, key)
                self._check_duration(text, ("channel", number, key))
            self._check_number(channel.max_count, ("channel", number, "max_count"))
        self._check_unique("channel", [each.name for each in settings.channels])
        if any(each.name == MAIN for each in settings.channels):
            self._problem(("channel",), f"every server has a channel `{MAIN}`: leave it out")
        reached: dict[str, set[str]] = {}
        for number, link in enumerate(settings.links):
            self._check_channel(settings, link.source, ("link", number, "from"))
            self._check_channel(settings, link.to, ("link", number, "to"))
            self._check_filter(link, ("link", number, "where"))
            reached.setdefault(link.source, set()).add(link.to)
        for name in reached:
            if name in _behind(name, reached):
                self._problem(
                    ("link",),
                    f"links lead from channel `{name}` back to it, where its events would go round"
                    " for ever: take one of them out",
                )

    def _check_filter(self, link: ServerLinkTable, path: places.Path) -> None:
        try:
            _ = None if link.where is None else Filter.parse(link.where)
        except EnsueError as error:
            self._problem(path, f"`where`: {str(error).splitlines()[0]}")

    def _check_token(self, token: TokenTable, number: int) -> None:
        self._check_name(token.name, ("token", number, "name"))
        if (token.secret is None) == (token.sha256 is None):
            self._problem(
                ("token", number),
                f"token `{token.name}` needs `secret` or `sha256`, one of the two",
            )
        is_known = self._place(("token", number, "secret")) not in self._unresolved
        if token.secret is not None and is_known and len(token.secret) < 16:
            self._problem(
                ("token", number, "secret"),
                f"the secret of `{token.name}` has {len(token.secret)} characters, and at least 16"
                " are needed: `python -c 'import secrets; print(secrets.token_urlsafe())'`",
            )
        if token.sha256 is not None and not re.fullmatch(r"[0-9a-fA-F]{64}", token.sha256):
            self._problem(("token", number, "sha256"), "`sha256` must have 64 hexadecimal digits")
        self._check_number(token.events_per_second, ("token", number, "events_per_second"))
        if not token.roles:
            self._problem(("token", number, "roles"), f"token `{token.name}` has no role")

    def _check_name(self, name: str, path: places.Path) -> None:
        if not NAME.fullmatch(name):
            self._problem(
                path,
                f"`{name}` is no name: it begins with a letter, and has letters, digits, `_`, `-`"
                " and `.`, at most 64",
            )

    def _check_unique(self, table: str, names: Sequence[str]) -> None:
        seen: set[str] = set()
        for number, name in enumerate(names):
            if name in seen:
                self._problem(
                    (table, number, "name"), f"`{name}` is the name of another `[[{table}]]`"
                )
            seen.add(name)


def _behind(name: str, reached: Mapping[str, set[str]]) -> set[str]:
    """The channels that links lead to from a channel, directly or not."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        for each in reached.get(waiting.pop(), set()) - found:
            found.add(each)
            waiting.append(each)
    return found


def _has_required(kind: type[SettingsTable]) -> bool:
    return any(each.required for each in msgspec.structs.fields(kind))


def _in_our_words(error: str) -> str:
    what = error.partition(" - at ")[0]
    return f"{what[:1].lower()}{what[1:]}"
