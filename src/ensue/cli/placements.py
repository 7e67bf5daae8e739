"""`ensue explain --placement`: which site runs which rule, which events travel, what is saved.

In come a library, the file of its sites and perhaps events; out go tables that fit the terminal, or
JSON. `ensue.federation.placement` decides the placement.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ensue.cli.terminal import counted, say, show, width
from ensue.engine.changing import without
from ensue.errors import UsageError
from ensue.events.cloudevents import write_json
from ensue.events.event import Event
from ensue.events.records.reading import read_events
from ensue.events.sources import open_inputs
from ensue.lang.checked import CheckedLibrary
from ensue.lang.derived.relating import has_timeout
from ensue.lang.printer import print_filter
from ensue.lang.syntax import FilterCorrelation
from ensue.library import Library

if TYPE_CHECKING:
    from rich.table import Table

    from ensue.federation.placement import PlacedRule, Placement
    from ensue.federation.placement.planning.placement import SitePart
    from ensue.federation.placement.simulating import Crossed


def explain_placement(
    library: Library, sites: Path, name: str | None, events: Sequence[str], is_json: bool
) -> None:
    """Show the placement of a library, or of one of its correlations, over the sites of a file."""
    from ensue.federation.placement import Sites, place

    known = Sites.read(sites, library.checked)
    placement = place(library.checked, known)
    rules = [rule for rule in placement.rules.values() if name in (None, rule.correlation.name)]
    rules.sort(key=lambda rule: (rule.number, rule.name))
    crossed, outputs = None, 0
    if events:
        counted_rules = placement if name is None else place(_alone(library.checked, name), known)
        crossed, outputs = _simulated(counted_rules, events)
    if is_json:
        described: dict[str, Any] = {"rules": [_described(rule) for rule in rules]}
        if crossed is not None:
            described["messages"] = _counted(crossed)
        show(write_json(described))
        return
    _print(_rules_table(rules))
    for note in _notes(rules):
        show(note)
    if crossed is not None:
        show("")
        _print(_links_table(crossed))
        for line in _saved(crossed, outputs):
            show(line)


def _alone(library: CheckedLibrary, name: str) -> CheckedLibrary:
    """The library with one rule, and those that it reads."""
    needed, waiting = set[str](), [name]
    while waiting:
        current = waiting.pop()
        needed.add(current)
        feeding = (feeder for feeder, readers in library.feeds.items() if current in readers)
        waiting += [each for each in feeding if each not in needed]
    return without(library, [e.name for e in library.correlations if e.name not in needed])


# --- the rules of each site ---------------------------------------------------------------------


def _rules_table(rules: Iterable[PlacedRule]) -> Table:
    table = _table("rule", "runs at", "events of", "travel")
    for rule in rules:
        rows = list(_rows(rule)) or [("-", f"nothing: {rule.why}")]
        for number, (site, what) in enumerate(rows):
            head = (rule.name, rule.home) if not number else ("", "")
            table.add_row(*head, site, what)
    return table


def _rows(rule: PlacedRule) -> Iterator[tuple[str, str]]:
    for site, part in rule.parts.items():
        yield site, travelling(rule, part)


def travelling(rule: PlacedRule, part: SitePart) -> str:
    """The events that one site sends to the home of a rule: when, or why at once."""
    ports = ", ".join(part.ports)
    whole = [port for port in part.ports if rule.fields[port] is None]
    names = sorted({name for port in part.ports for name in rule.fields[port] or ()})
    fields = "whole" if len(whole) == len(part.ports) else f"with {', '.join(names) or 'no data'}"
    if whole and len(whole) < len(part.ports):
        fields += f" ({', '.join(whole)} whole)"
    if part.needed is None:
        held = "; held back while no mode or label has a use for it"
        return f"each {ports}, {fields}: {part.why}{held if part.site in rule.sleeps else ''}"
    return f"once {print_filter(part.needed)} has matched: {ports}, {fields}"


def _notes(rules: Iterable[PlacedRule]) -> Iterator[str]:
    unbounded = [
        rule.name
        for rule in rules
        if not rule.correlation.clauses.within
        and any(part.needed and part.running is None for part in rule.parts.values())
    ]
    if unbounded:
        names = ", ".join(f"`{name}`" for name in unbounded)
        yield f"without `within`, events wait without a time limit: {names}"


def _described(rule: PlacedRule) -> dict[str, Any]:
    correlation = rule.correlation
    return {
        "name": rule.name,
        "home": rule.home,
        "why": rule.why,
        "waits_for_clock": isinstance(correlation, FilterCorrelation) and has_timeout(correlation),
        "parts": [
            {
                "site": site,
                "ports": list(part.ports),
                "needed": None if part.needed is None else print_filter(part.needed),
                "why": part.why,
                "sleeps": part.site in rule.sleeps,
                "fields": {
                    port: None if (read := rule.fields[port]) is None else sorted(read)
                    for port in part.ports
                },
            }
            for site, part in rule.parts.items()
        ],
    }


# --- messages that a placement saves ------------------------------------------------------------


def _simulated(placement: Placement, files: Sequence[str]) -> tuple[Crossed, int]:
    from ensue.federation.placement import Simulation
    from ensue.federation.placement.simulating import in_order

    inputs = open_inputs(files)
    records = list(read_events(inputs, placement.library.types))
    events = [each for each in records if isinstance(each, Event)]
    placed, nowhere = in_order(placement, events)
    refused = len(records) - len(events)
    if refused:
        say(f"{counted(refused, 'record')} cannot be read as events; `ensue run` says why")
    if nowhere:
        say(f"{counted(nowhere, 'event')} left out, since no `[site]` of the file matches them")
    if not placed:
        raise UsageError("no event matches a site of the file, so there is nothing to count")
    simulation = Simulation(placement)
    outputs = simulation.run(placed)
    return simulation.crossed, len(outputs)


def _links_table(crossed: Crossed) -> Table:
    table = _table("from", "to", "events", "resets")
    links = sorted({*crossed.events, *crossed.resets})
    for link in links:
        events, resets = crossed.events[link], crossed.resets[link]
        if events or resets:
            table.add_row(*link, f"{events:,}", f"{resets:,}")
    return table


def _saved(crossed: Crossed, outputs: int) -> Iterator[str]:
    placed, events, resets = crossed.messages, crossed.events.total(), crossed.resets.total()
    read = crossed.of_types.total()
    yield f"messages over links, for {counted(read, 'event')} and {counted(outputs, 'output')}:"
    yield f"{placed:8,}  placed so ({counted(events, 'event')}, {counted(resets, 'reset')})"
    for number, how in (
        (crossed.whole_by_ports, "that match a port"),
        (crossed.whole_by_types, "of a type that rules read"),
    ):
        saved = f": {1 - placed / number:.0%} saved" if number > placed else ""
        yield f"{number:8,}  all rules at one site, events {how}{saved}"


def _counted(crossed: Crossed) -> dict[str, Any]:
    return {
        "placed": crossed.messages,
        "events": crossed.events.total(),
        "resets": crossed.resets.total(),
        "whole_by_ports": crossed.whole_by_ports,
        "whole_by_types": crossed.whole_by_types,
    }


# --- tables -------------------------------------------------------------------------------------


def _table(*headings: str) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def _print(table: Table) -> None:
    from rich.console import Console

    is_terminal = sys.stdout.isatty()
    out = Console(width=width(), highlight=False, markup=False, no_color=not is_terminal)
    with out.capture() as captured:
        out.print(table)
    for line in captured.get().splitlines():
        print(line.rstrip())
