"""Puts a channel together, from code or from TOML, out of the parts that are asked for and no more.

The four configurations of the paper: `full`; `dispatching` (priorities and queues, everybody gets
everything); `filtering` (look-up and correlation, in the supplier's thread); `multiplexer`
(neither). Each is a start from which parts can be added. A part that is left out is not even
imported, and asking the channel for it later says so.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from ensue.channel.channel import Channel, LookUp, Parts
from ensue.channel.clock import Clock, WallClock
from ensue.channel.policies import OVERFLOW_NAMES, Block, Quality, Reason
from ensue.channel.turns import Dispatcher, Failure
from ensue.errors import UsageError
from ensue.events.event import Event
from ensue.events.types import TypeSystem

if TYPE_CHECKING:
    from ensue.channel.urgency import Urgency
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
            _known("configuration", configuration, CONFIGURATIONS)
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

    def dispatching(self, strategy: str, *, threads: int = 4, real_time: bool = False) -> Self:
        """How consumers get their turns. What `real_time` adds: see `urgency` and `process`."""
        self._strategy = _known("strategy", strategy, STRATEGIES)
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
        self._on_failure = report
        return self

    def on_drop(self, report: Callable[[str, Event, Reason], None]) -> Self:
        """Have every drop reported: the consumer's name, the event, the reason."""
        self._on_drop = report
        return self

    def listen(self, host: str = "127.0.0.1", port: int = 0, **options: Any) -> Self:
        """Let other channels link to this one."""
        self._listen.append({"host": host, "port": port, **options})
        return self

    def link(self, host: str, port: int, **options: Any) -> Self:
        """Link to another channel that listens."""
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
        for options in self._listen:
            channel.federation.listen(**options)
        for options in self._links:
            channel.federation.connect(**options)
        return channel

    def _new_look_up(self) -> LookUp:
        if self._filtering:
            from ensue.channel.index import Index

            return Index(self._types)
        from ensue.channel.everyone import Everyone

        return Everyone()

    def _new_urgency(self) -> Urgency | None:
        if not self._real_time:
            return None
        from ensue.channel.urgency import Urgency

        return Urgency()

    def _new_dispatcher(self, strategy: str, threads: int, urgency: Urgency | None) -> Dispatcher:
        _known("strategy", strategy, STRATEGIES)
        if strategy == "pool":
            from ensue.channel.pool import ThreadPool

            return ThreadPool(threads, urgency=urgency)
        if strategy == "asyncio":
            from ensue.channel.asynchronous import Asynchronous

            return Asynchronous()
        from ensue.channel.reactive import Reactive

        return Reactive(urgency)


def build(configuration: str = "full", name: str = "channel") -> Builder:
    """Begin a channel: `build("filtering").library(rules).done()`."""
    return Builder(configuration, name)


def from_toml(path: str | PathLike[str]) -> Builder:
    """Begin a channel as a TOML file says; see `docs/channel.md` for what may stand in it."""
    place = Path(path)
    try:
        given = tomllib.loads(place.read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"`{place}` cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"`{place}` is no TOML: {error}") from None
    return _from_tables(given, place)


def _from_tables(given: dict[str, Any], place: Path) -> Builder:
    channel = _table(given, "channel", place)
    dispatching = _table(given, "dispatching", place)
    consumers = _table(given, "consumers", place)
    links, listen = given.pop("link", []), given.pop("listen", [])
    _refuse_others(given, "table", place)
    builder = Builder(channel.pop("configuration", "full"), channel.pop("name", place.stem))
    for part in ("filtering", "correlation", "timeouts"):
        if part in channel:
            getattr(builder, part)(channel.pop(part))
    if libraries := channel.pop("library", None):
        from ensue.library import load

        files = [libraries] if isinstance(libraries, str) else libraries
        builder.library(load(*(place.parent / each for each in files)))
    _refuse_others(channel, "key of [channel]", place)
    if dispatching:
        try:
            builder.dispatching(**dispatching)
        except TypeError:
            raise UsageError(
                f"`{place}`: [dispatching] has `strategy`, `threads` and `real_time`;"
                f" given is {', '.join(f'`{key}`' for key in dispatching)}"
            ) from None
    builder.consumers(**_quality(consumers))
    for options in listen:
        builder.listen(**options)
    for options in links:
        builder.link(**options)
    return builder


def _quality(consumers: dict[str, Any]) -> dict[str, Any]:
    """Policies by their names: `overflow = "block"`, with `within` beside it."""
    promises = dict(consumers)
    within = promises.pop("within", None)
    if (overflow := promises.get("overflow")) is not None:
        policy = OVERFLOW_NAMES[_known("overflow", overflow, OVERFLOW_NAMES)]
        promises["overflow"] = Block(within) if policy is Block and within else policy()
    return promises


def _table(given: dict[str, Any], name: str, place: Path) -> dict[str, Any]:
    table = given.pop(name, {})
    if not isinstance(table, dict):
        raise UsageError(f"`{place}`: `{name}` is a table, written [{name}]")
    return dict(table)


def _refuse_others(left: dict[str, Any], what: str, place: Path) -> None:
    if left:
        raise UsageError(f"`{place}`: `{next(iter(left))}` is no {what} of a channel")


def _known(what: str, given: str, known: Any) -> str:
    if given not in known:
        names = ", ".join(f"`{each}`" for each in known)
        raise UsageError(f"there is no {what} `{given}`; choose one of {names}")
    return given
