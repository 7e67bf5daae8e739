"""Servers that ask for TLS, a client certificate and a password, with certificates of their own.

`PROTECTED` names them. Each trusts one authority, has a certificate for `127.0.0.1` alone, so that
`localhost` is a wrong name for it, and knows one user. `certificates` has what clients need.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import trustme
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from tests.servers.messaging import Broker, Mosquitto, Nats, RabbitMQ, Redis
from tests.servers.programs import program

USER, PASSWORD = "ensue", "s3cret of ours"


class Certificates:
    """The files of an authority, of a server at `127.0.0.1` and of a client."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True, parents=True)
        authority = trustme.CA()
        self.authority = folder / "authority.pem"
        authority.cert_pem.write_to_path(self.authority)
        self.server, self.server_key = _issue(authority, folder, "server", "127.0.0.1")
        self.client, self.client_key = _issue(authority, folder, "client", "ensue@example.org")
        for each in (folder, *folder.iterdir()):
            each.chmod(0o755 if each.is_dir() else 0o644)


def _issue(authority: trustme.CA, folder: Path, name: str, identity: str) -> tuple[Path, Path]:
    made = authority.issue_cert(identity, common_name=USER)
    certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
    certificate.write_bytes(b"".join(each.bytes() for each in made.cert_chain_pems))
    # Kafka takes keys in this form alone, and the others take it too.
    private = load_pem_private_key(made.private_key_pem.bytes(), None)
    key.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return certificate, key


class Protected(Broker):
    """What protected servers share: certificates, and an address without secrets."""

    def prepare(self) -> None:
        self.folder.chmod(0o755)
        self.certificates = Certificates(self.folder / "certificates")

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def answers(self) -> bool:
        return Broker.answers(self)


class ProtectedMosquitto(Protected, Mosquitto):
    scheme = "mqtts"

    def prepare(self) -> None:
        Protected.prepare(self)
        passwords, files = self.folder / "passwords", self.certificates
        made = [program("mosquitto_passwd"), "-b", "-c", str(passwords), USER, PASSWORD]
        subprocess.run(made, check=True)
        passwords.chmod(0o644)
        (self.folder / "mosquitto.conf").write_text(
            f"listener {self.port} 127.0.0.1\nallow_anonymous false\npassword_file {passwords}\n"
            f"cafile {files.authority}\ncertfile {files.server}\nkeyfile {files.server_key}\n"
            "require_certificate true\n"
        )


class ProtectedRedis(Protected, Redis):
    scheme = "rediss"

    def prepare(self) -> None:
        super().prepare()
        digest = hashlib.sha256(PASSWORD.encode()).hexdigest()
        users = f"user {USER} on #{digest} ~* &* +@all\nuser default off\n"
        (self.folder / "users.acl").write_text(users)
        (self.folder / "users.acl").chmod(0o644)

    def command(self) -> Sequence[str]:
        place = ("--port", "0", "--tls-port", str(self.port), "--bind", "127.0.0.1")
        if not self.port:
            return [program("redis-server")]
        files = self.certificates
        return [
            *(program("redis-server"), *place, "--save", ""),
            *("--tls-cert-file", str(files.server), "--tls-key-file", str(files.server_key)),
            *("--tls-ca-cert-file", str(files.authority), "--tls-auth-clients", "yes"),
            *("--aclfile", str(self.folder / "users.acl")),
        ]


class ProtectedNats(Protected, Nats):
    scheme = "tls"

    def command(self) -> Sequence[str]:
        if not self.port:
            return super().command()
        files = self.certificates
        return [
            *(*super().command(), "--tlsverify", f"--tlscert={files.server}"),
            *(f"--tlskey={files.server_key}", f"--tlscacert={files.authority}"),
            *("--user", USER, "--pass", PASSWORD),
        ]


class ProtectedRabbitMQ(Protected, RabbitMQ):
    scheme = "amqps"

    def prepare(self) -> None:
        Protected.prepare(self)
        RabbitMQ.prepare(self)
        files = self.certificates
        (self.folder / "rabbitmq.conf").write_text(
            f"listeners.tcp = none\nlisteners.ssl.1 = 127.0.0.1:{self.port}\n"
            f"ssl_options.cacertfile = {files.authority}\nssl_options.certfile = {files.server}\n"
            f"ssl_options.keyfile = {files.server_key}\nssl_options.verify = verify_peer\n"
            "ssl_options.fail_if_no_peer_cert = true\nlog.console = true\n"
            f"default_user = {USER}\ndefault_pass = {PASSWORD}\n"
        )

    def environment(self) -> Mapping[str, str]:
        return RabbitMQ.environment(self)


PROTECTED: dict[str, type[Protected]] = {
    "mqtt": ProtectedMosquitto,
    "redis": ProtectedRedis,
    "nats": ProtectedNats,
    "amqp": ProtectedRabbitMQ,
}

KAFKA_PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{{host}}:{{controller}}
listeners=SASL_SSL://{{host}}:{{port}},CONTROLLER://{{host}}:{{controller}}
advertised.listeners=SASL_SSL://{{host}}:{{port}}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL
controller.listener.names=CONTROLLER
inter.broker.listener.name=SASL_SSL
sasl.mechanism.inter.broker.protocol=PLAIN
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256
listener.name.sasl_ssl.plain.sasl.jaas.config=\\
  org.apache.kafka.common.security.plain.PlainLoginModule required \\
  username="{user}" password="{password}" user_{user}="{password}";
listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config=\\
  org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.sasl_ssl.ssl.client.auth=required
ssl.keystore.type=PEM
ssl.keystore.location={keys}
ssl.truststore.type=PEM
ssl.truststore.location={authority}
log.dirs={{folder}}/data
num.partitions={{partitions}}
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""


def kafka_properties(files: Certificates) -> str:
    """Settings of a Kafka broker that asks for certificates and SASL, for `TrialBroker`."""
    keys = files.server.with_name("kafka.pem")
    keys.write_bytes(files.server_key.read_bytes() + files.server.read_bytes())
    return KAFKA_PROPERTIES.format(
        user=USER, password=PASSWORD, keys=keys, authority=files.authority
    )
