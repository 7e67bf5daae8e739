"""Sites that are saved and begin again in the middle of anything put out what one machine does."""

from __future__ import annotations

import msgspec
import pytest

from ensue.errors import SnapshotError
from ensue.federation.placement import SiteRun, place
from ensue.federation.placement.snapshots import saved

from .agreement import Way, difference, written
from .random_trials import trial

BLOCK = 20


@pytest.mark.parametrize("first", range(0, 80, BLOCK))
def test_saved_sites_go_on_as_if_nothing_had_been(first: int) -> None:
    for seed in range(first, first + BLOCK):
        way = Way("step", delay=seed % 4, beat=3, wire=True, restarts=True)
        found = difference(trial(seed), way)

        assert found is None, str(found)


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
