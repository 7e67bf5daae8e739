"""The installed databases, for measurements: each on a free loopback port, with an empty database.

Settings are those of the packages, so that what is acknowledged is on the disk, but for the memory,
the port and the folder. Under root a server runs as a user without rights.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from ensue.errors import UsageError
from ensue_bench.brokers import SECONDS_TO_START, answers, free_port

KINDS: Final = ("postgresql", "mysql")
_UNPRIVILEGED: Final = "nobody"


@contextmanager
def database(kind: str) -> Iterator[str]:
    """The address of an empty database. Raises `UsageError` where its server is not installed."""
    with TemporaryDirectory(prefix="ensue-bench-", ignore_cleanup_errors=True) as name:
        folder, port = Path(name), free_port()
        user = _UNPRIVILEGED if os.getuid() == 0 else None
        if user is not None:
            shutil.chown(folder, user)
        prepare, serve = _commands(kind, folder, port)
        with (folder / "log").open("wb") as log:
            done = subprocess.run(prepare, stdout=log, stderr=log, user=user, cwd="/", check=False)
            if done.returncode:
                raise _failed(kind, folder)
            process = subprocess.Popen(serve, stdout=log, stderr=log, user=user, cwd="/")
        try:
            if not answers(process, port):
                raise _failed(kind, folder)
            yield _created(kind, folder, port)
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()


def _commands(kind: str, folder: Path, port: int) -> tuple[Sequence[str], Sequence[str]]:
    """What makes the data folder, and what serves it."""
    data = folder / "data"
    if kind == "postgresql":
        places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
        options = ("-U", "ensue", "--auth=trust", "-E", "UTF8", "--locale=C")
        settings = ("listen_addresses=127.0.0.1", f"unix_socket_directories={folder}")
        given = [part for each in settings for part in ("-c", each)]
        return (
            [_program("initdb", places), "-D", str(data), *options],
            [_program("postgres", places), "-D", str(data), "-p", str(port), *given],
        )
    places = [Path("/usr/sbin"), Path("/usr/bin")]
    return (
        [
            _program("mariadb-install-db", places), "--no-defaults", f"--datadir={data}",
            "--auth-root-authentication-method=normal", "--skip-test-db",
        ],
        [
            _program("mariadbd", places), "--no-defaults", f"--datadir={data}", f"--port={port}",
            "--bind-address=127.0.0.1", f"--socket={folder / 'socket'}",
            f"--pid-file={folder / 'pid'}", "--skip-name-resolve",
        ],
    )  # fmt: skip


def _program(name: str, places: Sequence[Path]) -> str:
    path = os.pathsep.join([*map(str, places), os.environ.get("PATH", "")])
    found = shutil.which(name, path=path)
    if found is None:
        raise UsageError(
            f"`{name}` is not installed: install the server, or leave this store out of `--stores`"
        )
    return found


def _failed(kind: str, folder: Path) -> UsageError:
    said = (folder / "log").read_text("utf-8", "replace")[-1000:]
    return UsageError(f"the server for `{kind}` has not started; what it said:\n{said}")


def _created(kind: str, folder: Path, port: int) -> str:
    """The address of a database that is made here; a server may answer before it is ready."""
    until = time.monotonic() + SECONDS_TO_START
    while True:
        try:
            return _create(kind, folder, port)
        except Exception:
            if time.monotonic() > until:
                raise _failed(kind, folder) from None
            time.sleep(0.2)


def _create(kind: str, folder: Path, port: int) -> str:
    if kind == "postgresql":
        import psycopg

        address = f"host=127.0.0.1 port={port} user=ensue dbname=postgres"
        with psycopg.connect(address, autocommit=True, connect_timeout=5) as connection:
            connection.execute("CREATE DATABASE bench")
        return f"postgresql://ensue@127.0.0.1:{port}/bench"
    import pymysql

    with (
        pymysql.connect(unix_socket=str(folder / "socket"), user="root") as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("CREATE DATABASE bench")
        cursor.execute("CREATE USER bench@'127.0.0.1'")
        cursor.execute("GRANT ALL ON bench.* TO bench@'127.0.0.1'")
    return f"mysql://bench@127.0.0.1:{port}/bench"
