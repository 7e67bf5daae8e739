"""Python and commands of the pages that start Spark.

They stand apart so that everything else of the documentation is tested without Java. The rest of
these pages, their libraries and golden cases, is tested with all other pages.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.docs.pages import Block, Page, read_pages
from tests.docs.running import commands_agree, python_agrees, write_files
from tests.servers.programs import skip_as_missing
from tests.spark.class_archive import quick_start

END_OF_BLOCK = "--- end of a block ---"


PAGES = [pytest.param(page, id=page.name) for page in read_pages() if page.needs_spark]


@pytest.fixture(autouse=True)
def _a_session_of_its_own() -> Iterator[None]:
    """Each page begins without a session, as its reader does; its commands may leave one."""
    pyspark = pytest.importorskip("pyspark.sql", reason="the `spark` extra is not installed")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        skip_as_missing("Spark needs Java 17, and there is no Java here")
    yield
    session = pyspark.SparkSession.getActiveSession()
    if session is not None:
        session.stop()


@pytest.mark.parametrize("page", PAGES)
def test_a_page_does_and_prints_what_it_says(page: Page, folder: Path) -> None:
    """Takes some 20 seconds a page, most of them to start a session and run its first jobs."""
    blocks = page.of("python")
    if any("TrialBroker" in block.text for block in blocks):
        _need_a_broker()
    write_files(page, folder)

    python_agrees(_run_apart(blocks))
    commands_agree(page.of("console"), folder)


def _run_apart(blocks: Sequence[Block]) -> Iterator[tuple[Block, str]]:
    """Each block with what it prints, in a process: a Java keeps its folder and its settings."""
    if not blocks:
        return
    program = "".join(f"{block.text}\nprint({END_OF_BLOCK!r})\n" for block in blocks)
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env={**os.environ, "SPARK_SUBMIT_OPTS": quick_start(), "PYSPARK_PYTHON": sys.executable},
    )
    assert done.returncode == 0, done.stderr
    printed = done.stdout.split(f"{END_OF_BLOCK}\n")
    yield from zip(blocks, printed[:-1], strict=True)


def _need_a_broker() -> None:
    from ensue.errors import UsageError
    from ensue.spark.kafka.broker import BROKER
    from ensue.spark.kafka.jars import fetch

    try:
        fetch([BROKER], with_dependencies=True)
    except UsageError as error:
        skip_as_missing(f"there is no Kafka broker: {error}")
