"""Sites that are saved and begin again in the middle of anything put out what one machine does."""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from ensue.engine.timing.agreeing import Dissent
from ensue.errors import SnapshotError
from ensue.federation.placement import Simulation, SiteRun, place
from ensue.federation.placement.snapshots import saved

from .agreement import as_lines, of_one_machine
from .random_trials import Trial, trial

BLOCK = 20


def written(run: SiteRun) -> bytes:
    return saved.write(saved.Attached("", run.saved(), None, [], [], 0, 0, Dissent()))


class Restarting(Simulation):
    """Before every step some sites are saved, written, read and put back."""

    restarts = 0

    def _deliver(self, everything: bool = False) -> bool:
        draw = Random(self._now)
        for name, run in self.sites.items():
            if draw.random() < 0.3:
                again = saved.read(written(run))
                self.sites[name] = SiteRun.restored(self.placement, name, again.site)
                self.restarts += 1
        return super()._deliver(everything)


def restarting(drawn: Trial, delay: int) -> list[str]:
    placement = place(drawn.library.checked, drawn.sites)
    simulation = Restarting(placement, delay=delay, beat=3, wire=True, seed=drawn.seed)
    return as_lines(simulation.run(drawn.events))


@pytest.mark.parametrize("first", range(0, 80, BLOCK))
def test_saved_sites_go_on_as_if_nothing_had_been(first: int) -> None:
    for seed in range(first, first + BLOCK):
        drawn = trial(seed)

        assert restarting(drawn, delay=seed % 4) == of_one_machine(drawn), str(drawn)


def test_bytes_that_are_no_site_are_refused() -> None:
    drawn = trial(1)
    placement = place(drawn.library.checked, drawn.sites)
    data = written(SiteRun(placement, placement.sites.names[0]))

    for wrong in (b"", data[:-1], data.replace(b"ensue-site", b"ensue-xxxx")):
        with pytest.raises(SnapshotError):
            saved.read(wrong)


def test_a_site_of_another_version_is_refused_with_both_numbers() -> None:
    drawn = trial(1)
    placement = place(drawn.library.checked, drawn.sites)
    data = written(SiteRun(placement, placement.sites.names[0]))
    kind, version, *rest = msgspec.msgpack.decode(data)

    with pytest.raises(SnapshotError, match="has version 3, and this version of ensue reads"):
        saved.read(msgspec.msgpack.encode([kind, version + 1, *rest]))
