"""The handshake: each end of a connection proves its identity before any other message.

    caller    Hello(nonce)                       nothing of itself yet
    listener  Challenge(nonce, proof)            it knows the secret
    caller    Introduction(channel, ..., proof)  so does the caller
    listener  Introduction(channel, ..., proof)  the session begins

A proof is an HMAC-SHA256 by the shared secret over both nonces, the role and the message, so that
none can be replayed, turned round or altered. Without a secret proofs are empty; certificates are
then checked by TLS before. With certificates, the name of the channel (its id up to `#`) has to be
one of the names in the certificate, secret or not. In come frames, out go frames; bytes are moved
in `connection`.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ensue.channel.links.faults import LinkFault, LinkFaultError
from ensue.channel.links.tcp.protection import names_of
from ensue.channel.links.tcp.wire import PROTOCOL, Challenge, Frame, Hello, Introduction, encode

NONCE_BYTES = 32


class Handshake:
    """One side of a handshake. `certificate` is the other side's, or None."""

    def __init__(
        self,
        is_caller: bool,
        secret: bytes | None,
        entropy: Callable[[int], bytes],
        certificate: Mapping[str, Any] | None = None,
    ) -> None:
        self._is_caller = is_caller
        self._secret = secret
        self._certificate = certificate
        self._nonce = entropy(NONCE_BYTES)
        self._other_nonce: bytes | None = None

    def hello(self) -> Hello:
        """The first frame, of the caller."""
        return Hello(PROTOCOL, self._nonce)

    def receive(self, frame: Frame) -> Challenge | Introduction | None:
        """Check a frame of the other side.

        Returns the challenge to send, or an introduction that has been verified; None where the
        caller is to introduce itself.
        """
        if isinstance(frame, Introduction) and self._other_nonce is not None:
            self._check_introduction(frame)
            return frame
        expected = Challenge if self._is_caller else Hello
        if not isinstance(frame, expected) or self._other_nonce is not None:
            raise LinkFaultError(LinkFault.UNEXPECTED)
        if frame.protocol != PROTOCOL:
            raise LinkFaultError(LinkFault.OTHER_PROTOCOL)
        self._other_nonce = frame.nonce
        if isinstance(frame, Challenge):
            self._verify(frame.proof, b"challenge", not self._is_caller)
            return None
        return Challenge(PROTOCOL, self._nonce, self._proof(b"challenge", self._is_caller))

    def introduce(self, introduction: Introduction) -> Introduction:
        """Add the proof to this side's introduction."""
        said = _said(introduction)
        return msgspec.structs.replace(introduction, proof=self._proof(said, self._is_caller))

    def _check_introduction(self, introduction: Introduction) -> None:
        self._verify(introduction.proof, _said(introduction), not self._is_caller)
        if self._certificate is not None:
            name = introduction.channel.rpartition("#")[0]
            if name not in names_of(self._certificate):
                raise LinkFaultError(LinkFault.WRONG_NAME)

    def _proof(self, said: bytes, by_caller: bool) -> bytes:
        if self._secret is None:
            return b""
        nonces = (self._nonce, self._other_nonce or b"")
        caller, listener = nonces if self._is_caller else reversed(nonces)
        role = b"caller" if by_caller else b"listener"
        text = encode(("ensue link", PROTOCOL, role, caller, listener, said))
        return hmac.digest(self._secret, text, "sha256")

    def _verify(self, proof: bytes, said: bytes, by_caller: bool) -> None:
        if not hmac.compare_digest(proof, self._proof(said, by_caller)):
            raise LinkFaultError(LinkFault.UNAUTHENTICATED)


def _said(introduction: Introduction) -> bytes:
    return encode(msgspec.structs.replace(introduction, proof=b""))
