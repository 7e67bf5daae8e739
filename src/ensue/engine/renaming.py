"""Correlations with their ports called by numbers, so that those which say the same can be told.

In comes a correlation, or anything that is said in one; out goes the same with other names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from ensue.lang.expressions import Name
from ensue.lang.syntax import Correlation, Holds, PortRef, PushPort


def numbered_ports(correlation: Correlation) -> dict[str, str]:
    """For each port the name that says its number."""
    return {port.name: f"port {number}" for number, port in enumerate(correlation.ports)}


def with_ports(said: Any, names: Mapping[str, str]) -> Any:
    """A copy of it whose ports have other names."""
    match said:
        case PortRef(name):
            return PortRef(names[name])
        case PushPort(port):
            return PushPort(names[port])
        case Name((port, *attributes)) if port in names:
            return Name((names[port], *attributes))
        case Holds():
            # A predicate inside an expression asks the event that is read, and no port.
            return said
        case tuple():
            return tuple(with_ports(each, names) for each in said)
        case _ if is_dataclass(said) and not isinstance(said, type):
            changed = {}
            for each in fields(said):
                before = getattr(said, each.name)
                if each.compare and (isinstance(before, tuple) or is_dataclass(before)):
                    changed[each.name] = with_ports(before, names)
            return replace(said, **changed)
        case _:
            return said
