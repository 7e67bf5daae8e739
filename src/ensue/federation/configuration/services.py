"""The tables `[[service]]` and `[[subscribe]]`: services by their kinds, and standing requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ensue.errors import EnsueError
from ensue.federation.adapters import adapter_class, kinds
from ensue.federation.adapters.base import Service
from ensue.federation.configuration.findings import (
    NAME,
    TableFindings,
    need_text,
    read_filter,
    refuse_unknown,
    resolved,
    texts_of,
)
from ensue.federation.configuration.settings import StandingRequest
from ensue.lang.diagnostics import did_you_mean

SERVICE_KEYS = ("name", "kind", "url", "address", "encoding", "control")
SUBSCRIBE_KEYS = ("at", "from", "where")


def read_services(tables: Any, gateway: str, findings: TableFindings) -> Iterator[Service]:
    if not isinstance(tables, list) or not tables:
        findings.add("[[service]]", "a gateway needs services: give one table for each")
        return
    names: list[Any] = []
    for number, table in enumerate(tables, 1):
        place = f"[[service]] {number}"
        if not isinstance(table, Mapping):
            findings.add(place, "a table is needed")
            continue
        name = table.get("name")
        if name is not None and name in names:
            findings.add(place, f"the name `{name}` is taken: names tell services apart")
        names.append(name)
        service = _read_service(dict(resolved(table, place, findings)), place, gateway, findings)
        if service is not None:
            yield service


def _read_service(
    given: dict[str, Any], place: str, gateway: str, findings: TableFindings
) -> Service | None:
    before = len(findings.found)
    if isinstance(given.get("name"), str):
        place = f"{place} (`{given['name']}`)"
    for key in ("name", "kind"):
        need_text(given, key, place, findings)
    for key in ("url", "address", "encoding", "control"):
        if key in given and not isinstance(given[key], str):
            findings.add(f"{place} {key}", "text is needed")
    if isinstance(given.get("name"), str) and not NAME.fullmatch(given["name"]):
        findings.add(f"{place} name", "a name has no spaces and no commas")
    kind = given.get("kind")
    if isinstance(kind, str) and kind not in kinds():
        findings.add(f"{place} kind", f"there is no kind `{kind}`: {did_you_mean(kind, kinds())}")
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
    for key, value in given.items():
        try:
            msgspec.convert({key: value}, adapter.options_type)
        except msgspec.ValidationError as error:
            if key in known:
                findings.add(place, _without_values(str(error)))
    if len(findings.found) > before:
        return None
    options = msgspec.convert(given, adapter.options_type)
    return Service(**own, gateway=gateway, options=options)


def read_subscriptions(tables: Any, findings: TableFindings) -> Iterator[StandingRequest]:
    if not isinstance(tables, list):
        findings.add("[[subscribe]]", "double brackets are needed: there may be several")
        return
    for number, table in enumerate(tables, 1):
        place = f"[[subscribe]] {number}"
        if not isinstance(table, Mapping):
            findings.add(place, "a table is needed")
            continue
        refuse_unknown(table, SUBSCRIBE_KEYS, place, findings)
        need_text(table, "at", place, findings)
        services = texts_of(table.get("from", []))
        if services is None:
            findings.add(f"{place} from", 'a list of names, kinds or patterns is needed: ["cars"]')
        where = read_filter(table.get("where", "TRUE"), f"{place} where", findings)
        if where is not None and isinstance(table.get("at"), str):
            yield StandingRequest(table["at"], services or (), where)


def _without_values(message: str) -> str:
    """The checker's words; it names types and keys, never values."""
    reason, _, where = message.partition(" - at ")
    return f"{where.strip('`$.') or 'the table'}: {reason[:1].lower()}{reason[1:]}"
