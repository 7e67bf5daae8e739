"""Puts a channel together, from code or from TOML, out of the parts that are asked for and no more.

The four configurations of the paper: `full`; `dispatching` (priorities and queues, everybody gets
everything); `filtering` (look-up and correlation, in the supplier's thread); `multiplexer`
(neither). Each is a start from which parts can be added. A part that is left out is not even
imported, and asking the channel for it later says so.
"""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from ensue.channel.callbacks import contained
from ensue.channel.channel import Channel
from ensue.channel.delivery.receiver import Failure, Receiver
from ensue.channel.dispatch.dispatcher import Dispatcher
from ensue.channel.lookup.lookup import LookUp
from ensue.channel.parts import Parts
from ensue.channel.policies import OVERFLOW_NAMES, Block, Overflow, Quality, Reason
from ensue.channel.timing.clock import Clock, WallClock
from ensue.errors import UsageError
from ensue.events.event import Event
from ensue.events.types import TypeSystem

if TYPE_CHECKING:
    from ensue.channel.realtime.threads import Urgency
    from ensue.library import Library

STRATEGIES = ("reactive", "pool", "asyncio")
CONFIGURATIONS = {
    "full": {"filtering": True, "correlation": True, "timeouts": True, "strategy": "pool"},
    "dispatching": {"filtering": False, "correlation": False, "timeouts": True, "strategy": "pool"},
    "filtering": {"filtering": True, "correlation": True, "timeouts": True, "strategy": "reactive"},
    "multiplexer": {
        "filtering": False,
        "correlation": False,
        "timeouts": False,
        "strategy": "reactive",
    },
}


class Builder:
    """Collects what a channel is to have. Every method returns the builder; `done` the channel."""

    def __init__(self, configuration: str = "full", name: str = "channel") -> None:
        chosen: dict[str, Any] = CONFIGURATIONS[
            known("configuration", configuration, CONFIGURATIONS)
        ]
        self._name = name
        self._filtering: bool = chosen["filtering"]
        self._correlation: bool = chosen["correlation"]
        self._timeouts: bool = chosen["timeouts"]
        self._strategy: str = chosen["strategy"]
        self._threads = 4
        self._real_time = False
        self._clock: Clock | None = None
        self._types = TypeSystem()
        self._quality = Quality()
        self._on_failure: Callable[[Failure], None] | None = None
        self._on_drop: Callable[[str, Event, Reason], None] | None = None
        self._links: list[dict[str, Any]] = []
        self._listen: list[dict[str, Any]] = []

    def filtering(self, wanted: bool = True) -> Self:
        self._filtering = wanted
        return self

    def correlation(self, wanted: bool = True) -> Self:
        self._correlation = wanted
        self._filtering = self._filtering or wanted
        return self

    def timeouts(self, wanted: bool = True) -> Self:
        self._timeouts = wanted
        return self

    def dispatching(
        self, strategy: str | None = None, *, threads: int = 4, real_time: bool = False
    ) -> Self:
        """How consumers get their turns; without a strategy, by that of the configuration.

        What `real_time` adds is told in `urgency` and `process`.
        """
        if strategy is not None:
            self._strategy = known("strategy", strategy, STRATEGIES)
        self._threads = threads
        self._real_time = real_time
        return self

    def clock(self, clock: Clock) -> Self:
        self._clock = clock
        return self

    def library(self, library: Library) -> Self:
        """The event types that the channel knows, so that a type also stands for its subtypes."""
        merged = {**self._types.types, **library.checked.types.types}
        self._types = TypeSystem(merged)
        return self

    def consumers(self, **promises: Any) -> Self:
        """What consumers are promised if they do not ask for something else."""
        self._quality = self._quality.changed(**promises)
        return self

    def on_failure(self, report: Callable[[Failure], None]) -> Self:
        self._on_failure = contained(report, "on_failure")
        return self

    def on_drop(self, report: Callable[[str, Event, Reason], None]) -> Self:
        """Have every drop reported: the consumer's name, the event, the reason."""
        self._on_drop = contained(report, "on_drop")
        return self

    def listen(self, host: str = "127.0.0.1", port: int = 0, **options: Any) -> Self:
        """Let other channels link to this one; options as of `channel.federation.listen`."""
        self._listen.append({"host": host, "port": port, **options})
        return self

    def link(self, host: str, port: int, **options: Any) -> Self:
        """Link to another channel that listens; options as of `channel.federation.connect`."""
        self._links.append({"host": host, "port": port, **options})
        return self

    def done(self) -> Channel:
        urgency = self._new_urgency()
        channel = Channel(
            Parts(
                self._name,
                self._clock or WallClock(urgency),
                self._new_look_up(),
                self._new_dispatcher(self._strategy, self._threads, urgency),
                lambda strategy, threads: self._new_dispatcher(strategy, threads, urgency),
                self._types,
                self._quality,
                self._filtering,
                self._correlation,
                self._timeouts,
                self._on_failure,
                self._on_drop,
                self._strategy,
                urgency,
            )
        )
        try:
            for options in self._listen:
                channel.federation.listen(**options)
            for options in self._links:
                channel.federation.connect(**options)
        except BaseException:
            # Nobody else has it yet to close it.
            channel.close(drain=False)
            raise
        return channel

    def _new_look_up(self) -> LookUp[Receiver]:
        if self._filtering:
            from ensue.channel.lookup.index import Index

            return Index(self._types)
        from ensue.channel.lookup.unfiltered import Everyone

        return Everyone()

    def _new_urgency(self) -> Urgency | None:
        if not self._real_time:
            return None
        from ensue.channel.realtime.threads import Urgency

        return Urgency()

    def _new_dispatcher(self, strategy: str, threads: int, urgency: Urgency | None) -> Dispatcher:
        known("strategy", strategy, STRATEGIES)
        if strategy == "pool":
            from ensue.channel.dispatch.pool import ThreadPool

            return ThreadPool(threads, urgency=urgency)
        if strategy == "asyncio":
            from ensue.channel.dispatch.asyncio_loop import Asynchronous

            return Asynchronous()
        from ensue.channel.dispatch.reactive import Reactive

        return Reactive(urgency)


def build(configuration: str = "full", name: str = "channel") -> Builder:
    """Begin a channel: `build("filtering").library(rules).done()`."""
    return Builder(configuration, name)


def from_toml(path: str | PathLike[str]) -> Builder:
    """Begin a channel as a TOML file says; see `docs/channel.md` for what may stand in it."""
    from ensue.channel.toml_config import read

    config, place = read(path), Path(path)
    channel = config.channel.given()
    builder = Builder(channel.pop("configuration", "full"), channel.pop("name", place.stem))
    if libraries := channel.pop("library", None):
        from ensue.library import load

        files = [libraries] if isinstance(libraries, str) else libraries
        builder.library(load(*(place.parent / each for each in files)))
    for part, is_wanted in channel.items():
        getattr(builder, part)(is_wanted)
    builder.dispatching(**config.dispatching.given())
    consumers = config.consumers.given()
    if (overflow := _overflow(consumers, place)) is not None:
        consumers["overflow"] = overflow
    builder.consumers(**consumers)
    for listen in config.listen:
        builder.listen(**listen.given())
    for link in config.link:
        builder.link(**link.given())
    return builder


def _overflow(consumers: dict[str, Any], place: Path) -> Overflow | None:
    """The policy that `overflow = "block"` names, with `within` beside it."""
    name, within = consumers.pop("overflow", None), consumers.pop("within", None)
    if within is not None and name != "block":
        raise UsageError(
            f"`{place}`: `within` says how long a supplier waits for room and goes with"
            ' `overflow = "block"`'
        )
    if name is None:
        return None
    policy = OVERFLOW_NAMES[known("overflow", name, OVERFLOW_NAMES)]
    return Block(within) if within is not None else policy()


def known(what: str, given: str, known: Any) -> str:
    if given not in known:
        names = ", ".join(f"`{each}`" for each in known)
        raise UsageError(f"there is no {what} `{given}`; choose one of {names}")
    return given
