"""Where each rule of a library runs, what travels to it, and why a rule does not split.

In come a checked library and its sites; out goes a `Placement`. A rule has one *home*, where it
triggers and puts out: its only site if all its events arise at one, the site that was chosen for
it, or else the site to which the fewest events travel: as many as rates say, where sites have some,
and as there are ports with events that travel one by one where not. Every other site
with events of the rule sends them to the home, the fields that are read there alone. Where the rule
cannot put anything out before something has come to pass at a site (`needs` for filters,
`ecl_needs`), that site holds its events back until it has, and the home takes them all at once.
Where a rule can lose its use for ports and find it again (labels that are aborted, expressions that
go on), a site that holds nothing back by itself does so when the home says it. Branches that share
nothing (`branches`) are each placed as a rule of their own. A rule with anything in it that
planning does not know (`known`) is placed whole.

Nothing is run here; sites run in `running`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from graphlib import TopologicalSorter

from ensue.federation.placement.fields import WHOLE, Fields, fields_of
from ensue.federation.placement.planning.branches import groups_of, is_impossible, tests_of
from ensue.federation.placement.planning.ecl_needs import (
    begins_with_timeout,
    has_modes,
    needed_of_ecl,
    running_at,
)
from ensue.federation.placement.planning.known import unknown_in
from ensue.federation.placement.planning.needs import alone_enough, is_followed, needed_of
from ensue.federation.placement.planning.refusing import refuse_histories
from ensue.federation.placement.sites import Site, Sites
from ensue.lang.checked import CheckedLibrary
from ensue.lang.checking.ecl import expressions_in
from ensue.lang.checking.feeding import outputs_of
from ensue.lang.derived.parts import changed_labels, labels_in, parts_of, ports_in
from ensue.lang.derived.relating import aggregates_of, has_timeout
from ensue.lang.derived.wiring import rules_named
from ensue.lang.syntax import (
    Correlation,
    EclCorrelation,
    EventPort,
    Filter,
    FilterCorrelation,
    PushNew,
    PushPort,
    Then,
    Timeout,
    TimerPort,
    Times,
)

_WHEN_HELD = 0.25
"""What a port counts whose events are held back, against 1 for a port whose events all travel."""
_USUAL_RATE = 1.0
"""Events a second of a type for which no rate is given, where some is."""


@dataclass(frozen=True)
class SitePart:
    """What one site does for a rule that runs elsewhere.

    With `needed`, events wait until it is matched; `keeps_witnesses` says that of the waiting
    events only the events are kept on which a match can stand, and `running`, the subexpressions
    that run at the site, only the events that these wait for. Without `needed`, `why` says why none
    waits.
    """

    site: str
    ports: tuple[str, ...]
    needed: Filter | None
    why: str = ""
    keeps_witnesses: bool = False
    running: EclCorrelation | None = None


@dataclass(frozen=True)
class PlacedRule:
    """A rule at its home, and its parts at the other sites. `why` says how the home was found.

    Where branches of a rule are placed apart, it is some of them: `name` tells them apart,
    `correlation` is the whole rule, and `reading` what there is of it here. `resets` is set where
    the home tells sites what it has forgotten at an output. `unknown` is what planning does not
    know in it.
    """

    name: str
    number: int
    correlation: Correlation
    reading: Correlation
    home: str
    ports_at: Mapping[str, tuple[str, ...]]
    parts: Mapping[str, SitePart]
    fields: Mapping[str, Fields]
    feeders: tuple[str, ...]
    why: str
    resets: bool = False
    unknown: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether all its events arise at its home."""
        return not self.parts

    @property
    def forgets_idle_keys(self) -> bool:
        """Whether a key that stands as at its start can be dropped: nothing was counted from it."""
        rule = self.correlation
        return not self.unknown and not (
            (isinstance(rule, FilterCorrelation) and rule.initially) or has_clock(rule)
        )

    @property
    def sleeps(self) -> Mapping[str, frozenset[str]]:
        """The ports that sites may be told to hold back, while no state of the rule waits for them.

        None where a site holds back by itself what the home reads behind a gate, where readings
        say in what order timers fire, and of a rule without modes and changes of labels, which
        finds a use for each of its ports again in every round.
        """
        rule = self.correlation
        changes = has_modes(rule) if isinstance(rule, EclCorrelation) else changed_labels(rule)
        if self.unknown or self.split_sites or not changes or (has_clock(rule) and rule.clauses.by):
            return {}
        return {site: frozenset(part.ports) for site, part in self.parts.items()}

    @property
    def split_sites(self) -> tuple[str, ...]:
        return tuple(site for site, part in self.parts.items() if part.needed is not None)


@dataclass(frozen=True)
class Placement:
    """Every rule of a library at its home. `order` has feeding rules before those they feed."""

    library: CheckedLibrary
    sites: Sites
    rules: Mapping[str, PlacedRule]
    order: tuple[str, ...] = field(default=())
    feeds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The rules of `rules` that read what each puts out."""


def has_clock(rule: Correlation) -> bool:
    """Whether time alone may change something in it: it has timers or timeouts."""
    if any(isinstance(port, TimerPort) for port in rule.ports):
        return True
    if isinstance(rule, EclCorrelation):
        return any(isinstance(part, Timeout) for part in expressions_in(rule.body))
    return has_timeout(rule)


def place(library: CheckedLibrary, sites: Sites) -> Placement:
    """A home for every rule. Raises `UsageError` for rules that cannot be run across sites."""
    refuse_histories(library)
    feeders: dict[str, list[str]] = {each.name: [] for each in library.correlations}
    for name, readers in library.feeds.items():
        for reader in readers:
            feeders[reader].append(name)
    order = tuple(TopologicalSorter(feeders).static_order())
    numbers = {each.name: number for number, each in enumerate(library.correlations)}
    rules: dict[str, PlacedRule] = {}
    pieces: dict[str, list[str]] = {}
    for name in order:
        correlation = library.correlations[numbers[name]]
        fed = tuple(piece for each in feeders[name] for piece in pieces[each])
        origins = {
            port.name: tuple(_origins(port, library, sites, [rules[each] for each in fed]))
            for port in correlation.ports
            if isinstance(port, EventPort)
        }
        accepted = {
            port.name: frozenset(library.types.subtypes(port.type))
            for port in correlation.ports
            if isinstance(port, EventPort)
        }
        traffic = _Traffic(sites, accepted)
        unknown = tuple(unknown_in(correlation))
        groups = [()] if unknown else groups_of(correlation, origins, accepted)
        pieces_of_rule = [
            _placed(
                _Piece(correlation, group, len(groups) == 1, numbers[name], unknown),
                origins,
                fed,
                traffic,
            )
            for group in groups
        ]
        rules |= {each.name: each for each in pieces_of_rule}
        pieces[name] = [each.name for each in pieces_of_rule]
    feeds = {
        piece: tuple(p for reader in library.feeds.get(name, ()) for p in pieces[reader])
        for name, found in pieces.items()
        for piece in found
    }
    return Placement(library, sites, rules, tuple(rules), feeds)


# --- where events come from ---------------------------------------------------------------------


def _origins(
    port: EventPort, library: CheckedLibrary, sites: Sites, feeders: Iterable[PlacedRule]
) -> Iterator[str]:
    """The sites at which an event may arise that a port reads, in the order of the sites."""
    accepted = frozenset(library.types.subtypes(port.type))
    named = rules_named(port)
    fed_from = {
        rule.home
        for rule in feeders
        if rule.correlation.name in named and _may_feed(rule.correlation, accepted, library)
    }
    for site in sites.sites:
        if site.name in fed_from or _may_have(site, port, accepted):
            yield site.name


def _may_have(site: Site, port: EventPort, accepted: frozenset[str]) -> bool:
    if not site.has_events or (site.types is not None and not site.types & accepted):
        return False
    return not is_impossible([*site.tests(), *tests_of(port)])


def _may_feed(feeder: Correlation, accepted: frozenset[str], library: CheckedLibrary) -> bool:
    """Whether a rule may put out an event of the types that a port reads."""
    return any(
        not accepted.isdisjoint(
            library.types.subtypes(output.type) if output.or_below else (output.type,)
        )
        for output in outputs_of(feeder)
    )


# --- homes --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Piece:
    """Branches of a rule that are placed together, by their numbers."""

    correlation: Correlation
    branches: tuple[int, ...]
    is_all: bool
    number: int
    unknown: tuple[str, ...]

    @property
    def name(self) -> str:
        if self.is_all:
            return self.correlation.name
        return f"{self.correlation.name} || {', '.join(str(each + 1) for each in self.branches)}"

    @property
    def reading(self) -> Correlation:
        """The rule with these branches alone, and the ports that they read."""
        rule = self.correlation
        if self.is_all or not isinstance(rule, FilterCorrelation):
            return rule
        branches = tuple(rule.branches[each] for each in self.branches)
        read = {*ports_in(branches), *(port.name for port in rule.clauses.unless)}
        return replace(
            rule, branches=branches, ports=tuple(each for each in rule.ports if each.name in read)
        )


def _placed(
    piece: _Piece,
    all_origins: Mapping[str, tuple[str, ...]],
    feeders: tuple[str, ...],
    traffic: _Traffic,
) -> PlacedRule:
    correlation = piece.reading
    read = {port.name for port in correlation.ports}
    origins = {port: at for port, at in all_origins.items() if port in read}
    ports_at = {
        site: tuple(port for port, at in origins.items() if site in at)
        for site in traffic.sites.names
        if any(site in at for at in origins.values())
    }
    parts = {site: _part(site, ports, piece, origins) for site, ports in ports_at.items()}
    home, why = _home(correlation.name, ports_at, parts, traffic)
    others = {site: part for site, part in parts.items() if site != home}
    return PlacedRule(
        piece.name,
        piece.number,
        piece.correlation,
        correlation,
        home,
        ports_at,
        others,
        dict.fromkeys(origins, WHOLE) if piece.unknown else fields_of(correlation),
        feeders,
        why,
        isinstance(correlation, FilterCorrelation)
        and len(correlation.branches) == 1
        and correlation.clauses.keep != "all",
        piece.unknown,
    )


def _home(
    name: str,
    ports_at: Mapping[str, tuple[str, ...]],
    parts: Mapping[str, SitePart],
    traffic: _Traffic,
) -> tuple[str, str]:
    sites = traffic.sites
    if name in sites.chosen:
        return sites.chosen[name], "chosen"
    if not ports_at:
        return sites.names[0], "no site has events for it"
    if len(ports_at) == 1:
        return next(iter(ports_at)), "all its events arise there"

    def cost(home: str) -> float:
        return sum(
            traffic.of(site, ports) * (1 if parts[site].needed is None else _WHEN_HELD)
            for site, ports in ports_at.items()
            if site != home
        )

    return min(ports_at, key=cost), traffic.why


@dataclass(frozen=True)
class _Traffic:
    """How much ports of one rule get from a site; `accepted` has the types that each reads."""

    sites: Sites
    accepted: Mapping[str, frozenset[str]]

    @property
    def why(self) -> str:
        if self._has_rates:
            return "the fewest events a second travel to it, by the rates of the sites"
        return "the fewest ports have events that travel to it one by one"

    @property
    def _has_rates(self) -> bool:
        return any(site.rates for site in self.sites.sites)

    def of(self, site: str, ports: Collection[str]) -> float:
        """Events a second where rates are given, else the number of ports."""
        if not self._has_rates:
            return len(ports)
        found = self.sites[site]
        types: frozenset[str] = frozenset().union(*(self.accepted[port] for port in ports))
        if found.types is not None:
            # What rules put out here has a type that the site itself need not have.
            types = types & found.types or types
        return sum(found.rates.get(each, _USUAL_RATE) for each in types)


# --- parts --------------------------------------------------------------------------------------


def _part(
    site: str,
    ports: tuple[str, ...],
    piece: _Piece,
    origins: Mapping[str, tuple[str, ...]],
) -> SitePart:
    """What a site does for a rule that runs elsewhere."""
    correlation = piece.reading
    why = _why_whole(piece)
    if why:
        return SitePart(site, ports, None, why)
    local = frozenset(port for port, at in origins.items() if at == (site,))
    is_ecl = isinstance(correlation, EclCorrelation)
    needed = (
        needed_of_ecl(correlation, local)
        if isinstance(correlation, EclCorrelation)
        else needed_of(correlation, local)
    )
    if needed is None:
        verb = "put out" if is_ecl else "trigger"
        return SitePart(site, ports, None, f"it can {verb} without anything from `{site}`")
    if not is_followed(needed):
        return SitePart(
            site, ports, None, "a bracket in it is repeated too often to be followed there"
        )
    if alone_enough(needed, ports):
        return SitePart(site, ports, None, "each of these events counts by itself")
    if isinstance(correlation, EclCorrelation):
        running = running_at(correlation, ports, local)
        return SitePart(site, ports, needed, running=running)
    keeps = _keeps_witnesses(correlation, needed, ports, local)
    return SitePart(site, ports, needed, keeps_witnesses=keeps)


def _why_whole(piece: _Piece) -> str:
    """Why no part of a rule can run away from its home; nothing if one can."""
    correlation = piece.reading
    if piece.unknown:
        names = ", ".join(f"`{each}`" for each in piece.unknown)
        return f"it has {names}, of which a placement does not know what it needs"
    if any(isinstance(port, TimerPort) for port in correlation.ports):
        return "its timers count from its first event, and that must travel"
    if isinstance(correlation, EclCorrelation):
        if has_modes(correlation):
            return "what it needs depends on its mode"
        if begins_with_timeout(correlation.body):
            return "its timeouts count from its first event, and that must travel"
    elif any(isinstance(each, PushNew | PushPort) for each in correlation.initially):
        return "it puts something out at its first event, and that must travel"
    if has_clock(correlation) and correlation.clauses.by:
        return "timeouts of its keys fire in the order of their last events, and those must travel"
    return ""


def _keeps_witnesses(
    correlation: FilterCorrelation,
    needed: Filter,
    ports: Collection[str],
    local: Collection[str],
) -> bool:
    """Whether of the events that wait only those are needed on which a match can stand.

    All of the site's ports must stand together in one subexpression of the only branch, and what is
    needed must be all of that: what lies between two of them, or was weakened away, would else have
    to know of events that were dropped. A label on the right of `;` is active whatever has come
    before its events, so that it asks for more of them than a match.
    """
    if correlation.clauses.bind == "first" or has_timeout(correlation):
        return False
    if len(correlation.branches) != 1 or aggregates_of(correlation):
        return False
    later = [
        part
        for x in parts_of(correlation.branches)
        if isinstance(x, Then | Times)
        for part in (x.parts[1:] if isinstance(x, Then) else (x.body,))
    ]
    if any(labels_in(later)):
        return False
    voids = {port.name for port in correlation.clauses.unless}
    matched = set(ports) - voids
    if not matched <= set(local) or voids & matched or voids & set(ports_in(correlation.branches)):
        return False
    subtrees = [
        part
        for part in parts_of(correlation.branches)
        if set(ports_in([part])) >= matched and set(ports_in([part])) <= set(local)
    ]
    branch = correlation.branches[0]
    return _has_all_places(needed, branch, matched) and any(
        _has_all_places(each, branch, matched) for each in subtrees
    )


def _has_all_places(part: Filter, branch: Filter, ports: Collection[str]) -> bool:
    """Whether no place of these ports lies outside of a part of a branch."""

    def places(x: Filter) -> int:
        return sum(port in ports for port in ports_in([x]))

    return places(part) == places(branch)
