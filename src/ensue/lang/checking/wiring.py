"""Checks the wiring of a library: the names after `from`, circles, and chains that are not written.

In come the correlations of a library; out go the readers of each (`CheckedLibrary.feeds`). A name
that is no correlation is an error, and so is a circle of names, whatever types the ports have. A
port without `from` reads nothing of what rules put out: where a rule puts out the type of such a
port, a warning shows the line that would read it; so it does where a text is the source of outputs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice

from ensue.lang.checking.circles import circles
from ensue.lang.checking.feeding import outputs_of
from ensue.lang.checking.scope import LibraryScope
from ensue.lang.checking.type_forest import TypeForest
from ensue.lang.derived.wiring import event_ports, readers_of, rules_named
from ensue.lang.printer import print_source
from ensue.lang.syntax import (
    OUTSIDE,
    Correlation,
    EventPort,
    OutsideSource,
    PortSource,
    RuleSource,
    TextSource,
)

# Many rules that feed each other have more circles than anyone wants to read.
CIRCLES_SHOWN = 20
NAMES_SHOWN = 20
OUTPUTS_FROM = "ensue/"
"""What the source of a new output begins with, before the name of its rule."""
RULES_SHOWN = 3
"""How many rules a warning names that put out the type of a port."""


def check_wiring(
    correlations: Sequence[Correlation],
    templates: Sequence[Correlation],
    uses: Collection[str],
    scope: LibraryScope,
) -> Mapping[str, tuple[str, ...]]:
    """Report mistakes of wiring; the readers of each correlation are returned.

    `uses` has the names of the correlations that are uses of others.
    """
    known = {each.name: each for each in correlations}
    unused = {each.name for each in templates}
    for template in templates:
        for port in event_ports(template):
            _check_sources(port, known, unused, scope)
    makers = _Makers(correlations, scope.types)
    read: set[str] = set()
    for correlation in correlations:
        for port in event_ports(correlation):
            _check_sources(port, known, unused, scope)
            read.update(rules_named(port))
            if port.type in scope.types:
                _warn_not_wired(correlation, port, makers, correlation.name in uses, scope)
                _warn_never_fed(port, known, makers, scope)
    for each in correlations:
        if each.role == "internal" and each.name not in read:
            scope.warning(
                "internal-unread",
                f"`{each.name}` is internal, and no rule reads what it puts out",
                each.span,
                f"read it by `from {each.name}`, or leave out `internal`",
            )
    readers = readers_of(correlations)
    _check_circles(correlations, readers, scope)
    return readers


def _check_sources(
    port: EventPort,
    known: Mapping[str, Correlation],
    templates: Collection[str],
    scope: LibraryScope,
) -> None:
    seen: set[PortSource] = set()
    everything = any(isinstance(each, OutsideSource) for each in port.sources)
    for source in port.sources:
        if isinstance(source, RuleSource) and source.name in templates:
            scope.error(
                "template-source",
                f"`{source.name}` is a template, which does not run and puts nothing out",
                source.span,
                f"name a use of it, such as `use {source.name} as Other;`",
            )
        elif isinstance(source, RuleSource) and source.name not in known:
            scope.error(
                "unknown-source",
                f"there is no correlation `{source.name}` that port `{port.name}` could read",
                source.span,
                _source_hint(source.name, known, scope),
            )
        if source in seen:
            scope.warning(
                "redundant-source",
                f"port `{port.name}` names `{print_source(source)}` twice after `from`",
                source.span,
                "name each source once",
            )
        elif everything and isinstance(source, TextSource):
            scope.warning(
                "redundant-source",
                f"port `{port.name}` reads everything from `{OUTSIDE}`, this source included",
                source.span,
                f"leave out `{print_source(source)}` or `{OUTSIDE}`",
            )
        seen.add(source)


def _source_hint(name: str, known: Mapping[str, Correlation], scope: LibraryScope) -> str:
    match = scope.close_match(name, {*known, OUTSIDE})
    if match:
        return f"did you mean `{match}`?"
    quoted = print_source(TextSource(name))
    return f"a `source` of events from outside stands in quotes: `from {quoted}`"


def _check_circles(
    correlations: Sequence[Correlation], readers: Mapping[str, Sequence[str]], scope: LibraryScope
) -> None:
    numbers = {each.name: number for number, each in enumerate(correlations)}
    graph = [[numbers[name] for name in readers[each.name]] for each in correlations]
    for circle in circles(graph, CIRCLES_SHOWN):
        names = [correlations[index].name for index in circle]
        shown = _shortened([*names, names[0]])
        scope.error(
            "circular-feeding",
            f"correlations read each other's outputs in a circle: {shown}"
            if len(circle) > 1
            else f"`{names[0]}` reads its own outputs: {shown}",
            correlations[circle[0]].span,
            f"let a port of `{names[0]}` read from `{OUTSIDE}` or from a rule before the circle",
        )


def _shortened(path: Sequence[str]) -> str:
    """A long path is shown by its two ends."""
    if len(path) > NAMES_SHOWN:
        half = NAMES_SHOWN // 2
        left_out = f"... {len(path) - 2 * half} more ..."
        path = [*path[:half], left_out, *path[-half:]]
    return " -> ".join(path)


# --- chains by type ------------------------------------------------------------------------------


class _Makers:
    """The correlations that put out events which ports of a type could read."""

    def __init__(self, correlations: Sequence[Correlation], types: TypeForest) -> None:
        self._types = types
        self._makers: dict[str, dict[str, None]] = {}
        self._senders: dict[str, dict[str, None]] = {}
        self._known: dict[str, dict[str, None]] = {}
        for each in correlations:
            for output in outputs_of(each):
                found = self._senders if output.or_below else self._makers
                found.setdefault(output.type, {})[each.name] = None
        self._order = {each.name: number for number, each in enumerate(correlations)}

    def others(self, type_name: str, name: str) -> tuple[list[str], int]:
        """The first correlations besides one that put out a type, and how many there are."""
        found = self.of(type_name)
        first = islice((each for each in found if each != name), RULES_SHOWN)
        return list(first), len(found) - (name in found)

    def of(self, type_name: str) -> Mapping[str, None]:
        """The correlations that put out a type, or may send on events of it, in library order."""
        if type_name not in self._known:
            found: dict[str, None] = {}
            for below in self._below(type_name):
                found |= self._makers.get(below, {}) | self._senders.get(below, {})
            above = self._types.types[type_name].parent
            while above is not None and above in self._types:
                # An event of a port above may be of this type.
                found |= self._senders.get(above, {})
                above = self._types.types[above].parent
            in_order = sorted(found, key=self._order.__getitem__)
            self._known[type_name] = dict.fromkeys(in_order)
        return self._known[type_name]

    def _below(self, type_name: str) -> Iterator[str]:
        left = [type_name]
        while left:
            each = left.pop()
            yield each
            left += self._types.children[each]


def _warn_not_wired(
    correlation: Correlation,
    port: EventPort,
    makers: _Makers,
    is_use: bool,
    scope: LibraryScope,
) -> None:
    """Warn of a port that reads from outside only, where a rule may have been meant."""
    if port.sources:
        _warn_named_by_text(correlation, port, makers, is_use, scope)
        return
    names, count = makers.others(port.type, correlation.name)
    if not names:
        return
    shown = " and ".join(f"`{name}`" for name in names)
    more = f" and {count - len(names)} more" if count > len(names) else ""
    verb = "put" if count > 1 else "puts"
    # A long list is no line that anyone writes.
    listed = ", ".join(names) if count == len(names) else names[0]
    # The port of a use is wired where it is used.
    line = f"({port.name} from " if is_use else f"{port.type} {port.name} from "
    end = ")" if is_use else ""
    of_use = f" of `{correlation.name}`" if is_use else ""
    scope.warning(
        "not-wired",
        f"port `{port.name}`{of_use} reads events from outside only, and {shown}{more} {verb} out"
        f" `{port.type}` too",
        correlation.span if is_use else port.name_span,
        f"to read that write `{line}{listed}{end}`, else `{line}{OUTSIDE}{end}`",
    )


def _warn_named_by_text(
    correlation: Correlation,
    port: EventPort,
    makers: _Makers,
    is_use: bool,
    scope: LibraryScope,
) -> None:
    """Warn of a text that is the source of a rule's outputs: it once read them, and never does."""
    named = set(rules_named(port))
    for source in port.sources:
        if not isinstance(source, TextSource) or not source.text.startswith(OUTPUTS_FROM):
            continue
        name = source.text.removeprefix(OUTPUTS_FROM)
        if name not in makers.of(port.type) or name in named:
            continue
        scope.warning(
            "not-wired",
            f"port `{port.name}` reads `{print_source(source)}` from outside only, and nothing that"
            f" `{name}` puts out",
            correlation.span if is_use else source.span,
            f"to read that write `from {name}`, else"
            f" `from {OUTSIDE} where source = {print_source(source)}`",
        )


def _warn_never_fed(
    port: EventPort, known: Mapping[str, Correlation], makers: _Makers, scope: LibraryScope
) -> None:
    for source in port.sources:
        if not isinstance(source, RuleSource) or source.name not in known:
            continue
        if source.name not in makers.of(port.type):
            scope.warning(
                "never-fed",
                f"`{source.name}` never puts out `{port.type}`, so port `{port.name}` reads"
                " nothing of it",
                source.span,
                f"it puts out {_put_out(known[source.name])}",
            )


def _put_out(correlation: Correlation) -> str:
    types = dict.fromkeys(output.type for output in outputs_of(correlation))
    return ", ".join(f"`{each}`" for each in types) or "nothing"
