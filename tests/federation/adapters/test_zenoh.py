"""Zenoh over TLS: peers of one authority and with known users meet, others do not."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ensue.errors import UsageError
from ensue.events.event import Event
from ensue.federation.adapters import adapter_class
from ensue.federation.adapters.base import ANYTHING, Adapter, Outgoing, Service
from tests.servers.programs import free_port

pytest.importorskip("zenoh")
pytest.importorskip("trustme")

from tests.servers.protected import PASSWORD, USER, Certificates


class Peers:
    """Two peers that meet at one place."""

    def __init__(self, folder: Path) -> None:
        self.files = Certificates(folder / "files")
        self.users = folder / "users"
        self.users.write_text(f"{USER}:{PASSWORD}\n", "utf-8")
        self._url = f"zenohs://127.0.0.1:{free_port()}"

    def peer(self, gateway: str, files: Certificates | None = None, **more: Any) -> Adapter:
        found, files = adapter_class("zenoh"), files or self.files
        options = {
            "authority": str(files.authority),
            "certificate": str(files.server),
            "key": str(files.server_key),
            **more,
        }
        made = found.options_type(**{k: v for k, v in options.items() if v is not None})
        return found(Service("s", "zenoh", self._url, "a.zenoh", gateway=gateway, options=made))


async def crosses(one: Adapter, other: Adapter, patience: float) -> bool:
    try:
        await one.connect()
        await other.connect()
        await other.listen([ANYTHING])
        async with asyncio.timeout(patience):
            while True:
                await one.publish([Outgoing(Event.of("T", time=1, id="1"))])
                try:
                    async with asyncio.timeout(0.5):
                        return bool(await other.receive())
                except TimeoutError:
                    continue
    except TimeoutError:
        return False
    finally:
        await one.close()
        await other.close()


def test_peers_of_one_authority_meet(tmp_path: Path) -> None:
    peers = Peers(tmp_path)

    assert asyncio.run(crosses(peers.peer("one"), peers.peer("other"), 20))


def test_a_peer_of_another_authority_hears_nothing(tmp_path: Path) -> None:
    peers = Peers(tmp_path)
    stranger = peers.peer("other", Certificates(tmp_path / "others"))

    assert not asyncio.run(crosses(peers.peer("one"), stranger, 2))


@pytest.mark.parametrize(("password", "meets"), [(PASSWORD, True), ("wrong", False)])
def test_a_peer_must_be_a_known_user(password: str, meets: bool, tmp_path: Path) -> None:
    peers = Peers(tmp_path)
    users: dict[str, Any] = {"user": USER, "users": str(peers.users)}
    one = peers.peer("one", password=PASSWORD, **users)
    other = peers.peer("other", password=password, **users)

    assert asyncio.run(crosses(one, other, 20 if meets else 2)) is meets


def test_a_peer_over_tls_without_a_certificate_is_told_what_it_needs(tmp_path: Path) -> None:
    peer = Peers(tmp_path).peer("one", certificate=None)

    with pytest.raises(UsageError, match="needs `authority`, `certificate` and `key`"):
        asyncio.run(peer.connect())
