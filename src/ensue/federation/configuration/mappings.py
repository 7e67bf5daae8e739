"""The tables `[[map]]`: the steps that put events into the words of a service, each checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ensue.errors import LibraryError
from ensue.federation.configuration.findings import (
    TableFindings,
    need_text,
    read_filter,
    refuse_unknown,
)
from ensue.federation.mapping.rules import RETYPE, MappingRule, load_plugin
from ensue.federation.mapping.templates import Template
from ensue.lang.diagnostics import did_you_mean
from ensue.lang.expressions.text.parsing import parse_expression

MAP_KEYS = (
    *("at", "direction", "where", "split", "rename"),
    *("remove", "retype", "compute", "subject", "plugin"),
)


def read_mappings(
    tables: Any, services: Sequence[str], findings: TableFindings
) -> Iterator[MappingRule]:
    if not isinstance(tables, list):
        findings.add("[[map]]", "double brackets are needed: there may be several")
        return
    for number, table in enumerate(tables, 1):
        place = f"[[map]] {number}"
        before = len(findings.found)
        if not isinstance(table, Mapping):
            findings.add(place, "a table is needed")
            continue
        refuse_unknown(table, MAP_KEYS, place, findings)
        need_text(table, "at", place, findings)
        if isinstance(table.get("at"), str) and table["at"] not in services:
            hint = did_you_mean(table["at"], services)
            findings.add(f"{place} at", f"there is no service `{table['at']}` here: {hint}")
        if table.get("direction") not in ("in", "out"):
            findings.add(f"{place} direction", "`in` (from the service) or `out` (to it) is needed")
        steps = _steps(table, place, findings)
        if len(findings.found) == before:
            yield MappingRule(table["at"], table["direction"], **steps)


def _steps(table: Mapping[str, Any], place: str, findings: TableFindings) -> dict[str, Any]:
    """The steps of a mapping, checked one by one."""
    steps: dict[str, Any] = {}
    if "where" in table:
        steps["where"] = read_filter(table["where"], f"{place} where", findings)
    for key, read in (("split", Template), ("subject", Template), ("plugin", load_plugin)):
        if key in table:
            try:
                steps[key] = read(table[key])
            except (TypeError, ValueError) as error:
                findings.add(f"{place} {key}", str(error))
    for key in ("rename", "retype", "compute"):
        given = table.get(key, {})
        if not isinstance(given, Mapping) or not all(isinstance(e, str) for e in given.values()):
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
