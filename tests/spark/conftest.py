"""One Spark session for all tests of this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .elsewhere import Elsewhere

pyspark = pytest.importorskip("pyspark", reason="the `spark` extra is not installed")

from pyspark.sql import SparkSession  # noqa: E402

from .session import shared_session  # noqa: E402


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = shared_session()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Elsewhere]:
    """What a program told in a session of the kind that is asked for; it runs once for each."""
    from .elsewhere import run

    return cache(lambda session: run(tmp_path_factory.mktemp("elsewhere"), session))
