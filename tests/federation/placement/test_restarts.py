"""Sites whose gateways are killed and come back: matches that were half done are completed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ensue.federation.placement.snapshots.journal import Header, JournalInput, SiteJournal

from .test_gateways import RULES, Plant

GATE, OFFICE = 0, 1


def ids(plant: Plant) -> list[str]:
    return sorted(each.id for each in plant.alarms)


async def happened(plant: Plant, *kinds: str, user: str = "ann") -> None:
    for kind in kinds:
        plant.happen(kind, user)
        await asyncio.sleep(0.01)


def told(work: Any) -> None:
    async def limited() -> None:
        async with asyncio.timeout(90):
            await work

    asyncio.run(limited())


@pytest.mark.parametrize("inputs_before_a_snapshot", [3, 10_000])
def test_half_a_match_survives_the_end_of_each_gateway(
    inputs_before_a_snapshot: int, tmp_path: Path, limit: Callable[..., None]
) -> None:
    limit(inputs_before_a_snapshot=inputs_before_a_snapshot)
    plant = Plant(tmp_path, {"kind": "memory"})

    async def story() -> None:
        await asyncio.gather(*(each.start() for each in plant.gateways))
        await asyncio.sleep(0.5)
        await happened(plant, "Failed", "Failed")
        await asyncio.sleep(0.5)
        await plant.kill(GATE)
        # These wait at their service for the gateway that is away.
        await happened(plant, "Failed", "Entered")
        await asyncio.sleep(0.5)
        await plant.come_back(GATE)
        status = plant.gateways[GATE].site_status()
        assert status is not None
        assert status["begun"] == "from what was saved"
        await asyncio.sleep(3.0)
        await plant.kill(OFFICE)
        await plant.come_back(OFFICE)
        await asyncio.sleep(3.0)
        await happened(plant, "Granted", "Granted")
        await plant.until(lambda: len(plant.alarms) >= len(plant.expected()))
        await asyncio.sleep(0.5)
        await asyncio.gather(*(each.stop() for each in plant.gateways))

        assert len(plant.expected()) == 2
        assert ids(plant) == plant.expected()

    told(story())


def test_a_site_of_another_library_begins_anew_and_says_so(tmp_path: Path) -> None:
    plant = Plant(tmp_path, {"kind": "memory"})

    async def story() -> None:
        await asyncio.gather(*(each.start() for each in plant.gateways))
        await happened(plant, "Failed")
        await asyncio.sleep(0.5)
        await plant.kill(GATE)
        (tmp_path / "rules.cor").write_text(RULES.replace("f{3}", "f{4}"))
        await plant.come_back(GATE)
        status = plant.gateways[GATE].site_status()
        await asyncio.gather(*(each.stop() for each in plant.gateways))

        assert status is not None
        assert status["begun"].endswith("is lost: the library or the sites have changed since")

    told(story())


def test_a_record_that_was_not_written_to_its_end_is_left_out(tmp_path: Path) -> None:
    header = Header("p", "i")
    first = SiteJournal(tmp_path / "x.site")
    first.begin(header)
    first.add(JournalInput("tick", 1))
    first.add(JournalInput("tick", 2))
    first.close()
    log = next(tmp_path.glob("*.log"))
    log.write_bytes(log.read_bytes()[:-1])

    second = SiteJournal(tmp_path / "x.site")
    assert second.inputs(header) == [JournalInput("tick", 1)]
    second.begin(header)
    second.add(JournalInput("tick", 3))
    second.close()
    assert SiteJournal(tmp_path / "x.site").inputs(header) == [
        JournalInput("tick", 1),
        JournalInput("tick", 3),
    ]
