"""The handshake: each end of a connection proves its identity before any other message.

    caller    Hello(nonce)                       reveals nothing about the caller
    listener  Challenge(nonce, proof)            proves that the listener knows the secret
    caller    Introduction(channel, ..., proof)  proves that the caller knows the secret
    listener  Introduction(channel, ..., proof)  begins the session

A proof is an HMAC-SHA256 with the shared secret over both nonces, the role and the message, so that
it can be neither replayed, nor reflected to its sender, nor altered. Without a secret, proofs are
empty; TLS has then checked certificates before. With certificates, the name of the channel (its id
up to `#`) has to be one of the names in the certificate, with or without a secret. Frames come in
and go out; `connection` reads and writes the bytes.
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
        """The first frame, sent by the caller."""
        return Hello(PROTOCOL, self._nonce)

    def receive(self, frame: Frame) -> Challenge | Introduction | None:
        """Check a frame of the other side.

        Returns the challenge to send next, or the verified introduction of the other side, or None
        if the caller has to introduce itself next.
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
        message = _without_proof(introduction)
        return msgspec.structs.replace(introduction, proof=self._proof(message, self._is_caller))

    def _check_introduction(self, introduction: Introduction) -> None:
        self._verify(introduction.proof, _without_proof(introduction), not self._is_caller)
        if self._certificate is not None:
            name = introduction.channel.rpartition("#")[0]
            if name not in names_of(self._certificate):
                raise LinkFaultError(LinkFault.WRONG_NAME)

    def _proof(self, message: bytes, by_caller: bool) -> bytes:
        if self._secret is None:
            return b""
        nonces = (self._nonce, self._other_nonce or b"")
        caller, listener = nonces if self._is_caller else reversed(nonces)
        role = b"caller" if by_caller else b"listener"
        text = encode(("ensue link", PROTOCOL, role, caller, listener, message))
        return hmac.digest(self._secret, text, "sha256")

    def _verify(self, proof: bytes, message: bytes, by_caller: bool) -> None:
        if not hmac.compare_digest(proof, self._proof(message, by_caller)):
            raise LinkFaultError(LinkFault.UNAUTHENTICATED)


def _without_proof(introduction: Introduction) -> bytes:
    return encode(msgspec.structs.replace(introduction, proof=b""))
