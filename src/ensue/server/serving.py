"""The process of `ensue serve`: from settings to a port that answers, and to an orderly end.

In come settings; the process then runs until SIGTERM or SIGINT. The port is open at once; while the
journal is read again, requests are answered with how far it is. It says `ready` on the standard
error once everything is in force. SIGHUP reads the settings again and puts changed libraries;
what cannot change in place is named. At the end no new request is taken, subscribers are closed,
what was taken is read, states are saved. A file with only the tables of a gateway is run by
`ensue.federation` alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import msgspec
import uvicorn
from starlette.applications import Starlette

from ensue.errors import EnsueError, LibraryError, UsageError
from ensue.library import Library
from ensue.server.api.app import application
from ensue.server.api.opening import OpeningApplication
from ensue.server.channels.hosting import Channels
from ensue.server.channels.watching import watch_links
from ensue.server.demo import Demonstration
from ensue.server.logs.requests import AnswerCounts, NamedRequests
from ensue.server.logs.writing import begin_log
from ensue.server.reception import protocols
from ensue.server.settings import Settings, read_settings
from ensue.server.settings.libraries import library_texts, words_of
from ensue.server.settings.settings import is_loopback, split_address
from ensue.server.station.rules.libraries import Edit
from ensue.version import __version__

if TYPE_CHECKING:
    from ensue.federation.gateway import Gateway

GRACE_SECONDS: Final = 10
SWITCH_SECONDS: Final = 0.0005
COLLECTING: Final = (50_000, 20, 100)
"""Objects that make a collection, collections that make one of the next generation."""
Say = Callable[[str], None]

log = logging.getLogger("ensue.server")


def serve(path: str | None, say: Say, listen: str | None = None) -> None:
    """Run the server of a file until it is told to end; without one, on loopback."""
    settings = read_settings(path) if listen is None else _listening(path, listen)
    if not settings.hosts_api:
        raise UsageError(f"`{path}` is of a gateway alone: `ensue serve` runs it")
    # Three threads share the interpreter; none is to wait long for its turn.
    sys.setswitchinterval(SWITCH_SECONDS)
    # Events come and go by reference counts; what the collector looks through is mostly the code
    # and the state of rules, and looking takes longer than a delivery may.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTING)
    begin_log(settings)
    # In JSON every line is, also those that are for the person who has started it.
    told = log.info if settings.log.format == "json" else say
    process = ServingProcess(settings, path, told, begin_log)
    try:
        import uvloop

        uvloop.run(process.run())
    except ImportError:
        asyncio.run(process.run())


def _listening(path: str | None, listen: str) -> Settings:
    """The settings of a server without a file, at an address of its own."""
    if path is not None:
        raise UsageError(f"`--listen` is for a server without a file: write it into `{path}`")
    host, _ = split_address(listen)
    if not is_loopback(host):
        raise UsageError(
            f"`{listen}` can be reached from other machines: write a file with tokens and a"
            " certificate for that, see docs/server.md"
        )
    settings = read_settings(None)
    return replace(settings, server=msgspec.structs.replace(settings.server, listen=listen))


class _Server(uvicorn.Server):
    """Uvicorn without its own signal handlers: the process has others."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class ServingProcess:
    """A server process from start to stop. `address` is set once it listens."""

    def __init__(
        self,
        settings: Settings,
        path: str | None,
        say: Say,
        relog: Callable[[Settings], None] = lambda _: None,
    ) -> None:
        self._settings = settings
        self._relog = relog
        self._answers = AnswerCounts()
        self._started = time.time()
        self._path = path
        self._say = say
        self._ends = asyncio.Event()
        self._is_ready = asyncio.Event()
        self._reload = asyncio.Lock()
        self._app: Starlette | None = None
        self._demo: asyncio.Task[None] | None = None
        self._watch: asyncio.Task[None] | None = None
        self.address: tuple[str, int] | None = None

    async def run(self, with_signals: bool = True) -> None:
        """Serve until `stop`."""
        if with_signals:
            loop = asyncio.get_running_loop()
            for each in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(each, self.stop)
            loop.add_signal_handler(signal.SIGHUP, self._begin_reload)
        await self._serve(_gateway(self._settings))

    def stop(self) -> None:
        self._ends.set()

    async def ready(self) -> None:
        await self._is_ready.wait()

    async def _serve(self, gateway: Any) -> None:
        settings = self._settings
        bound = _bound(settings)
        self.address = bound.getsockname()[:2]
        channels = self._channels = Channels(settings)
        is_tls = settings.server.certificate is not None
        opening = OpeningApplication(lambda: channels.step, is_tls)
        self._named = NamedRequests(opening, self._answers, settings.log.access)
        server = _Server(self._uvicorn(self._named))
        serving = asyncio.create_task(server.serve(sockets=[bound]), name="http")
        while not server.started and not serving.done():
            await asyncio.sleep(0.005)
        if serving.done():
            serving.result()
        self._tell_address()
        beginning = asyncio.create_task(self._begin(opening, gateway), name="begin")
        ended = asyncio.create_task(self._ends.wait(), name="end")
        try:
            await asyncio.wait({beginning, serving, ended}, return_when=asyncio.FIRST_COMPLETED)
            if beginning.done():
                beginning.result()
                await asyncio.wait({serving, ended}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if self._app is not None:
                self._app.state.is_ready = False
            await channels.give_up()
            beginning.cancel()
            await asyncio.gather(beginning, return_exceptions=True)
            # Streams never end by themselves: their clients are told to come again.
            await channels.stop()
            server.should_exit = True
            await serving
            for task in (self._demo, self._watch):
                if task is not None:
                    task.cancel()
                    await asyncio.gather(task, return_exceptions=True)
            if gateway is not None:
                await gateway.stop()
            await channels.close()
            log.info("ensue has ended")

    async def _begin(self, opening: OpeningApplication, gateway: Gateway | None) -> None:
        """Put everything in force, while requests are told that it starts."""
        settings, channels = self._settings, self._channels
        begun = time.monotonic()
        log.info("ensue begins", extra={"version": __version__})
        await channels.open()
        await self._put_libraries(channels, settings)
        app = application(settings, channels, gateway)
        app.state.answers = self._answers
        app.state.started = self._started
        channels.start()
        if settings.server.demo:
            demonstration = Demonstration(channels.main.station, channels.main.libraries)
            await demonstration.prepare()
            self._demo = asyncio.create_task(demonstration.run(), name="demo")
        opening.app = self._app = app
        # A gateway may lead here too, so that requests are answered while it connects.
        if gateway is not None:
            self._watch = asyncio.create_task(watch_links(gateway), name="watch")
            await gateway.start()
        app.state.is_ready = True
        self._is_ready.set()
        seconds = round(time.monotonic() - begun, 3)
        log.info("everything is in force", extra={"seconds": seconds})
        self._say("ready")

    def _uvicorn(self, app: Any) -> uvicorn.Config:
        settings = self._settings
        folder = settings.folder
        certificate, key = settings.server.certificate, settings.server.key
        return uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            date_header=False,
            **protocols(settings.limits, self._answers),
            ws_max_size=64 * 1024,
            ws_ping_interval=20.0,
            # A compressor for each subscriber costs 300 KB of memory and most of a delivery's time.
            ws_per_message_deflate=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
            timeout_keep_alive=60,
            ssl_certfile=str(folder / certificate) if certificate else None,
            ssl_keyfile=str(folder / key) if key else None,
        )

    def _tell_address(self) -> None:
        assert self.address is not None
        host, port = self.address
        scheme = "https" if self._settings.server.certificate else "http"
        shown = f"[{host}]" if ":" in host else host
        if self._settings.server.console:
            self._say(f"console and API at {scheme}://{shown}:{port}/")

    # --- libraries of the file, and reading it again ----------------------------------------------

    async def _put_libraries(self, channels: Channels, settings: Settings) -> list[str]:
        """Put the libraries that the file names, where they differ; which ones did.

        All are read before the first is put, so that a mistake changes nothing.
        """
        read: list[tuple[str, Library]] = []
        problems: list[str] = []
        texts = library_texts(settings)
        for each in settings.libraries:
            text = texts[each.name]
            try:
                library = await channels[each.channel].libraries.read(each.name, text, each.file)
                read.append((text, library))
            except LibraryError as error:
                problems.append(words_of(each.name, error))
        if problems:
            raise UsageError("\n".join(problems))
        changed: list[str] = []
        for each, (text, library) in zip(settings.libraries, read, strict=True):
            libraries = channels[each.channel].libraries
            edit = Edit(each.name, "file", each.file)
            change = await libraries.put(edit, text, library)
            if change.enabled != each.enabled:
                change = await libraries.enable(edit, each.enabled)
            if change.is_new:
                changed.append(each.name)
        return changed

    def _begin_reload(self) -> None:
        self._reloading = asyncio.create_task(self.reload(), name="reload")

    async def reload(self) -> None:
        """Read the settings again and apply them, or report their mistakes and change nothing."""
        # What is still put in force is not changed on the way.
        await self._is_ready.wait()
        async with self._reload:
            try:
                settings = read_settings(self._path)
                changed = await self._put_libraries(self._channels, settings)
                fixed = _needs_restart(self._settings, settings)
                assert self._app is not None
                self._app.state.retoken(settings)
                self._relog(settings)
                self._named.has_access_log = settings.log.access
            except (EnsueError, OSError) as error:
                self._say(f"not reloaded: {error}")
                return
            listed = ", ".join(f"`{each}`" for each in changed) or "no library has changed"
            self._say(f"reloaded: {listed}")
            if fixed:
                tables = ", ".join(f"`[{each}]`" for each in fixed)
                self._say(f"restart for the changes of {tables}")
            self._settings = settings


def _needs_restart(old: Settings, new: Settings) -> list[str]:
    tables = (
        "server", "history", "ontology", "limits", "webhooks", "gateway", "channels", "links"
    )  # fmt: skip
    return [each for each in tables if getattr(old, each) != getattr(new, each)]


def _gateway(settings: Settings) -> Gateway | None:
    if not settings.gateway:
        return None
    # Drivers of brokers are loaded only where there is a gateway.
    from ensue.federation.gateway import Gateway
    from ensue.federation.serving import quiet_drivers

    quiet_drivers()
    memory = settings.folder / (settings.server.data or "") / "gateway.state.json"
    memory.parent.mkdir(parents=True, exist_ok=True)
    return Gateway.from_config(settings.gateway, settings.where, memory)


def _bound(settings: Settings) -> socket.socket:
    """The socket that is listened on, opened before anything else so that a failure is early."""
    host, port = settings.address
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(place)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(
            f"`{settings.server.listen}` cannot be listened on: {reason}: stop what is there, or"
            " give another address in `[server] listen`"
        ) from None
    bound.set_inheritable(True)
    return bound
