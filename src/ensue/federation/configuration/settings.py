"""What a gateway is told by its TOML file, read and checked. Nothing here reads a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ensue.federation.adapters.base import ANYTHING, Service
from ensue.federation.mapping.rules import MappingRule
from ensue.federation.routing.distribution import wanted_from
from ensue.subscriptions import Filter


@dataclass(frozen=True)
class StandingRequest:
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
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Values of parameters of the library: the table `[parameters]`."""


@dataclass(frozen=True)
class GatewaySettings:
    """Everything that a gateway needs to know. Durations are in seconds.

    A neighbour that is silent for `patience` is routed around; what it wanted is kept for
    `memory`. `beat` is the time between two hellos, and `settling` the time in which a new gateway
    only listens to its neighbours. `require` names the services without which the gateway is not
    ready; None stands for all.
    """

    name: str
    services: tuple[Service, ...]
    subscriptions: tuple[StandingRequest, ...] = ()
    mappings: tuple[MappingRule, ...] = ()
    listen: str | None = None
    patience: float = 10.0
    memory: float = 600.0
    beat: float = 1.0
    settling: float = 0.4
    history: str | None = None
    ontology: tuple[Path, ...] = ()
    state: str | None = None
    site: SiteSettings | None = None
    require: tuple[str, ...] | None = None
