"""From the tables of a TOML file to the settings of a gateway, with every mistake at once.

The tables `[gateway]` and `[site]` are read here, the lists of services, standing requests and
mappings in modules of their own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ensue.configuration.toml import read_settings_file
from ensue.federation.configuration.findings import (
    NAME,
    TableFindings,
    need_text,
    refuse_unknown,
    resolved,
    seconds_of,
    texts_of,
)
from ensue.federation.configuration.mappings import read_mappings
from ensue.federation.configuration.services import read_services, read_subscriptions
from ensue.federation.configuration.settings import GatewaySettings, SiteSettings
from ensue.lang.diagnostics import did_you_mean

GATEWAY_KEYS = (
    *("name", "listen", "history", "ontology", "state"),
    *("patience", "memory", "beat", "settling", "require"),
)
SITE_KEYS = ("name", "library", "sites", "from", "lateness", "beat", "clock")
TABLES = ("gateway", "service", "subscribe", "map", "site", "parameters")
DURATIONS = ("patience", "memory", "beat", "settling")
_SHORTEST_BEAT = 0.01


def read_file(path: str | Path) -> dict[str, Any]:
    """The tables of a TOML file. Raises `UsageError`."""
    return read_settings_file(path).tables


def read_settings(tables: Mapping[str, Any], where: str = "") -> GatewaySettings:
    """The settings that tables give. Raises `UsageError` with every mistake, one a line."""
    findings = TableFindings(where)
    for name in tables:
        if name not in TABLES:
            findings.add(f"[{name}]", f"there is no such table: {did_you_mean(name, TABLES)}")
    folder = Path(where).parent
    gateway = _read_gateway(tables.get("gateway"), folder, findings)
    services = list(read_services(tables.get("service"), gateway.get("name", ""), findings))
    subscriptions = list(read_subscriptions(tables.get("subscribe", []), findings))
    mappings = list(
        read_mappings(tables.get("map", []), [each.name for each in services], findings)
    )
    _check_required(gateway.get("require"), [each.name for each in services], findings)
    site = None
    if "site" in tables:
        names = [each.name for each in services]
        site = _read_site(tables["site"], gateway.get("name", ""), names, folder, findings)
    values = tables.get("parameters", {})
    if not isinstance(values, Mapping):
        findings.add("[parameters]", "a table is needed, as `limit = 10`")
    elif values and "site" not in tables:
        findings.add("[parameters]", "there is no `[site]` whose library could have parameters")
    elif site is not None:
        site = replace(site, parameters=values)
    findings.done()
    return GatewaySettings(
        site=site,
        services=tuple(services),
        subscriptions=tuple(subscriptions),
        mappings=tuple(mappings),
        **gateway,
    )


def _read_gateway(table: Any, folder: Path, findings: TableFindings) -> dict[str, Any]:
    if not isinstance(table, Mapping):
        findings.add("[gateway]", 'this table is missing: give it, with `name = "..."`')
        return {}
    given = dict(resolved(table, "[gateway]", findings))
    refuse_unknown(given, GATEWAY_KEYS, "[gateway]", findings)
    need_text(given, "name", "[gateway]", findings)
    found: dict[str, Any] = {}
    for key in ("name", "listen", "history", "state"):
        if key in given:
            if isinstance(given[key], str):
                found[key] = given[key]
            elif key != "name":
                findings.add(f"[gateway] {key}", "text is needed")
    if isinstance(name := found.get("name"), str) and not NAME.fullmatch(name):
        findings.add("[gateway] name", f"`{name}` has a space or a comma: leave it out")
    if "listen" in found and not _is_address(found["listen"]):
        findings.add("[gateway] listen", f"`{found['listen']}` is no address: as `127.0.0.1:9464`")
    if "require" in given:
        found["require"] = texts_of(given["require"])
        if found["require"] is None:
            findings.add("[gateway] require", 'a list of names of services is needed: ["cars"]')
    if "ontology" in given:
        files = texts_of(given["ontology"])
        if not files:
            findings.add("[gateway] ontology", "a file, or a list of files, is needed")
        found["ontology"] = tuple(folder / each for each in files or ())
    for key in DURATIONS:
        if key in given:
            seconds = seconds_of(given[key])
            if seconds is None:
                findings.add(f"[gateway] {key}", f"`{given[key]}` is no duration: as `10 s`")
            elif key == "beat" and seconds < _SHORTEST_BEAT:
                findings.add("[gateway] beat", f"{seconds:g} s is given, and 10 ms is the least")
            else:
                found[key] = seconds
    return {key: value for key, value in found.items() if key in GATEWAY_KEYS}


def _check_required(
    required: Sequence[str] | None, services: Sequence[str], findings: TableFindings
) -> None:
    for each in required or ():
        if each not in services:
            near = did_you_mean(each, services)
            findings.add("[gateway] require", f"there is no service `{each}`: {near}")


def _is_address(text: str) -> bool:
    port = re.fullmatch(r"\S*:([0-9]{1,5})", text)
    return port is not None and int(port[1]) <= 65_535


def _read_site(
    table: Any, gateway: str, services: Sequence[str], folder: Path, findings: TableFindings
) -> SiteSettings | None:
    if not isinstance(table, Mapping):
        findings.add("[site]", "a table is needed")
        return None
    before = len(findings.found)
    refuse_unknown(table, SITE_KEYS, "[site]", findings)
    name = table.get("name", gateway)
    if not isinstance(name, str) or not NAME.fullmatch(name):
        findings.add("[site] name", "a name has no spaces and no commas")
    elif name in services:
        findings.add("[site] name", f"`{name}` is the name of a service: the site needs its own")
    need_text(table, "sites", "[site]", findings)
    libraries, listed = texts_of(table.get("library")), texts_of(table.get("from", []))
    if not libraries:
        findings.add("[site] library", "a file, or a list of files, is needed")
    if listed is None:
        findings.add("[site] from", 'a list of names, kinds or patterns is needed: ["cars"]')
    seconds = {}
    for key, usual in (("lateness", 1.0), ("beat", 0.5)):
        given = seconds_of(table.get(key, usual))
        if given is None:
            findings.add(f"[site] {key}", f"`{table[key]}` is no duration: as `1 s`")
        elif key == "beat" and given < _SHORTEST_BEAT:
            findings.add("[site] beat", f"{given:g} s is given, and 10 ms is the least")
        seconds[key] = given or 0.0
    clock = table.get("clock", "wall")
    if clock not in ("wall", "events"):
        findings.add("[site] clock", f"`{clock}` is given; there is `wall` and `events`")
    if len(findings.found) > before:
        return None
    return SiteSettings(
        name,
        tuple(folder / each for each in libraries or ()),
        folder / table["sites"],
        listed or (),
        round(seconds["lateness"] * 1_000_000),
        seconds["beat"],
        clock,
    )
