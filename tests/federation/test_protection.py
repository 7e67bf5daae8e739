"""TLS and credentials of real servers, and secrets that stay secret."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from ensue.errors import LinkError
from ensue.events.event import Event
from ensue.federation.adapters import adapter_class
from ensue.federation.adapters.base import ANYTHING, Outgoing, Service
from ensue.federation.configuration import read_settings
from tests.servers.messaging import Broker, Mosquitto, Nats, Redis
from tests.servers.programs import MissingServerError, program

trustme = pytest.importorskip("trustme")

PASSWORD = "s3cret-of-ours"


class ProtectedMosquitto(Mosquitto):
    def prepare(self) -> None:
        write_certificates(self.folder)
        passwords = self.folder / "passwords"
        subprocess.run(
            [program("mosquitto_passwd"), "-b", "-c", str(passwords), "ensue", PASSWORD], check=True
        )
        passwords.chmod(0o644)
        (self.folder / "mosquitto.conf").write_text(
            f"listener {self.port} 127.0.0.1\nallow_anonymous false\npassword_file {passwords}\n"
            f"cafile {self.folder}/authority.pem\ncertfile {self.folder}/certificate.pem\n"
            f"keyfile {self.folder}/key.pem\n"
        )

    @property
    def url(self) -> str:
        return f"mqtts://127.0.0.1:{self.port}"


class ProtectedRedis(Redis):
    def prepare(self) -> None:
        write_certificates(self.folder)

    def command(self) -> Sequence[str]:
        place = ("--port", "0", "--tls-port", str(self.port), "--bind", "127.0.0.1")
        files = [
            *("--tls-cert-file", f"{self.folder}/certificate.pem"),
            *("--tls-key-file", f"{self.folder}/key.pem"),
            *("--tls-ca-cert-file", f"{self.folder}/authority.pem", "--tls-auth-clients", "no"),
        ]
        asked = ("--requirepass", PASSWORD, "--save", "")
        return [program("redis-server"), *place, *files, *asked]

    def answers(self) -> bool:
        return Broker.answers(self)

    @property
    def url(self) -> str:
        return f"rediss://127.0.0.1:{self.port}"


class ProtectedNats(Nats):
    def prepare(self) -> None:
        write_certificates(self.folder)

    def command(self) -> Sequence[str]:
        files = (f"--tlscert={self.folder}/certificate.pem", f"--tlskey={self.folder}/key.pem")
        return [*super().command(), "--tls", *files, "--user", "ensue", "--pass", PASSWORD]

    @property
    def url(self) -> str:
        return f"tls://127.0.0.1:{self.port}"


def write_certificates(folder: Path) -> None:
    authority = trustme.CA()
    made = authority.issue_cert("127.0.0.1", "localhost")
    authority.cert_pem.write_to_path(folder / "authority.pem")
    made.private_key_pem.write_to_path(folder / "key.pem")
    made.cert_chain_pems[0].write_to_path(folder / "certificate.pem")
    for each in folder.glob("*.pem"):
        each.chmod(0o644)


PROTECTED: dict[str, Callable[[], Broker]] = {
    "mqtt": ProtectedMosquitto,
    "redis": ProtectedRedis,
    "nats": ProtectedNats,
}


@pytest.mark.parametrize("kind", PROTECTED)
def test_a_protected_server_is_reached_with_all_that_it_asks_for(kind: str) -> None:
    server = PROTECTED[kind]()
    try:
        server.start()
    except MissingServerError as error:
        pytest.skip(str(error))
    found = adapter_class(kind)

    def adapter(**options: Any) -> Any:
        user = {} if kind == "redis" else {"user": "ensue"}
        made = found.options_type(**user, **options)
        return found(Service("s", kind, server.url, "a.b", gateway="g", options=made))

    async def story() -> None:
        authority = str(server.folder / "authority.pem")
        one = adapter(password=PASSWORD, authority=authority)
        await one.connect()
        await one.listen([ANYTHING])
        await one.publish([Outgoing(Event.of("T", time=0))])
        await one.close()
        for wrong in (
            {"password": "wrong-and-secret", "authority": authority},
            {"password": PASSWORD},
        ):
            other = adapter(**wrong)
            with pytest.raises(LinkError) as told:
                await other.connect()
            assert wrong["password"] not in str(told.value)
            await other.close()

    try:
        asyncio.run(story())
    finally:
        server.stop()
        shutil.rmtree(server.folder, ignore_errors=True)


def test_secrets_are_put_in_and_never_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENSUE_TEST_SECRET", PASSWORD)
    (tmp_path / "user").write_text("ensue\n")
    tables = {
        "gateway": {"name": "g"},
        "service": [
            {
                "name": "a",
                "kind": "mqtt",
                "url": "mqtt://u:${env:ENSUE_TEST_SECRET}@127.0.0.1:1",
                "password": "${env:ENSUE_TEST_SECRET}",
                "user": f"${{file:{tmp_path / 'user'}}}",
            }
        ],
    }
    settings = read_settings(tables)

    assert settings.services[0].options.password == PASSWORD
    assert settings.services[0].options.user == "ensue"
    assert PASSWORD not in repr(settings)
