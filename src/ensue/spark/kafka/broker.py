"""A Kafka broker of one node, for trials and tests.

It needs Java and the jars of `jars`, and listens on free ports of the loopback interface. Its data
lie in a temporary folder that is deleted when it stops. It is the real Kafka, in KRaft mode, with
one replica and no security.
"""

from __future__ import annotations

import base64
import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from ensue.errors import EnsueError
from ensue.spark.kafka.jars import fetch, java

BROKER = "org.apache.kafka:kafka_2.13:4.1.0"
LOOPBACK = "127.0.0.1"
_LONGEST_START_SECONDS = 300
_ATTEMPTS = 3
# A trial is over before the compiler of hot code would have paid for itself.
_JVM = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true")
# Kills the broker when the pipe to its owner closes, which it does even if the owner is killed.
_GUARD = """
exec 3<&0
"$@" </dev/null & broker=$!
(cat <&3 >/dev/null; kill -9 $broker 2>/dev/null) &
wait $broker
"""
_PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller}
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller}
advertised.listeners=PLAINTEXT://{host}:{port}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs={folder}/data
num.partitions={partitions}
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""


class BrokerError(EnsueError):
    """The broker did not start; the message has the end of its log."""


class TrialBroker:
    """`with TrialBroker() as broker:` gives `broker.servers`, as `127.0.0.1:41234`.

    A topic is created, with `partitions` partitions, when it is first written to. `die` and
    `revive` simulate an outage. `properties` is the text of its settings.
    """

    properties = _PROPERTIES

    def __init__(self, partitions: int = 2) -> None:
        self._partitions = partitions
        self._folder: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._command: list[str] = []
        self.servers = ""

    def start(self) -> Self:
        """Raises `UsageError` if Java or the jars are missing, and `BrokerError` if it fails."""
        jars = fetch([BROKER], with_dependencies=True)
        said = ""
        for _ in range(_ATTEMPTS):
            self._folder = Path(tempfile.mkdtemp(prefix="ensue-kafka-"))
            # Another process may take the port between the check and the start.
            port, controller = _free_ports(2)
            if self._begin(os.pathsep.join(map(str, jars)), port, controller):
                return self
            said = self._said()
            self.stop()
        raise BrokerError(f"the Kafka broker did not start; the last that it said:\n{said}")

    def die(self) -> None:
        """Kill the broker; its data stay on disk."""
        process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            process.stdin.close()
            process.wait()

    def revive(self) -> None:
        """After `die`: start the broker again at its address. Raises `BrokerError` if it fails."""
        if not self._run():
            said = self._said()
            self.stop()
            raise BrokerError(f"the Kafka broker did not come back; the last it said:\n{said}")

    def stop(self) -> None:
        # Nothing of a trial is kept, so that it need not be shut down in order.
        self.die()
        folder, self._folder = self._folder, None
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _begin(self, classpath: str, port: int, controller: int) -> bool:
        assert self._folder is not None
        properties = self._folder / "server.properties"
        properties.write_text(
            self.properties.format(
                host=LOOPBACK,
                port=port,
                controller=controller,
                folder=self._folder,
                partitions=self._partitions,
            )
        )
        cluster = base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=")
        # An id that begins with a dash would be taken for an option.
        formatting = ["kafka.tools.StorageTool", "format", f"--cluster-id=k{cluster[1:]}"]
        formatting += ["--config", str(properties)]
        command = [java(), *_JVM, "-cp", classpath]
        with (self._folder / "log").open("ab") as log:
            try:
                subprocess.run(
                    [*command, *formatting],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    timeout=_LONGEST_START_SECONDS,
                    check=True,
                )
            except subprocess.SubprocessError:
                return False
        self.servers = f"{LOOPBACK}:{port}"
        self._command = [*command, "kafka.Kafka", str(properties)]
        return self._run()

    def _run(self) -> bool:
        """Start the prepared broker; whether it answers."""
        assert self._folder is not None
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _GUARD, "guard", *self._command],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                # Ctrl-C reaches the owner of the broker only, which then stops it.
                start_new_session=True,
            )
        return self._answers(int(self.servers.rpartition(":")[2]))

    def _said(self) -> str:
        assert self._folder is not None
        return (self._folder / "log").read_text(errors="replace")[-2000:]

    def _answers(self, port: int) -> bool:
        assert self._process is not None
        deadline = time.monotonic() + _LONGEST_START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            with socket.socket() as probe:
                probe.settimeout(1)
                if probe.connect_ex((LOOPBACK, port)) == 0:
                    return True
            time.sleep(0.1)
        return False


def _free_ports(count: int) -> list[int]:
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind((LOOPBACK, 0))
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()
