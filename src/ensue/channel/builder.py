"""Assembles a channel from the parts that are asked for, in code or from TOML.

Four configurations follow the paper: `full`; `dispatching` (priorities and queues, every consumer
gets every event); `filtering` (look-up and correlation, in the supplier's thread); `multiplexer`
(neither). Parts can be added to each. A part that is left out is not imported, and its later use is
refused by `UsageError`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from ensue.channel.callbacks import logging_errors
from ensue.channel.channel import Channel
from ensue.channel.delivery.receiver import Failure, Receiver
from ensue.channel.dispatch.dispatcher import Dispatcher, checked_dispatcher
from ensue.channel.lookup.lookup import Lookup
from ensue.channel.parts import ChannelParts
from ensue.channel.policies import OVERFLOW_NAMES, Block, Overflow, Quality, Reason
from ensue.channel.timing.clock import Clock, WallClock
from ensue.configuration.secrets import secret_in
from ensue.errors import UsageError
from ensue.events.event import Event
from ensue.events.types import TypeSystem

if TYPE_CHECKING:
    from ensue.channel.realtime.threads import RealTimeThreads
    from ensue.channel.scheduling.measured import ChannelSchedule
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
    """Collects the parts of a channel. Every method returns the builder, `done` the channel."""

    def __init__(self, configuration: str = "full", name: str = "channel") -> None:
        chosen: dict[str, Any] = CONFIGURATIONS[
            one_of("configuration", configuration, CONFIGURATIONS)
        ]
        self._name = name
        self._filtering: bool = chosen["filtering"]
        self._correlation: bool = chosen["correlation"]
        self._timeouts: bool = chosen["timeouts"]
        self._strategy: str | Dispatcher | type[Dispatcher] = chosen["strategy"]
        self._threads = 4
        self._real_time = False
        self._clock: Clock | None = None
        self._schedule: ChannelSchedule | None = None
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
        self,
        strategy: str | Dispatcher | type[Dispatcher] | None = None,
        *,
        threads: int = 4,
        real_time: bool = False,
    ) -> Self:
        """Choose the dispatching strategy; by default that of the configuration.

        A strategy of your own is an object with the protocol `Dispatcher`, or a class that makes
        one. The modules of `realtime` describe the effects of `real_time`.
        """
        if isinstance(strategy, str):
            one_of("strategy", strategy, STRATEGIES)
        if strategy is not None:
            self._strategy = strategy
        self._threads = threads
        self._real_time = real_time
        return self

    def schedule(self, given: str | PathLike[str] | Mapping[str, Any]) -> Self:
        """Take priorities from a schedule: a TOML file, or its tables as a mapping.

        Consumers that connect as one of its operations have its priority, and are measured.
        """
        from ensue.channel.scheduling.measured import ChannelSchedule
        from ensue.channel.scheduling.schedule import Schedule

        self._schedule = ChannelSchedule(Schedule.of(given, needs_worst=False))
        return self

    def clock(self, clock: Clock) -> Self:
        self._clock = clock
        return self

    def library(self, library: Library) -> Self:
        """Add the event types of a library, so that a want for a type includes its subtypes."""
        merged = {**self._types.types, **library.checked.types.types}
        self._types = TypeSystem(merged)
        return self

    def consumers(self, **quality: Any) -> Self:
        """Set the default quality of service of consumers."""
        self._quality = self._quality.changed(**quality)
        return self

    def on_failure(self, report: Callable[[Failure], None]) -> Self:
        self._on_failure = logging_errors(report, "on_failure")
        return self

    def on_drop(self, report: Callable[[str, Event, Reason], None]) -> Self:
        """Report every drop: the consumer's name, the event, the reason."""
        self._on_drop = logging_errors(report, "on_drop")
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
        real_time = self._new_real_time()
        channel = Channel(
            ChannelParts(
                self._name,
                self._clock or WallClock(real_time),
                self._new_lookup(self._filtering),
                self._new_dispatcher(self._strategy, self._threads, real_time),
                lambda strategy, threads: self._new_dispatcher(strategy, threads, real_time),
                self._new_lookup,
                self._types,
                self._quality,
                self._filtering,
                self._correlation,
                self._timeouts,
                self._on_failure,
                self._on_drop,
                strategy_name(self._strategy),
                real_time,
                self._schedule,
            )
        )
        try:
            for options in self._listen:
                channel.federation.listen(**options)
            for options in self._links:
                channel.federation.connect(**options)
        except BaseException:
            # The caller never gets the channel and cannot close it.
            channel.close(drain=False)
            raise
        return channel

    def _new_lookup(self, has_filtering: bool) -> Lookup[Receiver]:
        if has_filtering:
            from ensue.channel.lookup.index import TargetIndex

            return TargetIndex(self._types)
        from ensue.channel.lookup.unfiltered import Unfiltered

        return Unfiltered()

    def _new_real_time(self) -> RealTimeThreads | None:
        if not self._real_time:
            return None
        from ensue.channel.realtime.threads import RealTimeThreads

        return RealTimeThreads()

    def _new_dispatcher(
        self,
        strategy: str | Dispatcher | type[Dispatcher],
        threads: int,
        real_time: RealTimeThreads | None,
    ) -> Dispatcher:
        if not isinstance(strategy, str):
            return checked_dispatcher(strategy)
        one_of("strategy", strategy, STRATEGIES)
        if strategy == "pool":
            from ensue.channel.dispatch.pool import ThreadPool

            return ThreadPool(threads, real_time=real_time)
        if strategy == "asyncio":
            from ensue.channel.dispatch.asyncio_loop import AsyncioDispatcher

            return AsyncioDispatcher()
        from ensue.channel.dispatch.reactive import ReactiveDispatcher

        return ReactiveDispatcher(real_time)


def strategy_name(strategy: object) -> str:
    """The name of a strategy; one of a user has that of its class."""
    if isinstance(strategy, str):
        return strategy
    return strategy.__name__ if isinstance(strategy, type) else type(strategy).__name__


def build(configuration: str = "full", name: str = "channel") -> Builder:
    """Begin a channel: `build("filtering").library(rules).done()`."""
    return Builder(configuration, name)


def from_toml(path: str | PathLike[str]) -> Builder:
    """Begin a channel described by a TOML file; `docs/channel.md` lists the keys."""
    from ensue.channel.toml_config import read

    config, place = read(path), Path(path)
    channel = config.channel.given()
    builder = Builder(channel.pop("configuration", "full"), channel.pop("name", place.stem))
    if libraries := channel.pop("library", None):
        from ensue.library import load

        files = [libraries] if isinstance(libraries, str) else libraries
        builder.library(load(*(place.parent / each for each in files)))
    if (schedule := channel.pop("schedule", None)) is not None:
        builder.schedule(place.parent / schedule)
    for part, is_wanted in channel.items():
        getattr(builder, part)(is_wanted)
    builder.dispatching(**config.dispatching.given())
    consumers = config.consumers.given()
    if (overflow := _overflow(consumers, place)) is not None:
        consumers["overflow"] = overflow
    builder.consumers(**consumers)
    for listen in config.listen:
        builder.listen(**_link_options(listen.given(), place))
    for link in config.link:
        builder.link(**_link_options(link.given(), place))
    return builder


def _link_options(table: dict[str, Any], place: Path) -> dict[str, Any]:
    """The options of a link: files are relative to the TOML file, a secret is in its own file."""
    if (overflow := _overflow(table, place)) is not None:
        table["overflow"] = overflow
    for name in ("certificate", "key", "authority"):
        if name in table:
            table[name] = place.parent / table[name]
    if (given := table.pop("secret_file", None)) is not None:
        try:
            table["secret"] = secret_in(place.parent / given)
        except UsageError as error:
            raise UsageError(f"`{place}`: no secret: {error}") from None
    return table


def _overflow(table: dict[str, Any], place: Path) -> Overflow | None:
    """The policy that `overflow = "block"` names, with `within` beside it."""
    name, within = table.pop("overflow", None), table.pop("within", None)
    if within is not None and name != "block":
        raise UsageError(
            f"`{place}`: `within` is how long a supplier waits for room, and is allowed only with"
            ' `overflow = "block"`'
        )
    if name is None:
        return None
    policy = OVERFLOW_NAMES[one_of("overflow", name, OVERFLOW_NAMES)]
    return Block(within) if within is not None else policy()


def one_of(what: str, given: str, known: Any) -> str:
    """The given name, if it is a known one."""
    if given not in known:
        names = ", ".join(f"`{each}`" for each in known)
        raise UsageError(f"there is no {what} `{given}`; choose one of {names}")
    return given
