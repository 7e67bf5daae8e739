"""Connections of callers that mean harm: endless heads, trickled bodies, answers never read."""

from __future__ import annotations

import base64
import logging
import os
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import msgspec
import pytest

from tests.server.live import Live, reading, serving, settings

TEXT, BINARY, PING, CONTINUED = 1, 2, 9, 0


@pytest.fixture(scope="module")
def live() -> Iterator[Live]:
    with serving(settings()) as running:
        running.put()
        yield running


IMPATIENT: dict[str, Any] = {"head_seconds": 0.5, "body_seconds": 0.5, "unread_seconds": 0.5}


@pytest.fixture(scope="module")
def impatient() -> Iterator[Live]:
    with serving(settings(**IMPATIENT)) as running:
        yield running


@contextmanager
def dialled(live: Live, receive_buffer: int | None = None) -> Iterator[socket.socket]:
    made = socket.socket()
    if receive_buffer is not None:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    made.settimeout(10)
    host, _, port = live.url.removeprefix("http://").partition(":")
    made.connect((host, int(port)))
    try:
        yield made
    finally:
        made.close()


def answer_to(live: Live, *parts: bytes) -> bytes:
    """What the server says until it closes the connection."""
    with dialled(live) as caller:
        try:
            for part in parts:
                caller.sendall(part)
        except (BrokenPipeError, ConnectionResetError):
            pass
        return everything(caller)


def everything(caller: socket.socket) -> bytes:
    found = b""
    try:
        while got := caller.recv(65_536):
            found += got
    except ConnectionResetError:
        pass
    return found


HEAD = b"POST /v1/events HTTP/1.1\r\nHost: localhost\r\n"
ENDLESS_HEADS = {
    "a header": (HEAD + b"X: ", *[b"a" * 10_000] * 20),
    "a target": (b"GET /", *[b"a" * 10_000] * 20),
    "headers": (HEAD, *[b"A: b\r\n" * 2_000] * 20),
    "trailers": (
        HEAD + b"Transfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\n",
        b"1\r\n[\r\n0\r\n",
        *[b"A: b\r\n" * 2_000] * 20,
    ),
}


@pytest.mark.parametrize("parts", ENDLESS_HEADS.values(), ids=ENDLESS_HEADS)
def test_a_head_without_end_is_cut_off(live: Live, parts: tuple[bytes, ...]) -> None:
    answer = answer_to(live, *parts)

    assert answer == b"" or answer.split()[1] in (b"400", b"431")


def head_of(kind: str, size: int) -> bytes:
    """A request whose head has so many bytes."""
    upgrade = (
        "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    )
    path, more = {
        "one header": ("/health", "X: {}\r\n"),
        "many headers": ("/health", "A: b\r\n" * 5_000 + "X: {}\r\n"),
        "a path": ("/{}", ""),
        "a query": ("/health?{}", ""),
        "a WebSocket": ("/v1/events/socket", f"{upgrade}X: {{}}\r\n"),
    }[kind]
    close = "" if "WebSocket" in kind else "Connection: close\r\n"
    form = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{close}{more}\r\n"
    return form.format("x" * (size - len(form) + 2)).encode()


@pytest.mark.parametrize("parts", [1, 7])
@pytest.mark.parametrize("kind", ["one header", "many headers", "a path", "a query", "a WebSocket"])
def test_a_head_may_have_64_kib_and_not_one_byte_more(live: Live, kind: str, parts: int) -> None:
    for size, is_allowed in ((65_536, True), (65_537, False), (66_000, False), (130_000, False)):
        request = head_of(kind, size)
        assert len(request) == size
        step = -(-size // parts)
        with dialled(live) as caller:
            with suppress(OSError):
                for begin in range(0, size, step):
                    caller.sendall(request[begin : begin + step])
            status = caller.recv(64).split()[1]
        assert (status != b"431") is is_allowed, (size, status)


SMUGGLED = {
    "length and chunks": b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET",
    "chunks and length": b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\nGET",
    "two lengths": b"Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde",
    "a length with a sign": b"Content-Length: +4\r\n\r\nabcd",
    "a length that is no number": "Content-Length: \u00b2\r\n\r\nabcd".encode("latin-1"),
    "a length of many digits": b"Content-Length: " + b"9" * 5_000 + b"\r\n\r\nabcd",
    "an unknown coding": b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "a chunk that is too long": b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
    "a header with a space": b"Content-Length : 4\r\n\r\nabcd",
    "a folded header": b"X: a\r\n b: c\r\nContent-Length: 0\r\n\r\n",
    "a bare line feed": b"X: a\nY: b\r\nContent-Length: 0\r\n\r\n",
    "a zero byte": b"X: a\x00b\r\nContent-Length: 0\r\n\r\n",
    "two hosts": b"Host: evil.example\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
}


@pytest.mark.parametrize("rest", SMUGGLED.values(), ids=SMUGGLED)
def test_a_request_that_may_be_read_in_two_ways_is_refused(
    live: Live, rest: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    answer = answer_to(live, HEAD + rest)

    assert answer.split()[1] in (b"400", b"413", b"415"), answer
    assert answer.count(b"HTTP/1.1 ") == 1
    assert not [each for each in caplog.records if each.exc_info]


REFUSED_EARLY = {
    "no request": (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", 400),
    "a head that is too large": (HEAD + b"A: b\r\n" * 12_000, 431),
    "a packed body": (HEAD + b"Connection: close\r\nContent-Encoding: gzip\r\n\r\n", 415),
    "no WebSocket": (
        b"GET /v1/events/socket HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        426,
    ),
}


@pytest.mark.parametrize(("request_", "status"), REFUSED_EARLY.values(), ids=REFUSED_EARLY)
def test_what_is_refused_before_it_is_read_is_told_as_a_problem(
    live: Live, request_: bytes, status: int
) -> None:
    head, _, body = answer_to(live, request_).partition(b"\r\n\r\n")

    assert b"application/problem+json" in head
    assert msgspec.json.decode(body)["status"] == status
    assert head.split()[1] == str(status).encode()


def test_a_caller_that_takes_its_time_is_cut_off(impatient: Live) -> None:
    body = b"Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n["
    for begun in (b"", b"GET / HT", HEAD + b"X: y\r\n", HEAD + body):
        with dialled(impatient) as caller:
            caller.sendall(begun)
            began = time.monotonic()
            assert everything(caller) == b""
            assert time.monotonic() - began < 5


def test_a_body_that_trickles_in_is_cut_off(impatient: Live) -> None:
    with dialled(impatient) as caller:
        kind = b"Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n"
        caller.sendall(HEAD + kind)

        def trickle() -> None:
            for _ in range(200):
                caller.sendall(b" ")
                time.sleep(0.02)

        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            trickle()


def test_more_connections_than_the_limit_are_turned_away() -> None:
    with serving(settings(connections=8)) as live:
        idle = [socket.create_connection(live.process.address) for _ in range(8)]  # type: ignore[arg-type]
        time.sleep(0.2)
        answer = answer_to(live, b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        for each in idle:
            each.close()
        time.sleep(0.2)
        after = live.client.get("/health")

    assert b"503" in answer[:20] or answer == b""
    assert after.status_code == 200


def test_thousands_of_requests_at_once_on_a_connection_are_cut_off(live: Live) -> None:
    request = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    answer = answer_to(live, request * 5_000)

    assert answer.count(b"HTTP/1.1") < 5_000


# --- WebSockets ---------------------------------------------------------------------------------


@contextmanager
def opened(live: Live, path: str = "/v1/events/socket", **given: int) -> Iterator[socket.socket]:
    key = base64.b64encode(os.urandom(16)).decode()
    with dialled(live, **given) as caller:
        caller.sendall(
            f"GET {path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade"
            f"\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        head = b""
        while b"\r\n\r\n" not in head and (got := caller.recv(1)):
            head += got
        assert head.split()[1] == b"101", head
        yield caller


def frame(kind: int, data: bytes = b"", is_last: bool = True) -> bytes:
    """A frame of a client; its mask is zero."""
    length = len(data)
    size = bytes([0x80 | length]) if length < 126 else b"\xfe" + struct.pack("!H", length)
    return bytes([(0x80 if is_last else 0) | kind]) + size + bytes(4) + data


def close_code(caller: socket.socket) -> int | None:
    """The code of the close frame that the server sends, behind whatever else."""
    found = everything(caller)
    at = found.find(b"\x88")
    return None if at < 0 else int(struct.unpack("!H", found[at + 2 : at + 4])[0])


HOSTILE_FRAMES = {
    "fragments without end": (
        frame(TEXT, b"a", False) + frame(CONTINUED, b"", False) * 5_000,
        1009,
    ),
    "a message that is too large": (
        frame(TEXT, b"a" * 60_000, False) * 1 + frame(0, b"a" * 60_000),
        1009,
    ),
    "text that is no UTF-8": (frame(TEXT, b"\xff\xfe"), 1007),
    "a reserved bit": (b"\xf1\x80" + bytes(4), 1002),
    "an unknown kind": (b"\x83\x80" + bytes(4), 1002),
    "a frame without a mask": (b"\x81\x01a", 1002),
    "a long ping": (b"\x89\xfe" + struct.pack("!H", 200) + bytes(204), 1002),
    "a ping in parts": (b"\x09\x80" + bytes(4), 1002),
    "a continuation of nothing": (frame(CONTINUED, b"a"), 1002),
    "a length of eight exabytes": (b"\x81\xff" + b"\x7f" + b"\xff" * 7 + bytes(4), 1009),
}


@pytest.mark.parametrize("name", HOSTILE_FRAMES)
def test_a_damaged_frame_ends_the_socket_with_a_code(
    live: Live, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    sent, code = HOSTILE_FRAMES[name]
    with opened(live) as caller:
        caller.sendall(sent)
        assert close_code(caller) == code
    assert not [each for each in caplog.records if each.exc_info]


def test_a_socket_whose_address_is_too_long_is_refused_without_a_traceback(
    live: Live, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    target = b"/v1/events/socket?filter=" + b"a" * 70_000
    upgrade = (
        b" HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Key: " + base64.b64encode(bytes(16)) + b"\r\nSec-WebSocket-Version: 13\r\n"
    )
    many = b"".join(b"X%d: y\r\n" % number for number in range(9_000))
    for request in (
        b"GET " + target + upgrade + b"\r\n",
        b"GET /v1/events/socket" + upgrade + many + b"\r\n",
        b"GET /v1/events/\xff" + upgrade + b"\r\n",
        b"POST /v1/events/socket" + upgrade + b"\r\n",
    ):
        answer = answer_to(live, request)
        assert answer == b"" or answer.split()[1] in (b"400", b"405", b"414", b"431"), answer
    assert not [each for each in caplog.records if each.exc_info]


def test_pings_whose_answers_are_not_read_cost_no_memory(live: Live) -> None:
    sent = 300_000
    with opened(live, receive_buffer=4_096) as caller:
        caller.settimeout(20)
        for _ in range(sent // 1_000):
            caller.sendall(frame(PING, b"x" * 125) * 1_000)
        caller.settimeout(1)
        got = 0
        try:
            while data := caller.recv(1 << 20):
                got += len(data)
        except TimeoutError:
            pass

    # What the kernel holds, and 64 KiB of the server; not all 38 MB.
    assert got < sent * 127 / 3


def test_subscribers_that_never_read_do_not_keep_their_places() -> None:
    with serving(settings(subscribers=2, event_bytes=2**20, **IMPATIENT)) as live:
        stream = b"GET /v1/events?after=0 HTTP/1.1\r\nHost: localhost\r\n\r\n"
        with (
            opened(live, "/v1/events/socket?after=0", receive_buffer=4_096),
            dialled(live, receive_buffer=4_096) as listener,
        ):
            listener.sendall(stream)
            text = "x" * 500_000
            for number in range(24):
                live.publish([{**reading(number, "a", 20), "data": {"sensor": text, "celsius": 1}}])
            limit = time.monotonic() + 20
            while live.client.get("/v1/figures").json()["subscribers"]:
                assert time.monotonic() < limit
                time.sleep(0.05)
            with opened(live, "/v1/events/socket?after=0") as reader:
                first = reader.recv(4)
    assert first
