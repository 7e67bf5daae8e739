"""The adapters that come along keep the contract of adapters, against the real service of each."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ensue.federation.adapters import Service
from ensue.testing.adapters import AdapterContract
from tests.federation.conftest import StartServer

from .services import KINDS, service_of

WITHOUT_A_SERVER = ("memory", "http", "channel", "broker", "proximity", "zenoh")


@pytest.mark.parametrize("kind", KINDS)
class TestAdapters(AdapterContract):
    @pytest.fixture(autouse=True)
    def real(self, kind: str, request: pytest.FixtureRequest, server: StartServer) -> None:
        self._service = service_of(kind, server, request)

    def service(self) -> Service:
        return self._service

    def unreachable(self) -> Service | None:
        if self._service.kind in WITHOUT_A_SERVER:
            return None
        address = self._service.url.rpartition(":")[0] + ":1"
        return replace(self._service, url=address)
