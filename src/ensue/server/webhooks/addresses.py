"""Which addresses a webhook may lead to: public ones, and networks that the operator has named.

In comes a URL; out go the addresses that its host stands for, all of them allowed, or a
`UsageError`. It is asked when a webhook is made and again at every connection, which then goes to
an address that was looked at: a name that leads elsewhere in between gains nothing.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from ensue.errors import UsageError

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
TRANSLATED: Final = ipaddress.IPv6Network("64:ff9b::/96")
"""Where a network without version 4 reaches addresses of it (RFC 6052)."""
GLOBAL_UNICAST: Final = ipaddress.IPv6Network("2000::/3")
"""All of version 6 that is given to public networks. What lies outside leads into the machine, its
site, or to an address of version 4 in an older spelling (`::127.0.0.1`, `::ffff:0:127.0.0.1`)."""
NEVER: Final = (
    # Protocol assignments, where a cloud has its metadata, and relays that are out of use:
    # older versions of Python take them for public.
    ipaddress.IPv4Network("192.0.0.0/24"),
    ipaddress.IPv4Network("192.88.99.0/24"),
)
HOST: Final = re.compile(r"[A-Za-z0-9._-]{1,253}|[0-9a-fA-F:.]{2,45}")
CONTROL: Final = re.compile(r"[\x00-\x20\x7f]")


@dataclass(frozen=True)
class Target:
    """Where a webhook leads, taken apart."""

    host: str
    port: int
    path: str
    is_tls: bool

    @property
    def host_header(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.is_tls else 80) else f"{host}:{self.port}"


def target_of(url: str) -> Target:
    """The parts of a URL. Raises `UsageError`."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise UsageError(f"`{url[:200]}` is no URL: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"`{url[:200]}` is no URL for a webhook: write `https://host/path`")
    if parts.username is not None or parts.password is not None:
        raise UsageError("a URL of a webhook holds no password: use its `secret`, which signs")
    is_tls = parts.scheme == "https"
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if not path.isascii() or CONTROL.search(path):
        raise UsageError(f"`{url[:200]}` is no URL: write other characters as `%XX`")
    return Target(_host(parts.hostname, url), port or (443 if is_tls else 80), path, is_tls)


def _host(name: str, url: str) -> str:
    """A host as it stands in a request. Raises `UsageError`."""
    try:
        host = name if name.isascii() else name.encode("idna").decode()
    except UnicodeError:
        host = ""
    if not HOST.fullmatch(host):
        raise UsageError(f"`{url[:200]}` is no URL for a webhook: its host is no name or address")
    return host


async def allowed_addresses(target: Target, networks: Sequence[Network]) -> list[str]:
    """The addresses of a target. Raises `UsageError` if one of them is not allowed."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"the host `{target.host}` cannot be found: {reason}") from None
    addresses = list(dict.fromkeys(str(each[4][0]).partition("%")[0] for each in found))
    for each in addresses:
        if not is_allowed(each, networks):
            raise UsageError(
                f"`{target.host}` leads to `{each}`, which is no public address: webhooks may reach"
                " such a network only if `[webhooks] networks` names it"
            )
    return addresses


def is_allowed(text: str, networks: Sequence[Network]) -> bool:
    address = ipaddress.ip_address(text)
    if any(address in each for each in networks):
        return True
    if isinstance(address, ipaddress.IPv6Address):
        # An address of version 4 that is written as one of version 6 leads to the former.
        inner = address.ipv4_mapped or address.sixtofour
        if address in TRANSLATED:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_allowed(str(inner), networks)
        if address not in GLOBAL_UNICAST:
            return False
    if any(address in each for each in NEVER):
        return False
    return address.is_global and not address.is_multicast
