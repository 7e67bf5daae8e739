"""Who may do what: roles, subjects, foreign pages, headers, TLS, rates, webhooks, secrets."""

from __future__ import annotations

import hashlib
import hmac
import http.server
import ipaddress
import json
import logging
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin, Subprotocol

from ensue.server.webhooks.addresses import is_allowed
from tests.server.live import RULES, Live, reading, serving, settings

SECRETS = {
    name: f"{name}-secret-of-enough-characters"
    for name in ("sensor", "viewer", "author", "reader", "boss", "some")
}
ROLES: dict[str, dict[str, Any]] = {
    "sensor": {"roles": ["publish"]},
    "viewer": {"roles": ["subscribe"]},
    "author": {"roles": ["rules"], "subjects": ("team-*",), "deny": ["team-secret*"]},
    "reader": {"roles": ["history"], "subjects": ("Reading",)},
    "boss": {"roles": ["admin"]},
    "some": {"roles": ["publish", "subscribe"], "subjects": ("Read*",), "deny": ["Reading"]},
}


@pytest.fixture(scope="module")
def live() -> Iterator[Live]:
    tokens = [{"name": name, "secret": SECRETS[name], **ROLES[name]} for name in ROLES]
    tokens[0]["sha256"] = hashlib.sha256(tokens[0].pop("secret").encode()).hexdigest()
    with serving(settings(tokens=tokens)) as running:
        running.client.headers["Authorization"] = f"Bearer {SECRETS['boss']}"
        running.put()
        running.publish([reading(1, "a", 20), reading(2, "a", 70)])
        yield running


def ask(live: Live, who: str | None, method: str, path: str, **given: Any) -> httpx.Response:
    headers = dict(given.pop("headers", {}))
    if who is not None:
        headers["Authorization"] = f"Bearer {SECRETS.get(who, who)}"
    with httpx.Client(base_url=live.url, timeout=20) as client:
        return client.request(method, path, headers=headers, **given)


TEXT = {"Content-Type": "text/plain"}
EVENT = reading(5, "a", 20)
REQUESTS: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "publish": ("POST", "/v1/events", {"json": EVENT}, "sensor"),
    "subscribe": ("GET", "/v1/events?after=x", {}, "viewer"),
    "put": ("PUT", "/v1/libraries/team-a", {"content": RULES, "headers": TEXT}, "author"),
    "history": ("GET", "/v1/history", {}, "reader"),
    "outputs": ("GET", "/v1/outputs", {}, "reader"),
    "audit": ("GET", "/v1/audit", {}, "boss"),
    "webhooks": ("GET", "/v1/webhooks", {}, "boss"),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_each_role_opens_what_it_is_for_and_nothing_else(live: Live, name: str) -> None:
    method, path, given, allowed = REQUESTS[name]
    for who in ("sensor", "viewer", "author", "reader", "boss"):
        answer = ask(live, who, method, path, **given)
        if who in (allowed, "boss"):
            assert answer.status_code in (200, 201, 400), (who, answer.text)
        else:
            assert answer.status_code == 403, (who, answer.text)
            assert "lacks the role" in answer.text
    for unknown in (None, "wrong"):
        answer = ask(live, unknown, method, path, **given)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")


def test_every_path_needs_a_token_but_health_and_the_page(live: Live) -> None:
    paths = json.loads(ask(live, None, "GET", "/v1/openapi.json").text)["paths"]
    for path, methods in paths.items():
        plain = path.replace("{name}", "x").replace("{rule}", "y").replace("{position}", "1")
        for method in methods:
            answer = ask(live, None, method.upper(), plain)
            expected = 200 if path in ("/health", "/ready", "/v1/openapi.json") else 401
            assert answer.status_code == expected, (method, path)
    assert ask(live, None, "GET", "/").status_code == 200


def test_subjects_limit_and_deny_wins(live: Live) -> None:
    put = {"content": RULES, "headers": TEXT}
    assert ask(live, "author", "PUT", "/v1/libraries/team-b", **put).status_code in (200, 201)
    for name in ("other", "team-secret", "team-secrets"):
        assert ask(live, "author", "PUT", f"/v1/libraries/{name}", **put).status_code == 403
        assert ask(live, "author", "GET", f"/v1/libraries/{name}").status_code == 403
    names = [each["name"] for each in ask(live, "author", "GET", "/v1/libraries").json()]
    assert names
    assert all(each.startswith("team-") for each in names)

    denied = ask(live, "some", "POST", "/v1/events", json=EVENT)
    assert denied.status_code == 403
    other = {**EVENT, "type": "ReadOther", "id": "other"}
    mixed = ask(live, "some", "POST", "/v1/events", json=[EVENT, other]).json()
    assert (mixed["accepted"], len(mixed["rejected"])) == (1, 1)


def test_a_reader_sees_only_its_subjects(live: Live) -> None:
    found = ask(live, "reader", "GET", "/v1/history?limit=1000").json()["events"]
    assert found
    assert {each["type"] for each in found} == {"Reading"}
    assert ask(live, "reader", "GET", "/v1/outputs").json()["outputs"] == []
    everything = ask(live, "boss", "GET", "/v1/outputs").json()["outputs"]
    assert everything
    position = everything[0]["position"]
    assert ask(live, "reader", "GET", f"/v1/outputs/{position}").status_code == 404


def test_a_websocket_takes_its_token_as_a_protocol(
    live: Live, caplog: pytest.LogCaptureFixture
) -> None:
    url = live.url.replace("http", "ws") + "/v1/events/socket?after=0"
    bearer = f"ensue.bearer.{SECRETS['viewer']}"
    with connect(url, subprotocols=[Subprotocol("ensue.v1"), Subprotocol(bearer)]) as opened:
        assert opened.subprotocol == "ensue.v1"
        assert json.loads(opened.recv(timeout=10))["id"] == "1"
    with pytest.raises(InvalidStatus) as refused:
        connect(url).close()
    assert refused.value.response.status_code == 401
    with pytest.raises(InvalidStatus) as foreign:
        connect(url, origin=Origin("http://evil.example")).close()
    assert foreign.value.response.status_code == 403
    assert not [each for each in caplog.records if each.levelname == "ERROR"]


def test_a_foreign_page_cannot_call() -> None:
    with serving(settings()) as live:
        for headers, status in (
            ({"Origin": "http://evil.example"}, 403),
            ({"Origin": "null"}, 403),
            ({"Origin": live.url}, 200),
            ({"Host": "evil.example:8420"}, 421),
            ({"Host": "localhost:1"}, 200),
        ):
            answer = ask(live, None, "GET", "/v1/libraries", headers=headers)
            assert answer.status_code == status, headers
            assert "access-control-allow-origin" not in answer.headers
        # What a form of a foreign page could send is no form of request here.
        form = ask(live, None, "POST", "/v1/events", headers=TEXT, content="{}")
        assert form.status_code == 415


def test_every_answer_has_the_headers_that_hold_a_page_in(live: Live) -> None:
    for path in ("/", "/v1/libraries", "/nothing", "/health"):
        headers = ask(live, "boss", "GET", path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"


def test_a_rate_is_answered_with_when_to_come_again() -> None:
    with serving(settings(requests_per_second=5)) as live:
        answers = [live.client.get("/v1/libraries") for _ in range(15)]
    assert {each.status_code for each in answers} == {200, 429}
    assert int(answers[-1].headers["retry-after"]) >= 1
    assert answers[-1].headers["content-type"] == "application/problem+json"


def test_events_of_a_token_have_a_rate() -> None:
    token = {"name": "t", "secret": "x" * 20, "roles": ["publish"], "events_per_second": 10}
    with serving(settings(tokens=[token])) as live:
        live.client.headers["Authorization"] = "Bearer " + "x" * 20
        live.publish([reading(n, "a", 20) for n in range(20)])
        more = live.client.post("/v1/events", json=[reading(n, "a", 20) for n in range(20, 30)])
    assert more.status_code == 429


def test_tls_is_spoken(tmp_path: Path) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1", "localhost")
    certificate.private_key_pem.write_to_path(tmp_path / "key.pem")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "certificate.pem")
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    given = settings(certificate=str(tmp_path / "certificate.pem"), key=str(tmp_path / "key.pem"))
    with serving(given) as live:
        trust = ssl.create_default_context(cafile=str(tmp_path / "authority.pem"))
        url = live.url.replace("http:", "https:")
        answer = httpx.get(f"{url}/health", verify=trust)
        assert answer.status_code == 200
        assert "max-age" in answer.headers["strict-transport-security"]
        with pytest.raises(httpx.HTTPError):
            httpx.get(f"{live.url}/health")


@pytest.mark.parametrize(
    ("address", "allowed"),
    [
        ("8.8.8.8", True),
        ("127.0.0.1", False),
        ("10.1.2.3", False),
        ("169.254.169.254", False),
        ("192.168.0.1", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("::1", False),
        ("::ffff:10.0.0.1", False),
        ("fe80::1", False),
        ("fd00::1", False),
        ("2002:0a00:0001::", False),
        ("2606:4700::1111", True),
        ("64:ff9b::10.0.0.1", False),
        ("64:ff9b::8.8.8.8", True),
    ],
)
def test_webhooks_lead_to_public_addresses(address: str, allowed: bool) -> None:
    assert is_allowed(address, []) is allowed
    assert is_allowed(address, [ipaddress.ip_network("0.0.0.0/0"), ipaddress.ip_network("::/0")])


def test_a_webhook_to_a_private_address_is_refused(live: Live) -> None:
    for url in ("http://127.0.0.1:1/", "http://localhost/", "http://[::1]/", "ftp://x/", "http://"):
        answer = live.client.put("/v1/webhooks/hook", json={"url": url})
        assert answer.status_code == 422, url
    assert live.client.get("/v1/webhooks").json() == []


class Target(http.server.BaseHTTPRequestHandler):
    received: list[tuple[dict[str, str], bytes]] = []  # noqa: RUF012
    failing = 0

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if Target.failing:
            Target.failing -= 1
            self.send_response(500)
        else:
            Target.received.append((dict(self.headers), body))
            self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def test_a_webhook_is_signed_and_tried_again_and_goes_on_after_a_restart(tmp_path: Path) -> None:
    target = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Target)
    threading.Thread(target=target.serve_forever, daemon=True).start()
    given = settings(tmp_path / "data", webhooks={"networks": ["127.0.0.0/8"]})
    url = f"http://127.0.0.1:{target.server_port}/hook?x=1"
    Target.received.clear()
    Target.failing = 1

    def delivered(count: int) -> list[Any]:
        limit = time.monotonic() + 20
        while time.monotonic() < limit:
            found = [each for _, body in Target.received for each in json.loads(body)]
            if len(found) >= count:
                return found
            time.sleep(0.02)
        raise AssertionError(Target.received)

    with serving(given) as live:
        live.put()
        made = live.client.put("/v1/webhooks/hook", json={"url": url, "secret": "signing"})
        assert made.json()["secret"] == "set"
        live.publish([reading(1, "a", 20), reading(2, "a", 70)])
        (output,) = delivered(1)
        assert output["causes"] == "e1,e2"
        headers, body = Target.received[0]
        digest = hmac.new(b"signing", body, hashlib.sha256).hexdigest()
        assert headers["Ensue-Signature"] == f"sha256={digest}"
        time.sleep(0.2)
        (standing,) = live.client.get("/v1/webhooks").json()
        assert (standing["delivered"], standing["failures"]) == (1, 1)
    with serving(given) as live:
        live.publish([reading(3, "a", 20), reading(4, "a", 70)])
        assert len(delivered(2)) == 2
        assert live.client.delete("/v1/webhooks/hook").status_code == 204
    target.shutdown()
    target.server_close()


def test_a_webhook_is_looked_at_again_at_every_connection(tmp_path: Path) -> None:
    target = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Target)
    threading.Thread(target=target.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{target.server_port}/hook"
    Target.received.clear()
    Target.failing = 0
    with serving(settings(tmp_path / "data", webhooks={"networks": ["127.0.0.0/8"]})) as live:
        assert live.client.put("/v1/webhooks/hook", json={"url": url}).status_code == 200
    # The address is as it was when the webhook was made, and is no longer allowed.
    with serving(settings(tmp_path / "data")) as live:
        live.put()
        live.publish([reading(1, "a", 20), reading(2, "a", 70)])
        limit = time.monotonic() + 20
        problem = None
        while problem is None and time.monotonic() < limit:
            (standing,) = live.client.get("/v1/webhooks").json()
            problem = standing["problem"]
            time.sleep(0.05)
        assert problem is not None
        assert "no public address" in problem
    assert Target.received == []
    target.shutdown()
    target.server_close()


def test_a_webhook_with_a_temporal_filter_is_asked_before_the_event_is_stored(
    tmp_path: Path,
) -> None:
    target = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Target)
    threading.Thread(target=target.serve_forever, daemon=True).start()
    Target.received.clear()
    Target.failing = 0
    with serving(settings(tmp_path / "data", webhooks={"networks": ["127.0.0.0/8"]})) as live:
        webhook = {
            "url": f"http://127.0.0.1:{target.server_port}/hook",
            "kinds": ["event"],
            "filter": "celsius > 60 AND start AFTER(10 s) (celsius < 30)",
        }
        assert live.client.put("/v1/webhooks/hook", json=webhook).status_code == 200
        time.sleep(0.3)
        sent = [reading(0, "a", 70), reading(1, "a", 20), reading(2, "a", 70)]
        for each in (*sent, reading(30, "a", 70)):
            live.publish([each])
        limit = time.monotonic() + 20
        while not Target.received and time.monotonic() < limit:
            time.sleep(0.02)
        time.sleep(0.2)
    posted = [each["id"] for _, body in Target.received for each in json.loads(body)]
    target.shutdown()
    target.server_close()

    assert posted == ["e2"]


def test_secrets_are_never_logged_nor_told(live: Live, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    answers = [
        ask(live, "boss", "GET", path).text
        for path in ("/v1/audit", "/metrics", "/v1/figures", "/v1/webhooks", "/v1/libraries")
    ]
    answers.append(ask(live, "wrong-but-secret-token", "GET", "/v1/audit").text)
    told = "\n".join([*answers, caplog.text])

    for secret in [*SECRETS.values(), "wrong-but-secret-token"]:
        assert secret not in told
