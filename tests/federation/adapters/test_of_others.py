"""Kinds of service that other packages bring, by entry points: the example, against PostgreSQL."""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from ensue.errors import UsageError
from ensue.events.event import Event
from ensue.federation.adapters import Outgoing, Service, adapter_class, kinds
from ensue.federation.adapters.memory.hub import hub
from ensue.federation.gateway import Gateway
from ensue.federation.requesting import kind_of
from ensue.testing.adapters import AdapterContract
from tests.servers.databases import PROVIDERS, MissingServerError
from tests.servers.programs import skip_as_missing

EXAMPLE = Path(__file__).parents[3] / "examples" / "postgres-adapter"
_numbers = count(1)

Install = Callable[..., None]


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    """The address of an empty database of PostgreSQL."""
    server = PROVIDERS["postgresql"]()
    try:
        server.start()
    except MissingServerError as error:
        skip_as_missing(f"there is no PostgreSQL: {error}")
    yield server.empty_url()
    server.stop()


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts a package with an entry point where Python finds it, as pip would."""

    def install(kind: str, value: str, package: str = "ensue-other") -> None:
        folder = tmp_path / f"{package.replace('-', '_')}-1.0.dist-info"
        folder.mkdir(parents=True)
        metadata = f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n"
        (folder / "METADATA").write_text(metadata)
        (folder / "entry_points.txt").write_text(f"[ensue.adapters]\n{kind} = {value}\n")
        importlib.invalidate_caches()

    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(EXAMPLE))
    return install


@pytest.fixture
def postgres(install: Install) -> None:
    install("postgres", "ensue_postgres:PostgresAdapter", "ensue-postgres")


@pytest.mark.usefixtures("postgres")
class TestPostgres(AdapterContract):
    @pytest.fixture(autouse=True)
    def real(self, database: str) -> None:
        number = f"{os.getpid()}.{next(_numbers)}"
        self._service = Service(f"s{number}", "postgres", database, f"suite.{number}")

    def service(self) -> Service:
        return self._service

    def unreachable(self) -> Service:
        return Service("s", "postgres", "postgresql://nobody@127.0.0.1:1/none")


@pytest.mark.usefixtures("postgres")
def test_a_gateway_reads_a_service_of_a_kind_of_others(database: str) -> None:
    async def story() -> None:
        mark = f"others{os.getpid()}"
        gateway = Gateway.from_config(
            {
                "gateway": {"name": mark, "settling": 0.1},
                "service": [
                    {"name": "base", "kind": "postgres", "url": database, "address": "ours"},
                    {"name": "store", "kind": "memory", "url": f"memory:{mark}"},
                ],
                "subscribe": [{"at": "store", "where": "speed > 50"}],
            }
        )
        await gateway.start()
        client = adapter_class("postgres")(Service("client", "postgres", database, "ours"))
        await client.connect()
        try:
            events = [
                Event.of("Speed", time=n, id=str(n), source="car", data={"speed": 10 * n})
                for n in range(10)
            ]
            await client.publish([Outgoing(each) for each in events])
            async with asyncio.timeout(30):
                while len(hub(mark).events) < 4:
                    await asyncio.sleep(0.05)
        finally:
            await client.close()
            await gateway.stop()
        assert [each.id for each in hub(mark).events] == ["6", "7", "8", "9"]

    asyncio.run(story())


@pytest.mark.usefixtures("postgres")
def test_a_kind_of_others_is_listed_and_told_by_its_addresses() -> None:
    assert kinds()[-1] == "postgres"
    assert kind_of("postgresql://127.0.0.1/x", None) == "postgres"


def test_the_page_shows_the_example_as_it_is() -> None:
    page = (EXAMPLE.parents[1] / "docs" / "adapters" / "writing-one.md").read_text("utf-8")

    for file in ("ensue_postgres.py", "tests/test_contract.py"):
        assert (EXAMPLE / file).read_text("utf-8") in page


def test_a_kind_that_is_misspelt_is_refused_with_those_of_others(install: Install) -> None:
    install("postgres", "ensue_postgres:PostgresAdapter")

    with pytest.raises(UsageError, match="no kind `postgre`: did you mean `postgres`"):
        adapter_class("postgre")


def test_a_package_that_cannot_be_loaded_is_named(install: Install) -> None:
    install("broken", "no_such_module:Adapter", "ensue-broken")

    with pytest.raises(UsageError, match="`broken` comes with the package `ensue-broken`, which"):
        adapter_class("broken")


def test_a_class_that_is_no_adapter_is_refused(install: Install) -> None:
    install("strange", "collections:Counter", "ensue-strange")

    with pytest.raises(UsageError, match=r"`collections:Counter` is no subclass of `ensue\."):
        adapter_class("strange")


def test_a_kind_of_ensue_stays_its_own(install: Install) -> None:
    install("mqtt", "collections:Counter")

    assert adapter_class("mqtt").__module__.startswith("ensue.")


def test_a_package_that_no_gateway_uses_is_not_imported(install: Install, tmp_path: Path) -> None:
    (tmp_path / "slow_one.py").write_text("raise SystemExit")
    install("slow", "slow_one:Adapter")

    assert "slow" in kinds()
    assert "slow_one" not in sys.modules
