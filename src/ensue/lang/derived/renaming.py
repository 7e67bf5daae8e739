"""Ports renamed by their numbers, so that rules which differ only in port names compare equal.

In comes a correlation or any part of one; out goes a copy in which ports have other names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ensue.lang.expressions import Name
from ensue.lang.expressions.rewriting import mapped
from ensue.lang.syntax import Correlation, Holds, PortRef, PushPort


def numbered_ports(correlation: Correlation) -> dict[str, str]:
    """A new name for each port, made of its number."""
    return {port.name: f"port {number}" for number, port in enumerate(correlation.ports)}


def with_ports(said: Any, names: Mapping[str, str]) -> Any:
    """A copy of a correlation, or of a part of one, in which ports have other names."""

    def renamed(node: Any) -> Any:
        match node:
            case PortRef(name):
                return PortRef(names[name])
            case PushPort(port, extensions=extensions):
                renamed_too = tuple(mapped(each, renamed) for each in extensions)
                return PushPort(names[port], extensions=renamed_too)
            case Name((port, *attributes)) if port in names:
                return Name((names[port], *attributes))
            case Holds():
                # A predicate inside an ECL expression reads the event, and no port.
                return node
        return None

    return mapped(said, renamed)
