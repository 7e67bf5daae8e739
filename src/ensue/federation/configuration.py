"""The tables of a gateway's TOML file: what they may hold, and every mistake in them at once.

    [gateway]
    name = "roadside"

    [[service]]
    name = "cars"
    kind = "mqtt"
    url = "mqtt://127.0.0.1:1883"

    [[subscribe]]
    at = "office"
    from = ["cars"]
    where = "speed > 50"

Secrets are put in where the text refers to them: `${env:NAME}`, `${file:PATH}`. A message never
shows a value that had one.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Sequence
from collections.abc import Mapping as Table
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec

from ensue.errors import EnsueError, LibraryError, UsageError
from ensue.federation.adapters import KINDS, adapter_class
from ensue.federation.adapters.base import ANYTHING, Service
from ensue.federation.mapping.rules import RETYPE, Mapping, load_plugin
from ensue.federation.mapping.templates import Template
from ensue.federation.routing.distribution import wanted_from
from ensue.lang.diagnostics import did_you_mean
from ensue.lang.expressions.text.parsing import parse_expression
from ensue.library import duration_microseconds
from ensue.subscriptions import Filter

_REFERENCE = re.compile(r"\$\{(env|file):([^}]*)\}")
_NAME = re.compile(r"[^\s,]+")
GATEWAY_KEYS = ("name", "listen", "patience", "memory", "beat", "settling", "history", "state")
SERVICE_KEYS = ("name", "kind", "url", "address", "encoding", "control")
SUBSCRIBE_KEYS = ("at", "from", "where")
MAP_KEYS = (
    *("at", "direction", "where", "split", "rename"),
    *("remove", "retype", "compute", "subject", "plugin"),
)
SITE_KEYS = ("name", "library", "sites", "from", "lateness", "beat", "clock")
TABLES = ("gateway", "service", "subscribe", "map", "site")
_DURATIONS = ("patience", "memory", "beat", "settling")


@dataclass(frozen=True)
class Subscription:
    """A standing request: `at` wants what matches `where` from the services of a list."""

    at: str
    services: tuple[str, ...] = ()
    where: Filter = ANYTHING

    @property
    def wanted(self) -> Filter:
        return wanted_from(self.services, self.where)


@dataclass(frozen=True)
class SiteSettings:
    """The site of a placement at a gateway: a library of files, and the file of all sites.

    `services` are a distribution list: whose events arise at the site. `lateness` is in
    microseconds; every `beat` seconds the site says how far it has come, by its `clock`.
    """

    name: str
    libraries: tuple[Path, ...]
    sites: Path
    services: tuple[str, ...] = ()
    lateness: int = 1_000_000
    beat: float = 0.5
    clock: Literal["wall", "events"] = "wall"


@dataclass(frozen=True)
class GatewaySettings:
    """Everything that a gateway needs to know. Durations are in seconds.

    A neighbour that is silent for `patience` is routed around; what it wanted is kept for
    `memory`. `beat` is the time between two hellos, and `settling` the time in which a new gateway
    only listens to its neighbours.
    """

    name: str
    services: tuple[Service, ...]
    subscriptions: tuple[Subscription, ...] = ()
    mappings: tuple[Mapping, ...] = ()
    listen: str | None = None
    patience: float = 10.0
    memory: float = 600.0
    beat: float = 1.0
    settling: float = 0.4
    history: str | None = None
    state: str | None = None
    site: SiteSettings | None = None


@dataclass
class Findings:
    """Mistakes, each with its place."""

    where: str
    found: list[str] = field(default_factory=list)

    def add(self, place: str, problem: str) -> None:
        prefix = f"{self.where}: " if self.where else ""
        self.found.append(f"{prefix}{place}: {problem}")

    def done(self) -> None:
        if self.found:
            raise UsageError("\n".join(self.found))


def read_file(path: str | Path) -> dict[str, Any]:
    """The tables of a TOML file. Raises `UsageError`."""
    place = Path(path)
    try:
        return tomllib.loads(place.read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"`{place}` cannot be read: {(error.strerror or '').lower()}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"`{place}` is no TOML: {str(error).lower()}") from None


def read_settings(tables: Table[str, Any], where: str = "") -> GatewaySettings:
    """The settings that tables give. Raises `UsageError` with every mistake, one a line."""
    findings = Findings(where)
    for name in tables:
        if name not in TABLES:
            findings.add(f"[{name}]", f"there is no such table: {did_you_mean(name, TABLES)}")
    gateway = _gateway(tables.get("gateway"), findings)
    services = list(_services(tables.get("service"), gateway.get("name", ""), findings))
    subscriptions = list(_subscriptions(tables.get("subscribe", []), findings))
    mappings = list(_mappings(tables.get("map", []), [each.name for each in services], findings))
    site = None
    if "site" in tables:
        names = [each.name for each in services]
        site = _site(tables["site"], gateway.get("name", ""), names, Path(where).parent, findings)
    findings.done()
    return GatewaySettings(
        site=site,
        services=tuple(services),
        subscriptions=tuple(subscriptions),
        mappings=tuple(mappings),
        **gateway,
    )


def _gateway(table: Any, findings: Findings) -> dict[str, Any]:
    if not isinstance(table, Table):
        findings.add("[gateway]", 'this table is missing: give it, with `name = "..."`')
        return {}
    given = dict(_resolved(table, "[gateway]", findings))
    _refuse_unknown(given, GATEWAY_KEYS, "[gateway]", findings)
    _need_text(given, "name", "[gateway]", findings)
    found: dict[str, Any] = {}
    for key in ("name", "listen", "history", "state"):
        if key in given:
            if isinstance(given[key], str):
                found[key] = given[key]
            elif key != "name":
                findings.add(f"[gateway] {key}", "text is needed")
    if isinstance(name := found.get("name"), str) and not _NAME.fullmatch(name):
        findings.add("[gateway] name", f"`{name}` has a space or a comma: leave it out")
    if "listen" in found and not re.fullmatch(r"\S*:\d{1,5}", found["listen"]):
        findings.add("[gateway] listen", f"`{found['listen']}` is no address: as `127.0.0.1:9464`")
    for key in _DURATIONS:
        if key in given:
            seconds = _seconds(given[key])
            if seconds is None:
                findings.add(f"[gateway] {key}", f"`{given[key]}` is no duration: as `10 s`")
            else:
                found[key] = seconds
    return {key: value for key, value in found.items() if key in GATEWAY_KEYS}


def _site(
    table: Any, gateway: str, services: Sequence[str], folder: Path, findings: Findings
) -> SiteSettings | None:
    if not isinstance(table, Table):
        findings.add("[site]", "a table is needed")
        return None
    before = len(findings.found)
    _refuse_unknown(table, SITE_KEYS, "[site]", findings)
    name = table.get("name", gateway)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        findings.add("[site] name", "a name has no spaces and no commas")
    elif name in services:
        findings.add("[site] name", f"`{name}` is the name of a service: the site needs its own")
    _need_text(table, "sites", "[site]", findings)
    libraries, listed = _texts(table.get("library")), _texts(table.get("from", []))
    if not libraries:
        findings.add("[site] library", "a file, or a list of files, is needed")
    if listed is None:
        findings.add("[site] from", 'a list of names, kinds or patterns is needed: ["cars"]')
    seconds = {}
    for key, usual in (("lateness", 1.0), ("beat", 0.5)):
        given = _seconds(table.get(key, usual))
        if given is None or given < 0:
            findings.add(f"[site] {key}", f"`{table[key]}` is no duration: as `1 s`")
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


def _texts(given: Any) -> tuple[str, ...] | None:
    """A text, or a list of texts; None for anything else."""
    listed = [given] if isinstance(given, str) else given
    if not isinstance(listed, list) or not all(isinstance(e, str) and e for e in listed):
        return None
    return tuple(listed)


def _services(tables: Any, gateway: str, findings: Findings) -> Iterator[Service]:
    if not isinstance(tables, list) or not tables:
        findings.add("[[service]]", "a gateway needs services: give one table for each")
        return
    names: set[str] = set()
    for number, table in enumerate(tables, 1):
        place = f"[[service]] {number}"
        if not isinstance(table, Table):
            findings.add(place, "a table is needed")
            continue
        made = _service(dict(_resolved(table, place, findings)), place, gateway, findings)
        if made is not None:
            if made.name in names:
                findings.add(place, f"the name `{made.name}` is taken: names tell services apart")
            names.add(made.name)
            yield made


def _service(given: dict[str, Any], place: str, gateway: str, findings: Findings) -> Service | None:
    before = len(findings.found)
    if isinstance(given.get("name"), str):
        place = f"{place} (`{given['name']}`)"
    for key in ("name", "kind"):
        _need_text(given, key, place, findings)
    for key in ("url", "address", "encoding", "control"):
        if key in given and not isinstance(given[key], str):
            findings.add(f"{place} {key}", "text is needed")
    if isinstance(given.get("name"), str) and not _NAME.fullmatch(given["name"]):
        findings.add(f"{place} name", "a name has no spaces and no commas")
    kind = given.get("kind")
    if isinstance(kind, str) and kind not in KINDS:
        findings.add(f"{place} kind", f"there is no kind `{kind}`: {did_you_mean(kind, KINDS)}")
    if len(findings.found) > before:
        return None
    own = {key: given.pop(key) for key in SERVICE_KEYS if key in given}
    try:
        adapter = adapter_class(own["kind"])
    except EnsueError as error:
        findings.add(f"{place} kind", str(error))
        return None
    known = adapter.options_type.__struct_fields__
    for key in given:
        if key not in known:
            hint = did_you_mean(key, (*SERVICE_KEYS, *known))
            findings.add(f"{place} {key}", f"kind `{kind}` has no such key: {hint}")
    encoding = own.get("encoding", "structured")
    if encoding not in adapter.capabilities.encodings:
        allowed = " or ".join(f"`{each}`" for each in adapter.capabilities.encodings)
        findings.add(f"{place} encoding", f"`{encoding}` is given, and kind `{kind}` has {allowed}")
    options = None
    if all(key in known for key in given):
        try:
            options = msgspec.convert(given, adapter.options_type)
        except msgspec.ValidationError as error:
            findings.add(place, _without_values(str(error)))
    if len(findings.found) > before:
        return None
    return Service(**own, gateway=gateway, options=options)


def _subscriptions(tables: Any, findings: Findings) -> Iterator[Subscription]:
    if not isinstance(tables, list):
        findings.add("[[subscribe]]", "double brackets are needed: there may be several")
        return
    for number, table in enumerate(tables, 1):
        place = f"[[subscribe]] {number}"
        if not isinstance(table, Table):
            findings.add(place, "a table is needed")
            continue
        _refuse_unknown(table, SUBSCRIBE_KEYS, place, findings)
        _need_text(table, "at", place, findings)
        services = _texts(table.get("from", []))
        if services is None:
            findings.add(f"{place} from", 'a list of names, kinds or patterns is needed: ["cars"]')
        where = _filter(table.get("where", "TRUE"), f"{place} where", findings)
        if where is not None and isinstance(table.get("at"), str):
            yield Subscription(table["at"], services or (), where)


def _mappings(tables: Any, services: Sequence[str], findings: Findings) -> Iterator[Mapping]:
    if not isinstance(tables, list):
        findings.add("[[map]]", "double brackets are needed: there may be several")
        return
    for number, table in enumerate(tables, 1):
        place = f"[[map]] {number}"
        before = len(findings.found)
        if not isinstance(table, Table):
            findings.add(place, "a table is needed")
            continue
        _refuse_unknown(table, MAP_KEYS, place, findings)
        _need_text(table, "at", place, findings)
        if isinstance(table.get("at"), str) and table["at"] not in services:
            hint = did_you_mean(table["at"], services)
            findings.add(f"{place} at", f"there is no service `{table['at']}` here: {hint}")
        if table.get("direction") not in ("in", "out"):
            findings.add(f"{place} direction", "`in` (from the service) or `out` (to it) is needed")
        steps = _steps(table, place, findings)
        if len(findings.found) == before:
            yield Mapping(table["at"], table["direction"], **steps)


def _steps(table: Table[str, Any], place: str, findings: Findings) -> dict[str, Any]:
    """The steps of a mapping, checked one by one."""
    steps: dict[str, Any] = {}
    if "where" in table:
        steps["where"] = _filter(table["where"], f"{place} where", findings)
    for key, read in (("split", Template), ("subject", Template), ("plugin", load_plugin)):
        if key in table:
            try:
                steps[key] = read(table[key])
            except (TypeError, ValueError) as error:
                findings.add(f"{place} {key}", str(error))
    for key in ("rename", "retype", "compute"):
        given = table.get(key, {})
        if not isinstance(given, Table) or not all(isinstance(e, str) for e in given.values()):
            findings.add(f"{place} {key}", 'names and texts are needed: { old = "new" }')
        else:
            steps[key] = dict(given)
    for name, wanted in steps.get("retype", {}).items():
        if wanted not in RETYPE:
            hint = did_you_mean(wanted, RETYPE)
            findings.add(f"{place} retype.{name}", f"there is no type `{wanted}`: {hint}")
    for name, text in steps.get("compute", {}).items():
        try:
            steps["compute"][name] = parse_expression(text, "<value>")
        except LibraryError as error:
            for each in error.diagnostics:
                findings.add(f"{place} compute.{name}", f"in `{text}`: {each.message}")
    removed = table.get("remove", [])
    if not isinstance(removed, list) or not all(isinstance(each, str) for each in removed):
        findings.add(f"{place} remove", "a list of names is needed")
    else:
        steps["remove"] = tuple(removed)
    return steps


def _filter(text: Any, place: str, findings: Findings) -> Filter | None:
    if not isinstance(text, str):
        findings.add(place, "a filter is text")
        return None
    try:
        return Filter.parse(text)
    except LibraryError as error:
        for each in error.diagnostics:
            findings.add(place, f"in `{text}`, character {each.column}: {each.message}")
    return None


def _resolved(table: Table[str, Any], place: str, findings: Findings) -> Iterator[tuple[str, Any]]:
    """The values of a table with secrets put in."""
    for key, value in table.items():
        yield key, resolve(value, f"{place} {key}", findings) if isinstance(value, str) else value


def resolve(text: str, place: str, findings: Findings) -> str:
    """A text with every reference to a secret replaced by the secret."""

    def secret(reference: re.Match[str]) -> str:
        way, name = reference.groups()
        if way == "env":
            if name not in os.environ:
                findings.add(place, f"the environment has no variable `{name}`")
            return os.environ.get(name, "")
        try:
            return Path(name).read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError):
            findings.add(place, f"the file `{name}` cannot be read")
            return ""

    return _REFERENCE.sub(secret, text)


def _refuse_unknown(
    table: Table[str, Any], known: Sequence[str], place: str, findings: Findings
) -> None:
    for key in table:
        if key not in known:
            findings.add(f"{place} {key}", f"there is no such key: {did_you_mean(key, known)}")


def _need_text(table: Table[str, Any], key: str, place: str, findings: Findings) -> None:
    if not isinstance(table.get(key), str) or not table[key]:
        given = "it is missing" if key not in table else "text is needed"
        findings.add(f"{place} {key}", given)


def _seconds(given: Any) -> float | None:
    if isinstance(given, bool):
        return None
    if isinstance(given, int | float):
        return float(given)
    try:
        return duration_microseconds(given) / 1_000_000
    except (EnsueError, TypeError, ValueError):
        return None


def _without_values(message: str) -> str:
    """The checker's words; it names types and keys, never values."""
    reason, _, where = message.partition(" - at ")
    return f"{where.strip('`$.') or 'the table'}: {reason[:1].lower()}{reason[1:]}"
