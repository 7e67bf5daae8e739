"""PostgreSQL and MariaDB: a server of each for a whole test session, and empty databases in it.

`PROVIDERS` names them. A provider finds its programs, makes a data folder, starts the server and
waits until it answers; `empty_url` makes one more database. `stop` ends the process that was
started and removes the folder.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from tests.servers.process import Server
from tests.servers.programs import MissingServerError, program

__all__ = ["PROVIDERS", "Database", "MissingServerError"]

PATIENCE = 60.0


class Database(Server):
    """One server. Subclasses say how it is made, started and spoken to."""

    abandoning = signal.SIGKILL

    def __init__(self) -> None:
        super().__init__()
        self._numbers = count(1)

    def start(self) -> None:
        prepare, _ = self.programs()
        self.make_folder()
        with (self.folder / "log").open("ab") as log:
            command = self.prepare_command(prepare)
            subprocess.run(command, stdout=log, stderr=log, check=True, user=self.user, cwd="/")
        self.resume()

    def stop(self) -> None:
        # Nothing of it is read again: it need not be left in order.
        self.ending = self.abandoning
        super().stop()

    def resume(self) -> None:
        _, serve = self.programs()
        self.start_process(self.serve_command(serve), Path("/"))
        self._wait()

    def empty_url(self) -> str:
        """The address of a database that did not exist before."""
        name = f"history_{next(self._numbers)}"
        self.run(f"CREATE DATABASE {name}")
        return self.url(name)

    def _wait(self) -> None:
        until = time.monotonic() + PATIENCE
        while True:
            assert self.process is not None
            ended = self.process.poll() is not None
            try:
                return self.run("SELECT 1")
            except Exception as error:
                if ended or time.monotonic() > until:
                    problem = f"the server does not answer: {error}\n{self.end_of_log}"
                    raise RuntimeError(problem) from error
            time.sleep(0.1)

    def programs(self) -> tuple[str, str]:
        raise NotImplementedError

    def prepare_command(self, program: str) -> Sequence[str]:
        raise NotImplementedError

    def serve_command(self, program: str) -> Sequence[str]:
        raise NotImplementedError

    def run(self, statement: str) -> None:
        raise NotImplementedError

    def url(self, name: str) -> str:
        raise NotImplementedError


class PostgreSQL(Database):
    # Others are not waited for.
    ending = signal.SIGINT
    # An immediate shutdown: if it were killed, its own processes would outlive it for a while.
    abandoning = signal.SIGQUIT

    def programs(self) -> tuple[str, str]:
        folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
        return program("initdb", folders), program("postgres", folders)

    def prepare_command(self, program: str) -> Sequence[str]:
        options = ("-U", "ensue", "--auth=trust", "-E", "UTF8", "--locale=C", "--no-sync")
        return [program, "-D", str(self.folder / "data"), *options]

    def serve_command(self, program: str) -> Sequence[str]:
        settings = ("listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off")
        options = [part for each in settings for part in ("-c", each)]
        return [program, "-D", str(self.folder / "data"), "-p", str(self.port), *options]

    def run(self, statement: str) -> None:
        import psycopg

        address = f"host=127.0.0.1 port={self.port} user=ensue dbname=postgres"
        with psycopg.connect(address, autocommit=True, connect_timeout=5) as connection:
            connection.execute(statement)

    def url(self, name: str) -> str:
        return f"postgresql://ensue@127.0.0.1:{self.port}/{name}"


class MariaDB(Database):
    def programs(self) -> tuple[str, str]:
        folders = [Path("/usr/sbin"), Path("/usr/bin")]
        return program("mariadb-install-db", folders), program("mariadbd", folders)

    def prepare_command(self, program: str) -> Sequence[str]:
        options = ("--auth-root-authentication-method=normal", "--skip-test-db")
        return [program, "--no-defaults", f"--datadir={self.folder / 'data'}", *options]

    def serve_command(self, program: str) -> Sequence[str]:
        return [
            program,
            "--no-defaults",
            f"--datadir={self.folder / 'data'}",
            f"--port={self.port}",
            "--bind-address=127.0.0.1",
            f"--socket={self.folder / 'socket'}",
            f"--pid-file={self.folder / 'pid'}",
            "--skip-name-resolve",
            "--innodb-flush-log-at-trx-commit=2",
            "--innodb-fast-shutdown=2",
        ]

    def run(self, statement: str) -> None:
        import pymysql

        connection = pymysql.connect(host="127.0.0.1", port=self.port, user="root")
        with connection, connection.cursor() as cursor:
            cursor.execute(statement)

    def url(self, name: str) -> str:
        return f"mysql://root@127.0.0.1:{self.port}/{name}"


PROVIDERS: dict[str, type[Database]] = {"postgresql": PostgreSQL, "mariadb": MariaDB}


if __name__ == "__main__":
    server = PROVIDERS[sys.argv[1]]()
    server.start()
    try:
        print(server.empty_url(), flush=True)
        sys.stdin.read()
    finally:
        server.stop()
