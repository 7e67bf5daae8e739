"""A relay before a server: it keeps what clients send, may let it come late, and can be cut."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit


class Relay:
    """`url` is the server's address, `delay` the seconds that everything takes to it and back."""

    def __init__(self, url: str, delay: float = 0.0) -> None:
        self._url = url
        self._place = urlsplit(url)
        self._delay = delay
        self._writers: list[asyncio.StreamWriter] = []
        self._server: asyncio.Server | None = None
        self.sent = bytearray()

    async def serve(self) -> str:
        """The address of the relay."""
        self._server = await asyncio.start_server(self._join, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        return self._url.replace(f":{self._place.port}", f":{port}")

    def close(self) -> None:
        self.cut()
        if self._server is not None:
            self._server.close()

    def cut(self) -> None:
        """End all connections; what is on its way is lost."""
        writers, self._writers = self._writers, []
        for each in writers:
            each.transport.abort()

    async def _join(self, client: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        try:
            made = await asyncio.open_connection(self._place.hostname, self._place.port)
        except OSError:
            # The server is away, and whoever asks is to see it so.
            answers.transport.abort()
            return
        self._writers += [answers, made[1]]
        await asyncio.gather(self._pass(client, made[1], True), self._pass(made[0], answers, False))

    async def _pass(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, from_client: bool
    ) -> None:
        loop = asyncio.get_running_loop()
        try:
            while data := await source.read(1 << 16):
                if from_client:
                    self.sent += data
                if self._delay:
                    loop.call_later(self._delay, _write, target, data)
                else:
                    target.write(data)
        except OSError:
            pass
        await asyncio.sleep(2 * self._delay)
        target.close()


def _write(target: asyncio.StreamWriter, data: bytes) -> None:
    if not target.is_closing():
        target.write(data)
