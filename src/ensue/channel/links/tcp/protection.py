"""Authentication of the other end of a link: a shared secret, certificates, or loopback only.

Listening or dialling beyond loopback is refused unless the link has a secret (checked by challenge
and response in `handshake`) or certificates (mutual TLS), or is declared `unprotected`.
`docs/security.md` describes the guarantees of each.
"""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

from ensue.errors import UsageError

SHORTEST_SECRET = 16
"""In bytes. A short secret could be found by trying guesses against a recorded handshake."""


@dataclass(frozen=True, slots=True)
class Protection:
    """How the other end of a link is authenticated.

    `secret` is known to both ends. `certificate` and `key` belong to this end, and `authority`
    contains the authorities that may have signed the certificate of the other end. Each is a file
    in PEM form, and all three have to be given together.
    """

    secret: bytes | str | None = None
    certificate: str | PathLike[str] | None = None
    key: str | PathLike[str] | None = None
    authority: str | PathLike[str] | None = None
    unprotected: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.secret, bytes | str | None):
            raise UsageError(f"the `secret` of a link is text or bytes; given is `{self.secret!r}`")
        secret = self.secret_bytes
        if secret is not None and len(secret) < SHORTEST_SECRET:
            raise UsageError(
                f"the `secret` of a link has at least {SHORTEST_SECRET} bytes; given are"
                f" {len(secret)}: make one with `python -c 'import secrets;"
                " print(secrets.token_urlsafe())'`"
            )
        files = {"certificate": self.certificate, "key": self.key, "authority": self.authority}
        missing = [f"`{name}`" for name, given in files.items() if given is None]
        if 0 < len(missing) < len(files):
            raise UsageError(
                "a link with certificates needs `certificate`, `key` and `authority`; missing is"
                f" {' and '.join(missing)}"
            )

    @property
    def secret_bytes(self) -> bytes | None:
        return self.secret.encode() if isinstance(self.secret, str) else self.secret

    @property
    def has_certificates(self) -> bool:
        return self.certificate is not None

    def check_host(self, host: str) -> None:
        """Refuse an address beyond loopback if the other end is not authenticated."""
        is_checked = self.secret is not None or self.has_certificates
        if not (is_checked or self.unprotected or is_loopback(host)):
            raise UsageError(
                f"a link at `{host}` can be reached from other machines and needs a `secret`,"
                " or `certificate`, `key` and `authority`; `unprotected=True` lets anybody in"
            )

    def context(self, is_server: bool) -> ssl.SSLContext | None:
        """The TLS context in which both ends show a certificate; None without certificates."""
        if not self.has_certificates:
            return None
        purpose = ssl.PROTOCOL_TLS_SERVER if is_server else ssl.PROTOCOL_TLS_CLIENT
        context = ssl.SSLContext(purpose)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.verify_mode = ssl.CERT_REQUIRED
        try:
            context.load_cert_chain(str(self.certificate), str(self.key))
            context.load_verify_locations(str(self.authority))
        except (OSError, ssl.SSLError) as error:
            raise UsageError(
                f"the certificates of a link cannot be used: {error.strerror or error}; given are"
                f" `{self.certificate}`, `{self.key}` and `{self.authority}`"
            ) from None
        return context


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def names_of(certificate: Mapping[str, Any]) -> Iterator[str]:
    """The names in a certificate, in the form in which `ssl` gives it."""
    for kind, name in certificate.get("subjectAltName", ()):
        if kind in ("DNS", "URI"):
            yield name
    for part in certificate.get("subject", ()):
        for kind, name in part:
            if kind == "commonName":
                yield name
