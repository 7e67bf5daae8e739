"""Links by TLS: both ends show a certificate, and it has to name their channel."""

from __future__ import annotations

import random
import socket
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme

from ensue.channel import from_toml
from ensue.channel.links.faults import LinkFault
from ensue.channel.links.tcp.protection import Protection
from ensue.errors import UsageError
from tests.channel.links.strangers import Stranger
from tests.channel.making import builder, empty, event, eventually

DATED = ("near", "far")
NOW = datetime.now(UTC)


class Authority:
    """Signs certificates and writes them to files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()
        self._authority = trustme.CA()
        self._authority.cert_pem.write_to_path(folder / "authority.pem")

    def files(self, *names: str, **dates: Any) -> dict[str, Any]:
        """The options of a link of a channel: its certificate for some names, and its dates."""
        signed = self._authority.issue_cert(*names, "127.0.0.1", common_name=names[0], **dates)
        place = self._folder / names[0]
        signed.private_key_pem.write_to_path(place.with_suffix(".key"))
        with place.with_suffix(".pem").open("wb") as file:
            for each in signed.cert_chain_pems:
                file.write(each.bytes())
        return {
            "certificate": place.with_suffix(".pem"),
            "key": place.with_suffix(".key"),
            "authority": self._folder / "authority.pem",
        }


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "ours")


@pytest.mark.parametrize("secret", [None, "a secret besides the certificates"])
def test_channels_with_certificates_of_one_authority_are_linked(
    authority: Authority, secret: str | None
) -> None:
    near, far, got = builder(name="near").done(), builder(name="far").done(), empty()
    far.consumers.connect("one", got.append, "Notify")
    address = far.federation.listen(secret=secret, **authority.files("far"))
    link = near.federation.connect(*address, secret=secret, **authority.files("near"))
    assert link.wait_until_connected("60 s")
    assert eventually(lambda: near.is_wanted(["Notify"], None))
    for number in range(100):
        near.push(event("Notify", n=number, text="x" * 10_000))

    assert eventually(lambda: len(got) == 100)
    near.close()
    far.close()


def test_a_certificate_of_another_authority_is_refused(
    authority: Authority, tmp_path: Path
) -> None:
    near, far = builder(name="near").done(), builder(name="far").done()
    other = Authority(tmp_path / "theirs")
    address = far.federation.listen(**authority.files("far"))
    link = near.federation.connect(*address, backoff="5 ms", **other.files("near"))

    assert eventually(lambda: link.attempts >= 2)
    assert link.last_fault is LinkFault.UNAUTHENTICATED
    assert far.federation.neighbours == ()
    near.close()
    far.close()


@pytest.mark.parametrize("whose", ["near", "far"])
@pytest.mark.parametrize(
    "dates",
    [
        {"not_before": NOW - timedelta(days=20), "not_after": NOW - timedelta(days=1)},
        {"not_before": NOW + timedelta(days=1), "not_after": NOW + timedelta(days=20)},
    ],
    ids=["expired", "not yet valid"],
)
def test_a_certificate_out_of_its_dates_is_refused(
    authority: Authority, whose: str, dates: dict[str, datetime]
) -> None:
    near, far = builder(name="near").done(), builder(name="far").done()
    of = {each: authority.files(each, **(dates if each == whose else {})) for each in DATED}
    address = far.federation.listen(**of["far"])
    link = near.federation.connect(*address, backoff="5 ms", **of["near"])

    assert eventually(lambda: link.attempts >= 2)
    # The side that is shown the certificate refuses it, and says so.
    refusing = far if whose == "near" else near
    assert eventually(lambda: LinkFault.UNAUTHENTICATED in refusing.federation.faults)
    assert far.federation.neighbours == near.federation.neighbours == ()
    near.close()
    far.close()


def test_a_certificate_has_to_name_the_channel_that_shows_it(authority: Authority) -> None:
    near, far = builder(name="near").done(), builder(name="far").done()
    address = far.federation.listen(**authority.files("far"))
    near.federation.connect(*address, backoff="5 ms", **authority.files("somebody-else"))

    assert eventually(lambda: LinkFault.WRONG_NAME in far.federation.faults)
    assert far.federation.neighbours == near.federation.neighbours == ()
    near.close()
    far.close()


def test_a_caller_without_tls_is_sent_away(authority: Authority) -> None:
    far = builder(name="far").done()
    with Stranger(far.federation.listen(**authority.files("far"))) as stranger:
        assert not stranger.introduce()
    far.close()


def test_callers_that_do_not_begin_tls_count_as_callers(authority: Authority) -> None:
    near, far = builder(name="near").done(), builder(name="far").done()
    address = far.federation.listen(callers=3, handshake="1 s", **authority.files("far"))
    silent = [socket.create_connection(address) for _ in range(20)]
    faults = far.federation
    assert eventually(lambda: faults.faults.get(LinkFault.TOO_MANY_CALLERS, 0) == 17)
    # The others are sent away when their time is over, and leave room for callers in earnest.
    link = near.federation.connect(*address, **authority.files("near"))
    assert link.wait_until_connected("60 s")
    for each in silent:
        each.close()
    near.close()
    far.close()


def test_damaged_tls_ends_its_connections_and_nothing_else(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    near, far = builder(name="near").done(), builder(name="far").done()
    address, chance = far.federation.listen(**authority.files("far")), random.Random(5)
    greetings = (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"GET / HTTP/1.1\r\n\r\n", b"")
    for turn in range(100):
        with socket.create_connection(address) as caller, suppress(ConnectionError):
            caller.sendall(greetings[turn % 3] + chance.randbytes(chance.randint(0, 600)))
    link = near.federation.connect(*address, **authority.files("near"))
    assert link.wait_until_connected("60 s")
    assert eventually(lambda: not far.federation._listeners[0]._in_tls_handshake)
    near.close()
    far.close()
    assert not [each for each in caplog.records if each.exc_info]


def test_a_link_with_certificates_may_go_beyond_loopback(authority: Authority) -> None:
    Protection(**authority.files("far")).check_host("0.0.0.0")


def test_part_of_the_files_is_refused(authority: Authority) -> None:
    far, files = builder(name="far").done(), authority.files("far")
    del files["key"]

    with pytest.raises(UsageError, match="missing is `key`"):
        far.federation.listen(**files)
    far.close()


def test_files_that_are_none_are_refused(authority: Authority, tmp_path: Path) -> None:
    far, files = builder(name="far").done(), authority.files("far")

    for broken in ({"key": tmp_path / "nothing"}, {"authority": files["key"]}):
        with pytest.raises(UsageError, match="the certificates of a link cannot be used"):
            far.federation.listen(**(files | broken))
    far.close()


def test_a_file_of_toml_says_who_may_link(authority: Authority, tmp_path: Path) -> None:
    (tmp_path / "link.secret").write_text("a secret of some length\n")
    files = authority.files("there")
    lines = "\n".join(f"{name} = '{path}'" for name, path in files.items())
    (tmp_path / "there.toml").write_text(
        f"[[listen]]\nsecret_file = 'link.secret'\nbuffer_bytes = 1_000_000\n{lines}\n"
    )
    there = from_toml(tmp_path / "there.toml").done()
    here = builder(name="here").done()
    link = here.federation.connect(
        *there.federation.addresses[0],
        secret="a secret of some length",
        **authority.files("here"),
    )

    assert link.wait_until_connected("60 s")
    there.close()
    here.close()
