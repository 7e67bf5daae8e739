"""The stores that every test of this room runs over, each empty."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.servers.databases import PROVIDERS, Database, MissingServerError
from tests.servers.programs import skip_as_missing

EMBEDDED = ("memory", "sqlite", "parquet")
STORES = (*EMBEDDED, *PROVIDERS)
LASTING = tuple(each for each in STORES if each != "memory")


@pytest.fixture(scope="session")
def servers() -> Iterator[Callable[[str], Database]]:
    """Starts each server when it is first asked for."""
    running: dict[str, Database] = {}

    def server(name: str) -> Database:
        if name not in running:
            database = PROVIDERS[name]()
            try:
                database.start()
            except MissingServerError as error:
                skip_as_missing(f"there is no server of {name}: {error}")
            running[name] = database
        return running[name]

    yield server
    for each in running.values():
        each.stop()


@pytest.fixture
def address(tmp_path: Path, servers: Callable[[str], Database]) -> Callable[[str], str]:
    """The address of an empty history in a store of some kind."""

    def of(store: str) -> str:
        match store:
            case "memory":
                return "memory:"
            case "sqlite":
                return f"sqlite:{tmp_path / 'history.db'}"
            case "parquet":
                return f"parquet:{tmp_path / 'history'}"
            case _:
                return servers(store).empty_url()

    return of


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, address: Callable[[str], str]) -> str:
    """The address of an empty history, in every kind of store."""
    return address(request.param)


@pytest.fixture(params=LASTING)
def lasting_url(request: pytest.FixtureRequest, address: Callable[[str], str]) -> str:
    """The address of an empty history that is there again when it is opened once more."""
    return address(request.param)
