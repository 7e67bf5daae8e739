"""Checks the ports of a correlation, their `where`, and the keys after `by`.

Out go the ports by name. `filters`, `transformers` and `ecl` check how the body uses them, and then
`warn_unused` reports ports that it does not use.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set

from ensue.events.types import ValueType
from ensue.lang.checking.names import attribute_type, look_up, report_unknown
from ensue.lang.checking.predicates import check_where
from ensue.lang.checking.scope import LibraryScope
from ensue.lang.source import Span
from ensue.lang.syntax import CommonKey, Correlation, EventPort, Key, Port, PortKeys, TimerPort

Ports = Mapping[str, Port]


def check_ports(correlation: Correlation, scope: LibraryScope) -> Ports:
    """Report mistakes in the ports of a correlation. Returns the first port of each name."""
    ports: dict[str, Port] = {}
    for port in correlation.ports:
        first = ports.setdefault(port.name, port)
        if first is not port:
            scope.error(
                "duplicate-port",
                f"`{correlation.name}` has two ports named `{port.name}`",
                port.name_span,
                "give one of them another name",
            )
        if isinstance(port, EventPort):
            scope.check_type(port.type, Span(port.span.start, port.span.start + len(port.type)))
    for port in correlation.ports:
        if isinstance(port, EventPort) and port.where is not None:
            check_where(port, port.where, ports, scope)
    if not event_ports(ports.values()):
        scope.warning(
            "never-starts",
            f"`{correlation.name}` reads no events, so its timers never start",
            correlation.span,
            "a correlation starts at the first event that one of its ports reads: add such a port",
        )
    return ports


def event_ports(ports: Iterable[Port]) -> list[EventPort]:
    return [each for each in ports if isinstance(each, EventPort)]


def find_port(name: str, span: Span, ports: Ports, scope: LibraryScope) -> Port | None:
    """The port of a name; an unknown port is reported."""
    port = ports.get(name)
    if port is None:
        message = f"there is no port `{name}`"
        scope.error("unknown-port", message, span, scope.hint(name, ports))
    return port


def warn_unused(ports: Ports, used: Set[str], by: Sequence[Key], scope: LibraryScope) -> None:
    if not used <= ports.keys():
        # A port whose name is misspelt in the body seems unused, and has been reported already.
        return
    named_in_keys = {name for key in by if isinstance(key, PortKeys) for name, _ in key.parts}
    for port in ports.values():
        if port.name not in used and port.name not in named_in_keys:
            scope.warning(
                "unused-port",
                f"port `{port.name}` is not used",
                port.name_span,
                "use it in the body, or remove it",
            )


# --- keys --------------------------------------------------------------------------------------


def check_keys(keys: Sequence[Key], ports: Ports, scope: LibraryScope) -> None:
    for key in keys:
        if isinstance(key, CommonKey):
            _check_common_key(key, ports, scope)
        else:
            _check_port_keys(key, ports, scope)


def _check_common_key(key: CommonKey, ports: Ports, scope: LibraryScope) -> None:
    readers = [each for each in event_ports(ports.values()) if each.type in scope.types]
    known = {each.name: look_up(scope, each.type, key.name) for each in readers}
    without: dict[str, list[str]] = {}
    for port in readers:
        if known[port.name] is None:
            without.setdefault(port.type, []).append(port.name)
    # If the type of another port declares the key, it is data and no extension attribute.
    certain = any(each is not None and each.declared for each in known.values())
    for type_name, names in without.items():
        report_unknown(
            scope,
            [type_name],
            key.name,
            key.span,
            message=f"key `{key.name}` is no attribute of `{type_name}`, "
            f"the type of {_listed(names)}",
            advice=_key_advice(key, readers, without, scope, certain),
            certain=certain,
        )
    types = {name: each.type for name, each in known.items() if each and each.type}
    _check_kinds(f"key `{key.name}`", types, key.span, scope)


def _listed(ports: Sequence[str]) -> str:
    shown = " and ".join(f"`{each}`" for each in ports[:3])
    more = f" and {len(ports) - 3} more" if len(ports) > 3 else ""
    return f"{'port' if len(ports) == 1 else 'ports'} {shown}{more}"


def _key_advice(
    key: CommonKey,
    readers: Sequence[EventPort],
    without: Collection[str],
    scope: LibraryScope,
    certain: bool,
) -> str | None:
    if key.name in {each.name for each in readers}:
        return f"`{key.name}` is a port: name an attribute that all ports have, as `by user`"
    return _one_for_each_port(key, readers, without, scope) if certain else None


def _one_for_each_port(
    key: CommonKey, readers: Sequence[EventPort], without: Collection[str], scope: LibraryScope
) -> str:
    parts = []
    for port in readers[:3]:
        own = next(iter(scope.types.attributes(port.type)), "name")
        parts.append(f"{port.name}.{own if port.type in without else key.name}")
    if len(readers) > 3:
        parts.append("...")
    return f"declare it there, or name an attribute of each port: `by {' = '.join(parts)}`"


def _check_port_keys(key: PortKeys, ports: Ports, scope: LibraryScope) -> None:
    sizes = [1 + len(attribute.split(".")) for _, attribute in key.parts]
    spans = scope.name_spans(key.span, sum(sizes))
    seen: set[str] = set()
    kinds: dict[str, ValueType] = {}
    for index, (port_name, attribute) in enumerate(key.parts):
        at, end = sum(sizes[:index]), sum(sizes[: index + 1])
        port_span = spans[at]
        attribute_span = Span(spans[at + 1].start, spans[end - 1].end)
        port = find_port(port_name, port_span, ports, scope)
        if isinstance(port, TimerPort):
            scope.error(
                "timer-key",
                f"`{port_name}` is a timer and has no key",
                port_span,
                "a timer fires under every key: leave it out",
            )
        elif port_name in seen:
            scope.error(
                "duplicate-key",
                f"port `{port_name}` is named twice in one key",
                port_span,
                "name each port once; a further key comes after a comma",
            )
        elif port is not None:
            found = attribute_type(scope, [port.type], attribute, attribute_span)
            if found is not None:
                kinds[port_name] = found
        seen.add(port_name)
    missing = [each.name for each in event_ports(ports.values()) if each.name not in seen]
    # A port whose name is misspelt also seems left out, and has been reported already.
    if missing and seen <= ports.keys():
        scope.error(
            "missing-key",
            f"the key leaves out {_listed(missing)}",
            key.span,
            f"every port needs a key: add `= {missing[0]}.` and the name of an attribute",
        )
    _check_kinds("the key", kinds, key.span, scope)


def _check_kinds(
    what: str, types: Mapping[str, ValueType], span: Span, scope: LibraryScope
) -> None:
    sequences = [name for name, each in types.items() if each.kind == "sequence"]
    if sequences:
        scope.error(
            "sequence-key",
            f"{what} is a sequence on port `{sequences[0]}`, and a sequence cannot be a key",
            span,
            "use an attribute with a single value",
        )
        return
    if len({each.kind for each in types.values()}) > 1:
        shown = ", ".join(f"`{each}` on port `{name}`" for name, each in types.items())
        scope.error(
            "key-kinds-differ",
            f"{what} is not of one kind: {shown}",
            span,
            "values of different kinds are never equal: use attributes of one kind",
        )
