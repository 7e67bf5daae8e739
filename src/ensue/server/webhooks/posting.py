"""One POST to a webhook, over a connection to an address that was allowed; no redirects."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ssl
from collections.abc import Sequence
from typing import Final

import h11

from ensue.errors import EnsueError
from ensue.server.webhooks.addresses import Network, Target, allowed_addresses
from ensue.version import __version__

TIMEOUT_SECONDS: Final = 10.0
LARGEST_ANSWER: Final = 64 * 1024


class PostError(EnsueError):
    """A delivery that has failed; it is tried again."""


async def post(
    target: Target, body: bytes, secret: str | None, networks: Sequence[Network]
) -> None:
    """Post a batch of CloudEvents. Raises `PostError`, or `UsageError` for the address."""
    addresses = await allowed_addresses(target, networks)
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            status = await _exchange(target, addresses[0], body, secret)
    except TimeoutError:
        raise PostError(f"no answer within {TIMEOUT_SECONDS:g} s") from None
    except (OSError, ssl.SSLError, h11.ProtocolError, ValueError) as error:
        raise PostError(f"{type(error).__name__}: {error}") from None
    if not 200 <= status < 300:
        raise PostError(f"the answer was {status}, and 2xx is needed")


async def _exchange(target: Target, address: str, body: bytes, secret: str | None) -> int:
    context = ssl.create_default_context() if target.is_tls else None
    name = target.host if target.is_tls else None
    reader, writer = await asyncio.open_connection(
        address, target.port, ssl=context, server_hostname=name
    )
    try:
        connection = h11.Connection(h11.CLIENT)
        writer.write(_request(connection, target, body, secret))
        await writer.drain()
        seen = 0
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                data = await reader.read(4096)
                seen += len(data)
                if seen > LARGEST_ANSWER:
                    raise PostError(f"the answer is larger than {LARGEST_ANSWER:,} bytes")
                connection.receive_data(data)
            elif isinstance(event, h11.Response):
                return int(event.status_code)
            elif isinstance(event, h11.ConnectionClosed):
                raise PostError("the connection was closed without an answer")
    finally:
        writer.close()


def _request(connection: h11.Connection, target: Target, body: bytes, secret: str | None) -> bytes:
    headers = [
        ("Host", target.host_header),
        ("User-Agent", f"ensue/{__version__}"),
        ("Content-Type", "application/cloudevents-batch+json"),
        ("Content-Length", str(len(body))),
        ("Connection", "close"),
    ]
    if secret is not None:
        digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
        headers.append(("Ensue-Signature", f"sha256={digest}"))
    request = h11.Request(method="POST", target=target.path, headers=headers)
    parts = [
        connection.send(request),
        connection.send(h11.Data(data=body)),
        connection.send(h11.EndOfMessage()),
    ]
    return b"".join(each for each in parts if each)
