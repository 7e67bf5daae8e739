"""TLS, client certificates and credentials of real servers, and secrets that stay secret.

Every kind is reached with all that its server asks for. Where one thing is wrong, the link says in
a sentence what, and shows no secret.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import ssl
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ensue.errors import EnsueError, UsageError
from ensue.events.event import Event
from ensue.federation.adapters import adapter_class
from ensue.federation.adapters.base import ANYTHING, Adapter, Outgoing, Service, broken
from ensue.federation.adapters.inbox import MOST_CONTROL, MOST_CONTROL_BYTES, ControlInbox
from ensue.federation.adapters.memory.adapter import MemoryAdapter
from ensue.federation.configuration import read_settings
from ensue.federation.gateway import Gateway
from ensue.federation.links.link import ServiceLink
from tests.servers.programs import MissingServerError, free_port, skip_as_missing

pytest.importorskip("trustme")

from tests.servers.protected import (
    PASSWORD,
    PROTECTED,
    USER,
    Certificates,
    Protected,
    kafka_properties,
)

WRONG_PASSWORD = "wrong and secret"
SERVER_OF = {"nats-jetstream": "nats", "redis-pubsub": "redis", "proximity": "redis"}
KINDS = ("mqtt", "redis", "redis-pubsub", "proximity", "nats", "nats-jetstream", "amqp", "kafka")
SCHEMES = {"mqtt": "mqtts", "redis": "rediss", "nats": "tls", "amqp": "amqps", "kafka": "kafkas"}
WORDS = {
    "authority": r"certificate|ssl|self.signed",
    "name": r"certificate|hostname|host name|ssl",
    "certificate": r"certificate|ssl|tls|closed|lost|reset|broken|no server|eof|peer|read",
    "password": r"authori|authentic|credential|password|access_refused|login",
}
"""What a sentence speaks of when one thing is wrong. A server of TLS 1.3 that misses a certificate
hangs up after the handshake, and the client cannot always tell why."""


@dataclass
class Target:
    url: str
    certificates: Certificates


@pytest.fixture(scope="module")
def target() -> Iterator[Callable[[str], Target]]:
    """`target("mqtt")` is the running server of a kind. With CI=true a missing one is a failure."""
    started: dict[str, Protected] = {}
    brokers: list[Any] = []
    found: dict[str, Target] = {}

    def start(kind: str) -> Target:
        name = SERVER_OF.get(kind, kind)
        if name not in found:
            try:
                found[name] = start_kafka() if name == "kafka" else start_server(name)
            except (MissingServerError, EnsueError) as error:
                skip_as_missing(f"there is no server for `{kind}`: {error}")
        return found[name]

    def start_server(name: str) -> Target:
        made = started[name] = PROTECTED[name]()
        made.start()
        return Target(made.url, made.certificates)

    def start_kafka() -> Target:
        pytest.importorskip("pyspark", reason="the `spark` extra is not installed")
        from ensue.spark.kafka.broker import TrialBroker

        folder = Path(os.environ.get("TMPDIR", "/tmp")) / f"ensue-certificates-{os.getpid()}"
        files = Certificates(folder)
        broker = TrialBroker()
        broker.properties = kafka_properties(files)
        brokers.append(broker)
        broker.start()
        return Target(f"kafkas://{broker.servers}", files)

    yield start
    for each in started.values():
        each.stop()
    for each in brokers:
        each.stop()
    if "kafka" in found:
        shutil.rmtree(found["kafka"].certificates.authority.parent, ignore_errors=True)


def right(found: Target) -> dict[str, Any]:
    files = found.certificates
    return {
        "url": found.url,
        "user": USER,
        "password": PASSWORD,
        "authority": str(files.authority),
        "certificate": str(files.client),
        "key": str(files.client_key),
    }


def wrong(found: Target, what: str, folder: Path) -> dict[str, Any]:
    """All that a server asks for, with one mistake."""
    given = right(found)
    match what:
        case "authority":
            given["authority"] = str(Certificates(folder / "other").authority)
        case "name":
            given["url"] = found.url.replace("127.0.0.1", "localhost")
        case "certificate":
            del given["certificate"], given["key"]
        case "password":
            given["password"] = WRONG_PASSWORD
    return given


def adapter_of(kind: str, given: dict[str, Any], gateway: str = "g") -> Adapter:
    options = {key: value for key, value in given.items() if key != "url"}
    found = adapter_class(kind)
    if kind == "amqp":
        options["exchange"] = "fanout"
    made = found.options_type(**options)
    return found(Service("s", kind, given["url"], f"a.{kind}", gateway=gateway, options=made))


async def round_trip(one: Adapter, other: Adapter) -> None:
    """An event that one adapter publishes reaches the other."""
    for each in (one, other):
        await each.connect()
    await one.listen([ANYTHING])
    event = Event.of("T", time=0, id="1")
    await other.publish([Outgoing(event)])
    async with asyncio.timeout(20):
        came = await one.receive()
    assert [each.event and each.event.id for each in came] == ["1"]
    await one.acknowledge([each.token for each in came])
    for each in (one, other):
        await each.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_protected_server_is_reached_with_all_that_it_asks_for(
    kind: str, target: Callable[[str], Target]
) -> None:
    """A server of each kind starts with certificates and accounts; RabbitMQ takes ten seconds."""
    given = right(target(kind))

    asyncio.run(round_trip(adapter_of(kind, given), adapter_of(kind, given, "other")))


@pytest.mark.parametrize("what", WORDS)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_wrong_is_said_without_the_secret(
    kind: str, what: str, target: Callable[[str], Target], tmp_path: Path
) -> None:
    given = wrong(target(kind), what, tmp_path)
    said = asyncio.run(last_error({"kind": kind, **given}))

    assert said.startswith("service `s`: cannot connect: ")
    assert re.search(WORDS[what], said, re.IGNORECASE), said
    assert given["password"] not in said
    assert "Traceback" not in said
    assert "\n" not in said


async def last_error(table: dict[str, Any]) -> str:
    """What the link of a gateway says that cannot connect."""
    tables = {"gateway": {"name": "g"}, "service": [{"name": "s", **table}]}
    gateway = Gateway.from_config(tables)
    starting = asyncio.create_task(gateway.start())
    try:
        async with asyncio.timeout(30):
            while not (said := gateway.status()[0]["last_error"]):
                await asyncio.sleep(0.02)
    finally:
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        await gateway.stop()
    return str(said)


@pytest.mark.parametrize("days", [(-20, -1), (1, 20)], ids=["expired", "not yet valid"])
@pytest.mark.parametrize("kind", ["mqtt", "redis", "nats", "amqp", "kafka"])
def test_a_server_whose_certificate_is_out_of_its_dates_is_not_believed(
    kind: str, days: tuple[int, int], tmp_path: Path
) -> None:
    if kind == "kafka":
        pytest.importorskip("confluent_kafka")
    import trustme

    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    begin, end = (datetime.now(UTC) + timedelta(days=each) for each in days)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1", not_before=begin, not_after=end).configure_cert(context)

    async def story() -> tuple[str, bytes]:
        heard = bytearray()

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(OSError):
                if kind == "nats":
                    told = b'INFO {"server_id":"x","version":"2.10.0","tls_required":true}\r\n'
                    writer.write(told)
                    await writer.start_tls(context)
                heard.extend(await reader.read(1000))
            writer.close()

        tls = None if kind == "nats" else context
        server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls)
        place = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        given = {"url": f"{SCHEMES[kind]}://{place}", "authority": str(tmp_path / "authority.pem")}
        try:
            return await last_error({"kind": kind, "password": PASSWORD, "user": USER, **given}), (
                bytes(heard)
            )
        finally:
            server.close()

    said, heard = asyncio.run(story())

    assert said.startswith("service `s`: cannot connect: ")
    assert re.search(r"certificate|ssl", said, re.IGNORECASE), said
    # Not a byte of what is secret was sent.
    assert heard == b""


def test_kafka_knows_other_mechanisms_of_sasl(target: Callable[[str], Target]) -> None:
    found = target("kafka")
    admin = pytest.importorskip("confluent_kafka.admin")
    plain: Any = adapter_of("kafka", right(found))
    change = admin.UserScramCredentialUpsertion(
        "other",
        admin.ScramCredentialInfo(admin.ScramMechanism.SCRAM_SHA_256, 4096),
        b"another secret",
    )
    client = admin.AdminClient(plain._settings())
    for each in client.alter_user_scram_credentials([change]).values():
        each.result(20)
    given = right(found) | {"user": "other", "password": "another secret"}
    given["mechanism"] = "SCRAM-SHA-256"

    asyncio.run(round_trip(adapter_of("kafka", given), adapter_of("kafka", given, "other")))


# --- HTTP, where the gateway is the server ---------------------------------------------------


TOKEN = "a token of ours"


def http_pair(files: Certificates, scheme: str, **changed: Any) -> tuple[Adapter, Adapter]:
    """A service that listens, and one that connects to it."""
    port = free_port()
    listens = {
        "listen": f"127.0.0.1:{port}",
        "certificate": str(files.server),
        "key": str(files.server_key),
        "admit": TOKEN,
    }
    connects = {
        "url": f"{scheme}://127.0.0.1:{port}",
        "authority": str(files.authority),
        "token": TOKEN,
    }
    return adapter_of("http", {"url": "", **listens}), adapter_of("http", connects | changed)


@pytest.mark.parametrize("scheme", ["https", "wss"])
def test_a_gateway_takes_events_over_tls_from_whom_it_admits(scheme: str, tmp_path: Path) -> None:
    listener, other = http_pair(Certificates(tmp_path), scheme)

    async def story() -> None:
        await listener.connect()
        await listener.listen([ANYTHING])
        await other.connect()
        sending = asyncio.create_task(other.publish([Outgoing(Event.of("T", time=0, id="1"))]))
        async with asyncio.timeout(20):
            came = await listener.receive()
            await listener.acknowledge([each.token for each in came])
            await sending
        assert [each.event and each.event.id for each in came] == ["1"]
        for each in (other, listener):
            await each.close()

    asyncio.run(story())


@pytest.mark.parametrize("what", ["authority", "name", "token"])
@pytest.mark.parametrize("scheme", ["https", "wss"])
def test_what_is_wrong_over_http_is_said_without_the_secret(
    scheme: str, what: str, tmp_path: Path
) -> None:
    files = Certificates(tmp_path)
    listener, good = http_pair(files, scheme)
    changed: dict[str, Any] = {"url": good.service.url, "token": TOKEN}
    changed["authority"] = str(files.authority)
    match what:
        case "authority":
            changed["authority"] = str(Certificates(tmp_path / "other").authority)
        case "name":
            changed["url"] = changed["url"].replace("127.0.0.1", "localhost")
        case "token":
            changed["token"] = WRONG_PASSWORD

    async def story() -> str:
        await listener.connect()
        await listener.listen([ANYTHING])
        try:
            return await last_error({"kind": "http", **changed})
        finally:
            await listener.close()

    said = asyncio.run(story())

    assert said.startswith("service `s`: ")
    assert re.search("credentials are refused" if what == "token" else "certificate", said, re.I)
    assert changed["token"] not in said


# --- secrets ---------------------------------------------------------------------------------


def test_secrets_are_put_in_and_never_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENSUE_TEST_SECRET", PASSWORD)
    (tmp_path / "user").write_text("ensue\n")
    reference = "${env:ENSUE_TEST_SECRET}"
    tables = {
        "gateway": {"name": "g"},
        "service": [
            {
                "name": "a",
                "kind": "mqtt",
                "url": "mqtt://u:${env:ENSUE_TEST_SECRET}@127.0.0.1:1",
                "password": reference,
                "user": f"${{file:{tmp_path / 'user'}}}",
            },
            {"name": "b", "kind": "kafka", "settings": {"sasl.password": reference}},
        ],
    }
    settings = read_settings(tables)

    assert settings.services[0].options.password == PASSWORD
    assert settings.services[0].options.user == "ensue"
    assert settings.services[1].options.settings["sasl.password"] == PASSWORD
    assert PASSWORD not in repr(settings)


@pytest.mark.parametrize(
    ("kind", "url", "options"),
    [
        ("mqtt", "mqtt://u:a%20secret@h", {}),
        ("nats", "nats://a%20secret@h", {}),
        ("redis", "redis://h?password=a+secret", {}),
        ("mqtt", "mqtt://h", {"password": "a secret"}),
        ("nats", "nats://h", {"token": "a secret"}),
        ("http", "http://h", {"admit": "a secret"}),
        ("kafka", "kafka://h", {"settings": {"ssl.key.password": "a secret"}}),
    ],
)
def test_what_a_driver_says_is_shown_without_secrets(
    kind: str, url: str, options: dict[str, Any]
) -> None:
    made = adapter_class(kind).options_type(**options)
    service = Service("s", kind, url, options=made)
    told = broken(service, "cannot connect", ValueError(f"refused: `a secret` at {url}"))

    assert "a secret" not in str(told)
    assert "a%20secret" not in str(told)


@pytest.mark.parametrize("password", ["pa55/w0rd", "pa55?w0rd", "pa55#w0rd"])
@pytest.mark.parametrize("kind", ["mqtt", "redis", "http", "nats", "amqp", "kafka"])
def test_a_password_that_cuts_its_address_short_is_refused_and_not_shown(
    kind: str, password: str
) -> None:
    tables = {
        "gateway": {"name": "g"},
        "service": [{"name": "a", "kind": kind, "url": f"{kind}://u:{password}@127.0.0.1:1"}],
    }
    with pytest.raises(UsageError) as told:
        read_settings(tables)

    assert "%2F" in str(told.value)
    assert "pa55" not in str(told.value)
    assert "w0rd" not in str(told.value)


@pytest.mark.parametrize(
    "url", ["kafka://a:1,b:2", "a:1,b:2", "http://a:80/x@y", "mqtt://u:p@a:1/x@y", "nats://a,b:1/@"]
)
def test_addresses_of_several_servers_and_with_paths_are_taken(url: str) -> None:
    assert Service("s", "kafka", url).url == url


def test_control_messages_wait_in_bounded_numbers_and_bytes() -> None:
    many, large = ControlInbox(), ControlInbox()
    for _ in range(2 * MOST_CONTROL):
        many.put(b"x")
        large.put(b"x" * 1_000_000)

    async def taken() -> list[bytes]:
        found = await large.take(10)
        large.put(b"room again")
        return found

    assert len(many) == MOST_CONTROL
    assert len(large) * 1_000_000 <= MOST_CONTROL_BYTES
    before = len(large)
    assert len(asyncio.run(taken())) == 10
    assert len(large) == before - 9


def test_a_drivers_own_mistake_shows_no_secret() -> None:
    class Broken(MemoryAdapter):
        async def connect(self) -> None:
            raise ValueError(f"cannot read `{PASSWORD}` in `{self.service.url}`")

    service = Service("s", "memory", f"memory://u:{PASSWORD}@x")

    async def story() -> str:
        link = ServiceLink(service, Broken)
        link.start(None)  # type: ignore[arg-type]
        while not link.counts.last_error:
            await asyncio.sleep(0.01)
        await link.stop(0.1)
        return link.counts.last_error

    told = asyncio.run(story())
    assert "ValueError" in told
    assert PASSWORD not in told
