"""Sites, and which events arise at each: the tables of a TOML file, every mistake in them at once.

    [[site]]
    name = "plant"
    types = ["Temperature", "Pressure"]     # types of the library, and all below them
    sources = ["press-*"]                   # names or patterns of `source`
    where = "line < 4"                      # a filter over one event
    rates = { Temperature = 200 }           # events a second, where they are known

    [[site]]
    name = "office"                         # says nothing: it has no events of its own

    [[place]]
    rule = "Overheated"
    at = "office"

An event is of a site if it fits everything that the table of the site says. In come tables; out go
`Sites`. Where rules run is worked out in `planning`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from ensue.errors import EnsueError, UsageError
from ensue.events.event import Event
from ensue.federation.configuration import TableFindings, read_file
from ensue.federation.routing.distribution import pattern_tests
from ensue.lang.checked import CheckedLibrary
from ensue.lang.diagnostics import did_you_mean
from ensue.lang.expressions.evaluation import holds
from ensue.lang.expressions.tree import Expression, Logic
from ensue.subscriptions import Filter

TABLES = ("site", "place")
SITE_KEYS = ("name", "types", "sources", "where", "rates")
PLACE_KEYS = ("rule", "at")
_MOST = 1e12


@dataclass(frozen=True)
class Site:
    """A site and the events that arise there; None in a field stands for any value.

    `rates` has events a second by type, for the types of which that is known.
    """

    name: str
    rank: int
    types: frozenset[str] | None = None
    sources: tuple[str, ...] | None = None
    where: Filter | None = None
    rates: Mapping[str, float] = field(default_factory=dict)

    @property
    def has_events(self) -> bool:
        return not (self.types is None and self.sources is None and self.where is None)

    def has(self, event: Event) -> bool:
        """Whether an event is of this site, as far as its table says."""
        return (
            self.has_events
            and (self.types is None or event.type in self.types)
            and (self.sources is None or any(_fits(event.source, each) for each in self.sources))
            and (self.where is None or holds(self.where.expression, event))
        )

    def tests(self) -> Iterator[Expression]:
        """What holds of every event of the site, besides its type."""
        if self.sources is not None:
            tests = tuple(pattern_tests("source", self.sources))
            yield tests[0] if len(tests) == 1 else Logic(tests, ("OR",) * (len(tests) - 1))
        if self.where is not None:
            yield self.where.expression


@dataclass(frozen=True)
class Sites:
    """All sites, in their order, and rules for which a site was chosen."""

    sites: tuple[Site, ...]
    chosen: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, path: str | Path, library: CheckedLibrary) -> Sites:
        """The sites of a TOML file. Raises `UsageError` with every mistake, one a line."""
        return cls.of(read_file(path), library, str(path))

    @classmethod
    def of(cls, tables: Mapping[str, Any], library: CheckedLibrary, where: str = "") -> Sites:
        """The sites that tables give. Raises `UsageError` with every mistake, one a line."""
        findings = TableFindings(where)
        for name in tables:
            if name not in TABLES:
                findings.add(f"[{name}]", f"there is no such table: {did_you_mean(name, TABLES)}")
        sites = tuple(_sites(tables.get("site"), library, findings))
        chosen = dict(_chosen(tables.get("place", []), sites, library, findings))
        findings.done()
        return cls(sites, chosen)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(site.name for site in self.sites)

    def __getitem__(self, name: str) -> Site:
        return next(site for site in self.sites if site.name == name)

    def require(self, name: str) -> None:
        """Raises `UsageError` if there is no site of a name."""
        if name not in self.names:
            raise UsageError(f"there is no site `{name}`: {did_you_mean(name, self.names)}")

    def of_event(self, event: Event) -> Site | None:
        """The first site that an event is of."""
        return next((site for site in self.sites if site.has(event)), None)


def _fits(source: str, pattern: str) -> bool:
    # Only `*` and `?` are special: a bracket in a name is a bracket.
    return fnmatchcase(source, pattern.replace("[", "[[]"))


def _sites(tables: Any, library: CheckedLibrary, findings: TableFindings) -> Iterator[Site]:
    if not isinstance(tables, list) or not tables:
        findings.add("[[site]]", "a placement needs sites: give one table for each")
        return
    names: set[str] = set()
    for number, table in enumerate(tables, 1):
        place = f"[[site]] {number}"
        if not isinstance(table, Mapping):
            findings.add(place, "a table is needed")
            continue
        name = table.get("name")
        if not isinstance(name, str) or not name or " " in name or "," in name:
            findings.add(f"{place} name", "a name is needed, without spaces and commas")
            continue
        place = f"{place} (`{name}`)"
        if name in names:
            findings.add(place, f"the name `{name}` is taken: names tell sites apart")
        names.add(name)
        _refuse_unknown(table, SITE_KEYS, place, findings)
        yield Site(
            name,
            number - 1,
            _types(table.get("types"), library, place, findings),
            _texts(table.get("sources"), f"{place} sources", findings),
            _filter(table.get("where"), f"{place} where", findings),
            _rates(table.get("rates", {}), library, f"{place} rates", findings),
        )


def _types(
    given: Any, library: CheckedLibrary, place: str, findings: TableFindings
) -> frozenset[str] | None:
    """The types as events carry them, with all below them."""
    listed = _texts(given, f"{place} types", findings)
    if listed is None:
        return None
    wires = {each.name: each.wire_name for each in library.tree.types}
    found: set[str] = set()
    for name in listed:
        if name in wires:
            found.update(library.types.subtypes(wires[name]))
        else:
            hint = did_you_mean(name, wires)
            findings.add(f"{place} types", f"the library has no event type `{name}`: {hint}")
    return frozenset(found)


def _rates(
    given: Any, library: CheckedLibrary, place: str, findings: TableFindings
) -> dict[str, float]:
    """Events a second, by type as events carry it."""
    if not isinstance(given, Mapping):
        findings.add(place, "types and numbers are needed: { Temperature = 200 }")
        return {}
    wires = {each.name: each.wire_name for each in library.tree.types}
    found: dict[str, float] = {}
    for name, rate in given.items():
        if name not in wires:
            hint = did_you_mean(name, wires)
            findings.add(place, f"the library has no event type `{name}`: {hint}")
        elif isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate <= _MOST:
            findings.add(f"{place}.{name}", f"events a second are needed, from 0 to {_MOST:g}")
        else:
            found[wires[name]] = float(rate)
    return found


def _filter(given: Any, place: str, findings: TableFindings) -> Filter | None:
    if given is None:
        return None
    if not isinstance(given, str):
        findings.add(place, "a filter is needed, as text")
        return None
    try:
        return Filter.parse(given)
    except EnsueError as error:
        findings.add(place, f"`{given}` is no filter: {str(error).strip()}")
        return None


def _texts(given: Any, place: str, findings: TableFindings) -> tuple[str, ...] | None:
    if given is None:
        return None
    if isinstance(given, list) and given and all(isinstance(each, str) for each in given):
        return tuple(given)
    findings.add(place, "a list of texts is needed, with at least one in it")
    return None


def _chosen(
    tables: Any, sites: Sequence[Site], library: CheckedLibrary, findings: TableFindings
) -> Iterator[tuple[str, str]]:
    if not isinstance(tables, list):
        findings.add("[[place]]", "a list of tables is needed: `[[place]]`")
        return
    rules = {each.name for each in library.correlations}
    names = {each.name for each in sites}
    for number, table in enumerate(tables, 1):
        place = f"[[place]] {number}"
        if not isinstance(table, Mapping):
            findings.add(place, "a table is needed")
            continue
        _refuse_unknown(table, PLACE_KEYS, place, findings)
        rule, at = table.get("rule"), table.get("at")
        if not isinstance(rule, str) or rule not in rules:
            hint = did_you_mean(str(rule), rules)
            findings.add(f"{place} rule", f"the library has no correlation `{rule}`: {hint}")
        if not isinstance(at, str) or at not in names:
            findings.add(f"{place} at", f"there is no site `{at}`: {did_you_mean(str(at), names)}")
        yield str(rule), str(at)


def _refuse_unknown(
    table: Mapping[str, Any], known: Sequence[str], place: str, findings: TableFindings
) -> None:
    for key in table:
        if key not in known:
            findings.add(place, f"there is no key `{key}`: {did_you_mean(key, known)}")
